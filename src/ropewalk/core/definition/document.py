"""A workflow definition: the document of its author, once it is known to keep every rule.

The document itself is kept as it came, so that what is stored, shown and hashed is what the author wrote; but for the
`retry` that a node has from its type, which is written down with it: a version keeps it when the type has another. The
hash ignores nothing but the order of keys: a node moved in Studio is another version, since its drawing would be lost
otherwise.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ropewalk.core.brief import fits
from ropewalk.core.canonical import JSON, canonical, content_hash, json_problems
from ropewalk.core.closing_nodes import closing_nodes, with_closing
from ropewalk.core.definition.node_type import NodeTypes
from ropewalk.core.definition.topology import Topology, port_of
from ropewalk.core.definition.validation import DEFAULT_LIMITS, Limits, check_document
from ropewalk.core.errors import InvalidDefinition, InvalidInput, Unfinished
from ropewalk.core.schema import Allowance, validate

CHECKED_AT_ONCE = 100_000
"""An input that counts more (see `brief.py`) takes long to check, with any schema."""


class Definition:
    """A document that keeps the rules; made by `parse_definition`, or again from what that accepted earlier."""

    def __init__(self, document: dict[str, Any], topology: Topology | None = None) -> None:
        self.document = document
        ordinary: list[dict[str, Any]] = document.get("nodes", [])
        # How many are nodes of the graph; those that follow close its executions.
        self.ordinary = len(ordinary)
        closing = [node for _, node in closing_nodes(document)]
        self.nodes = [*ordinary, *closing] if closing else ordinary
        self.edges: list[dict[str, Any]] = document.get("edges", [])
        self.index: dict[str, int] = {node["id"]: i for i, node in enumerate(self.nodes)}
        self.topology = self._read_topology() if topology is None else topology

    def _read_topology(self) -> Topology:
        index = self.index
        arcs = ((index[edge["from"]], index[edge["to"]], port_of(edge)) for edge in self.edges)
        return Topology(len(self.nodes), arcs)

    @property
    def name(self) -> str:
        """What the workflow is called in its workspace."""
        return str(self.document["name"])

    @property
    def vars(self) -> dict[str, JSON]:
        """The variables' defaults."""
        return dict(self.document.get("vars", {}))

    @property
    def triggers(self) -> list[dict[str, Any]]:
        """What starts it besides a call."""
        return list(self.document.get("triggers", []))

    @cached_property
    def content_hash(self) -> str:
        """The same for two documents that differ in the order of keys at most."""
        return content_hash(self.document)

    def canonical(self) -> bytes:
        """The bytes to store."""
        return canonical(self.document)

    def check_input(self, value: JSON, allowance: Allowance | None = None, *, is_brief: bool = False) -> None:
        """Refuses, with all reasons, an input that does not fit the workflow's schema.

        `allowance` is shared by inputs that are checked together. Unfinished if it takes long and was to be brief.
        """
        if (is_brief or (allowance is not None and allowance.is_brief)) and not fits(value, CHECKED_AT_ONCE):
            raise Unfinished
        problems = json_problems(value, ("input",))
        if not problems and "input" in self.document:
            allowed = allowance or Allowance(is_brief=is_brief)
            problems = validate(self.document["input"], value, ("input",), allowance=allowed)
        if problems:
            raise InvalidInput(problems)


def parse_definition(document: JSON, types: NodeTypes, limits: Limits = DEFAULT_LIMITS,
                     missing: Mapping[str, str] | None = None) -> Definition:  # fmt: skip
    """The definition a document describes; InvalidDefinition names everything that is wrong with it.

    `missing` are the types that should be there and are not, each with the reason.
    """
    report, topology = check_document(document, types, limits, missing or {})
    if report.count:
        raise InvalidDefinition(report.result())
    return Definition(_with_own_retries(document, types), topology)


def _with_own_retries(document: dict[str, Any], types: NodeTypes) -> dict[str, Any]:
    """The document, in which each node without a `retry` has that of its type, if there is one."""
    nodes = [*document.get("nodes", []), *(node for _, node in closing_nodes(document))]
    used = dict.fromkeys(node["type"] for node in nodes if "retry" not in node)
    retries = {name: retry for name in used if (retry := types[name].retry) is not None}
    if not retries:
        return document
    return with_closing(document, lambda node: _with_own_retry(node, retries))


def _with_own_retry(node: dict[str, Any], retries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    retry = None if "retry" in node else retries.get(node["type"])
    return node if retry is None else {**node, "retry": dict(retry)}
