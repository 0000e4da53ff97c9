"""What one version of a workflow changes in another: nodes by id, edges by what they join, and the other fields."""

from typing import Any

from msgspec import Struct

from ropewalk.core.canonical import JSON, canonical
from ropewalk.core.definition.topology import port_of

_APART = ("nodes", "edges")


class Change(Struct, frozen=True):
    """One field that is there before, after, or differently in both; None where it is not."""

    field: str
    before: JSON
    after: JSON


class NodeChange(Struct, frozen=True):
    """A node of both versions, and its fields that are not the same."""

    id: str
    changes: tuple[Change, ...]


class Difference(Struct, frozen=True):
    """Everything that two versions do not share, in document order."""

    changes: tuple[Change, ...]
    nodes_added: tuple[dict[str, Any], ...]
    nodes_removed: tuple[dict[str, Any], ...]
    nodes_changed: tuple[NodeChange, ...]
    edges_added: tuple[dict[str, Any], ...]
    edges_removed: tuple[dict[str, Any], ...]


def difference(before: dict[str, Any], after: dict[str, Any]) -> Difference:
    """What has to be done to `before` to have `after`; the order of nodes, edges and keys does not matter."""
    old_nodes, new_nodes = _by_id(before), _by_id(after)
    old_edges, new_edges = _by_ends(before), _by_ends(after)
    return Difference(
        changes=_changes(before, after),
        nodes_added=_only_in(new_nodes, old_nodes),
        nodes_removed=_only_in(old_nodes, new_nodes),
        nodes_changed=_changed(old_nodes, new_nodes),
        edges_added=_only_in(new_edges, old_edges),
        edges_removed=_only_in(old_edges, new_edges),
    )


def _by_id(document: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    return {node["id"]: node for node in document.get("nodes", [])}


def _by_ends(document: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    return {(edge["from"], edge["to"], port_of(edge)): edge for edge in document.get("edges", [])}


def _only_in(some: dict[Any, dict[str, Any]], others: dict[Any, dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    return tuple(each for key, each in some.items() if key not in others)


def _changed(before: dict[Any, dict[str, Any]], after: dict[Any, dict[str, Any]]) -> tuple[NodeChange, ...]:
    both = ((key, before[key], node) for key, node in after.items() if key in before)
    found = (NodeChange(key, _changes(old, new)) for key, old, new in both)
    return tuple(each for each in found if each.changes)


def _changes(before: dict[str, Any], after: dict[str, Any]) -> tuple[Change, ...]:
    fields = dict.fromkeys([*before, *after])
    return tuple(
        Change(field, before.get(field), after.get(field))
        for field in fields
        if field not in _APART and not _is_same(before, after, field)
    )


def _is_same(before: dict[str, Any], after: dict[str, Any], field: str) -> bool:
    if (field in before) != (field in after):
        return False
    # By their text: 1 and True are equal in Python and two things in JSON.
    return canonical(before[field]) == canonical(after[field])
