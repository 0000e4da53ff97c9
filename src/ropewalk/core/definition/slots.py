"""What may be wrong with the credentials that a node names, as far as its type tells."""

from ropewalk.core.canonical import JSON, Path, shown
from ropewalk.core.definition.node_type import NodeTypeInfo
from ropewalk.core.errors import Problem

ANY_SLOT = "*"
"""The slot of a type whose nodes name their slots as they like."""


def types_for(node_type: NodeTypeInfo, slot: str) -> tuple[str, ...] | None:
    """The types of credentials for a slot, none for any; None if there is no such slot."""
    return node_type.credentials.get(slot, node_type.credentials.get(ANY_SLOT))


def slot_problems(node_type: NodeTypeInfo, named: JSON, path: Path) -> list[Problem]:
    """Slots that nodes of this type do not have."""
    if not node_type.credentials:
        return [Problem(path, f"{node_type.name} takes no credentials; leave the field out")]
    if isinstance(named, str) and types_for(node_type, "") is None:
        return [Problem(path, f"say which is for what: {node_type.name} takes {_slots(node_type)}")]
    if not isinstance(named, dict):
        return []
    return [
        Problem((*path, slot), f"{node_type.name} takes no credential {shown(slot)}; it takes {_slots(node_type)}")
        for slot in named
        if types_for(node_type, slot) is None
    ]


def _slots(node_type: NodeTypeInfo) -> str:
    return ", ".join(slot or "one by its name alone" for slot in node_type.credentials)
