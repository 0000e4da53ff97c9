"""How executions ended, as their logs tell."""

from collections.abc import Iterator

from ropewalk.core import log
from ropewalk.core.errors import NotFound, reading_of
from ropewalk.core.events import Event, ExecutionSucceeded
from ropewalk.core.kinship import ENDS, error_of
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import Ended
from ropewalk.store import log as stored_log
from ropewalk.store.access import Reader


class End:
    """How an execution ended, once it has and cannot go on; None before."""

    __slots__ = ("__weakref__", "ended")

    def __init__(self) -> None:
        self.ended: Ended | None = None


async def known_end(reader: Reader, execution: str) -> Ended | None:
    """How the execution ended, if it has."""
    row = await reader.fetch_one("last_entry", execution)
    if row is None:
        raise NotFound(f"there is no execution {execution}")
    with reading_of(execution):
        last = log.decode(row[0])[1][-1]
    return ending(execution, last) if type(last) in ENDS else None


async def recorded(reader: Reader, execution: str, start: int = 1) -> list[tuple[int, Event]]:
    """The events of the execution with their numbers; `start` is in the first entry that is read."""
    rows = await stored_log.entries(reader, execution, start=start)
    if not rows:
        raise NotFound(f"there is no execution {execution}")
    with reading_of(execution):
        return [numbered for _, entry in rows for numbered in _numbered(entry)]


def _numbered(entry: bytes) -> Iterator[tuple[int, Event]]:
    first, events = log.decode(entry)
    return enumerate(events, first)


def ending(execution: str, event: Event) -> Ended:
    """The end that an event makes."""
    if type(event) is ExecutionSucceeded:
        return Ended(execution, ExecutionState.SUCCESS, event.output, None, event.blob)
    return Ended(execution, ENDS[type(event)], None, error_of(event))
