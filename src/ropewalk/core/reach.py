"""What a workflow reaches beyond itself, and who bounds it.

A workflow may call and start other workflows, speak to executions, wait for and emit events of its workspace, name its
rate limits and its credentials, read and write the values it keeps and the files in its folder, and read `env` and
`workspace`. A member of the workspace reaches all of that. An actor with whom single workflows are shared reaches those
workflows and nothing else, so a version that such an actor saved, and an execution that such an actor started, are
*bounded* by that actor: they call what is shared with every actor that bounds them, use the credentials that are, speak
to executions of such workflows alone, wait for no event and emit none, name no rate limit, and reach no value and no
folder of the workspace.

What a version says it reaches is looked at when it is saved (`needs`); what an execution does reach is looked at when
it does so: names may be computed, and shares may have been taken away.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.canonical import JSON, Path
from ropewalk.core.closing_nodes import placed_nodes
from ropewalk.core.expression import ExpressionError, Scope, check_template, has_expression

OUT_OF_REACH: Final = "out of reach"
REMEDY: Final = "ask an admin of the workspace for a membership"
"""What an actor with shares alone can do about events and values."""
VALUES: Final = ("env", "workspace")
"""The names of an expression that belong to the workspace."""
_PLAIN: Final = frozenset({"name", "description", "input", "vars"})
"""The fields of a document that hold no expressions."""


class Reached(StrEnum):
    """A kind of thing that a parameter of a node may name."""

    WORKFLOW = "workflow"
    EVENTS = "events"
    KEPT_VALUES = "kept values"
    FILES = "files"
    EXECUTION = "execution"


class Need(Struct, frozen=True):
    """One thing a document reaches beyond itself: a `workflow`, a `credential`, or something of the whole workspace.

    `is_computed`: only a run will tell which workflow or execution it is.
    """

    path: Path
    what: str
    workflow: str | None = None
    is_computed: bool = False
    credential: str | None = None


def needs(document: Mapping[str, Any], reaches: Mapping[str, Mapping[str, Reached]]) -> list[Need]:
    """Everything a checked document reaches; `reaches` tells by node type which parameters name what."""
    return [*_named(document, reaches), *_values(document)]


def _named(document: Mapping[str, Any], reaches: Mapping[str, Mapping[str, Reached]]) -> Iterator[Need]:
    for place, node in placed_nodes(document):
        if "rateLimit" in node:
            yield Need((*place, "rateLimit"), f"the rate limit {node['rateLimit']!r}")
        yield from _credentials(node.get("credentials"), (*place, "credentials"))
        given = node.get("with", {})
        for parameter, kind in reaches.get(node["type"], {}).items():
            if given.get(parameter) is None:
                continue
            path: Path = (*place, "with", parameter)
            if kind is Reached.EVENTS:
                yield Need(path, "an event of the workspace")
            elif kind is Reached.KEPT_VALUES:
                yield Need(path, "a value that the workspace keeps")
            elif kind is Reached.FILES:
                yield Need(path, "a file in the workspace's folder")
            elif kind is Reached.EXECUTION:
                yield Need(path, "another execution", is_computed=True)
            else:
                named = str(given[parameter])
                yield Need(path, f"the workflow {named!r}", named, has_expression(named))


def _credentials(named: str | Mapping[str, str] | None, path: Path) -> Iterator[Need]:
    if isinstance(named, str):
        yield Need(path, f"the credential {named!r}", credential=named)
    for slot, name in named.items() if isinstance(named, Mapping) else ():
        yield Need((*path, slot), f"the credential {name!r}", credential=name)


def _values(document: Mapping[str, Any]) -> Iterator[Need]:
    """The texts that read something of the workspace, in any field."""
    waiting: list[tuple[JSON, Path]] = [
        (value, (name,)) for name, value in reversed(list(document.items())) if name not in _PLAIN
    ]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, dict):
            waiting += [(inner, (*path, key)) for key, inner in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(inner, (*path, place)) for place, inner in reversed(list(enumerate(value)))]
        elif isinstance(value, str) and has_expression(value):
            yield from (Need(path, f"`{name}`") for name in VALUES if name in _roots(value))


def _roots(text: str) -> dict[str, None]:
    template, _ = check_template(text)
    return {} if template is None else dict.fromkeys(reference[0] for reference in template.references)


def refusal(what: str, bounded_by: Sequence[str], remedy: str = REMEDY) -> str:
    """Why something cannot be reached, and what to do about it."""
    actors = " and ".join(bounded_by)
    return f"{what} is {OUT_OF_REACH} of {actors}, with whom only single workflows are shared: {remedy}"


def workflow_remedy(workflow: str) -> str:
    """What to do about a workflow that is not shared."""
    return f"ask an admin of the workspace to share {workflow!r} as operator, or for a membership"


def credential_remedy(credential: str) -> str:
    """What to do about a credential that is not shared."""
    return f"ask an admin of the workspace to share the credential {credential!r}, or for a membership"


class BoundedScope(Scope):
    """What expressions of a bounded execution see: an expression that reads a value of the workspace has an error."""

    __slots__ = ("bounded_by",)

    def __init__(self, bounded_by: tuple[str, ...], **names: Any) -> None:
        super().__init__(**names)
        self.bounded_by = bounded_by

    @property
    def env(self) -> Any:
        raise ExpressionError(refusal("`env`", self.bounded_by), 0)

    @env.setter
    def env(self, value: Any) -> None:
        """Never kept."""

    @property
    def workspace(self) -> Any:
        raise ExpressionError(refusal("`workspace`", self.bounded_by), 0)

    @workspace.setter
    def workspace(self, value: Any) -> None:
        """Never kept."""
