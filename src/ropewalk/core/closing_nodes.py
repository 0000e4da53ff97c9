"""The nodes of a document that close its executions: those of `finally`, and what undoes a node (`compensate`).

They are nodes like all others, without edges: an execution knows them by numbers that follow those of its `nodes`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ropewalk.core.canonical import JSON, Path

UNDOES: Final = ".compensate"
"""How the id of a node ends that undoes another; no author can write such an id."""

Node = dict[str, Any]
Placed = tuple[Path, Node]
"""A node, and where the document has it."""


def closing_nodes(document: JSON | Mapping[str, Any]) -> list[Placed]:
    """Those of `finally`, then those that undo others, in document order; what is no object is passed over."""
    if not isinstance(document, Mapping):
        return []
    last, nodes = _listed(document, "finally"), _listed(document, "nodes")
    return [
        *((("finally", i), node) for i, node in enumerate(last) if isinstance(node, dict)),
        *(
            (("nodes", i, "compensate"), {**node["compensate"], "id": f"{node.get('id')}{UNDOES}"})
            for i, node in enumerate(nodes)
            if isinstance(node, dict) and isinstance(node.get("compensate"), dict)
        ),
    ]


def placed_nodes(document: Mapping[str, Any]) -> list[Placed]:
    """Every node of a checked document, those that close included."""
    return [*((("nodes", i), node) for i, node in enumerate(document.get("nodes", ()))), *closing_nodes(document)]


def _listed(document: Mapping[str, Any], field: str) -> list[JSON]:
    value = document.get(field)
    return value if isinstance(value, list) else []


def with_closing(document: dict[str, Any], change: Callable[[Node], Node]) -> dict[str, Any]:
    """The document, in which each of its nodes is what `change` makes of it, those that close included."""
    changed = {**document, "nodes": [_changed(change(node), change) for node in document.get("nodes", [])]}
    if "finally" in document:
        changed["finally"] = [change(node) for node in document["finally"]]
    return changed


def _changed(node: Node, change: Callable[[Node], Node]) -> Node:
    return {**node, "compensate": change(node["compensate"])} if "compensate" in node else node
