"""Event waits: which executions wait for which events."""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.core.waits import BreakerWait, EventWait, TypeWait, Wait
from ropewalk.store.access import Reader, json_list

NO_ITEM: Final = -1
"""What stands for the item of a node that is no map, where the item is part of a row's name."""


class WaitingForEvent(Struct, frozen=True):
    """An attempt that goes on when a matching event is published."""

    execution: str
    node: str
    item: int | None
    attempt: int
    subject: str
    filter: str | None
    scope: str | None


def place_of(item: int | None) -> int:
    """The item as such a row has it."""
    return NO_ITEM if item is None else item


def item_of(place: int) -> int | None:
    """The item such a row is about, if any."""
    return None if place == NO_ITEM else place


async def waiting(reader: Reader, workspace: str) -> list[WaitingForEvent]:
    """Every attempt in the workspace that waits for an event, in order."""
    rows = await reader.fetch("list_event_waits", workspace)
    return [WaitingForEvent(execution, node, item_of(place), *rest) for execution, node, place, *rest in rows]


async def held(reader: Reader, workspace: str, subject: str) -> list[WaitingForEvent]:
    """Every attempt in the workspace that waits for exactly this event."""
    return [wait for wait in await waiting(reader, workspace) if wait.subject == subject]


def subject_of(wait: Wait) -> tuple[str, str | None, str | None] | None:
    """What others can bring about that ends the wait, the filter it has for that, and what this reads, as JSON.

    None if nothing does.
    """
    match wait:
        case EventWait():
            scope = None if wait.scope is None else msgspec.json.encode(wait.scope, order="sorted").decode()
            return wait.subject, wait.filter, scope
        # No published event has a colon in its subject.
        case BreakerWait():
            return breaker_subject(wait.target), None, None
        case TypeWait():
            return type_subject(wait.type), None, None
        case _:
            return None


def breaker_subject(target: str) -> str:
    """The subject of attempts that a breaker holds."""
    return f"breaker:{target}"


def type_subject(node_type: str) -> str:
    """The subject of executions that wait for a worker that knows their node type."""
    return f"nodeType:{node_type}"


async def of_executions(reader: Reader, executions: Iterable[str]) -> dict[str, dict[tuple[str, int], None]]:
    """The nodes and items of these executions that have such a row."""
    found: dict[str, dict[tuple[str, int], None]] = {}
    for execution, node, item in await reader.fetch("event_waits_of", json_list(executions)):
        found.setdefault(execution, {})[node, item] = None
    return found
