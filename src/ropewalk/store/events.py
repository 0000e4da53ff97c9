"""Event waits: which executions wait for which events."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from ropewalk.store.access import Reader, json_list

NO_ITEM: Final = -1


class WaitingForEvent(Struct, frozen=True):
    """An attempt that goes on when a matching event is published."""

    execution: str
    node: str
    item: int | None
    attempt: int
    subject: str
    filter: str | None


async def waiting(reader: Reader, workspace: str) -> list[WaitingForEvent]:
    """Everyone in the workspace who waits for an event, in order."""
    rows = await reader.fetch("list_event_waits", workspace)
    return [
        WaitingForEvent(execution, node, None if item == NO_ITEM else item, *rest)
        for execution, node, item, *rest in rows
    ]


async def held(reader: Reader, workspace: str, target: str) -> list[WaitingForEvent]:
    """Everyone in the workspace whom the breaker of this target holds."""
    subject = breaker_subject(target)
    return [wait for wait in await waiting(reader, workspace) if wait.subject == subject]


def breaker_subject(target: str) -> str:
    """What those wait for whom a breaker holds; no published event has a colon in its subject."""
    return f"breaker:{target}"


async def of_executions(reader: Reader, executions: Iterable[str]) -> dict[str, dict[tuple[str, int], None]]:
    """The nodes and items of these executions that have such a row."""
    found: dict[str, dict[tuple[str, int], None]] = {}
    for execution, node, item in await reader.fetch("event_waits_of", json_list(executions)):
        found.setdefault(execution, {})[node, item] = None
    return found
