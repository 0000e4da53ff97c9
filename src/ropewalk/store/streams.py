"""Streams: what moves in a workspace, for readers that follow the whole of it."""

from msgspec import Struct

from ropewalk.core import log
from ropewalk.core.errors import NotFound, Unreadable, reading_of
from ropewalk.core.events import Event
from ropewalk.store import executions
from ropewalk.store.access import Reader


class Head(Struct, frozen=True):
    """How far the log of an execution goes: the number of its newest entry's first event."""

    execution: str
    workflow: str
    seq: int


async def live(reader: Reader, workspace: str, workflow: str | None, limit: int) -> list[Head]:
    """What is not over in a workspace or workflow, newest first."""
    return [Head(*row) for row in await reader.fetch("live_heads", workspace, workflow, limit)]


async def accepted(reader: Reader, workspace: str, workflow: str | None, after: str, limit: int) -> list[Head]:
    """What has come with an id after this one, over or not, oldest first."""
    rows = await reader.fetch("new_heads", workspace, workflow, after, limit)
    return [Head(*row) for row in rows if row[2] is not None]


async def last_event(reader: Reader, execution: str) -> tuple[int, Event]:
    """The newest event of a log and its number; NotFound if there is no such execution."""
    row = await reader.fetch_one("last_entry_numbered", execution)
    if row is None and await executions.load(reader, execution) is None:
        raise NotFound(f"there is no execution {execution}")
    with reading_of(execution):
        if row is None:
            raise Unreadable("it has no log")
        first, events = log.decode(row[1])
        return first + len(events) - 1, events[-1]
