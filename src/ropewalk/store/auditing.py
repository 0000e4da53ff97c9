"""Everything the tables say about one execution, for whoever holds them to its log."""

from collections.abc import AsyncIterator
from typing import Final

from msgspec import Struct

from ropewalk.core.events import Blob
from ropewalk.store import dlq, runs
from ropewalk.store.access import Reader
from ropewalk.store.executions import NEWEST, Execution
from ropewalk.store.live import Live
from ropewalk.store.queue import QueueEntry

TABLES: Final = ("log", "run", "dead_letter", "live", "queue", "event_wait", "offer", "inbox")
"""The tables whose rows belong to an execution."""

_PAGE: Final = 500
_MOST_ROWS: Final = 10_000_000
_LIVE: Final = len(Execution.__struct_fields__)
_QUEUE: Final = _LIVE + len(Live.__struct_fields__)
_UNTOLD: Final = _QUEUE + len(QueueEntry.__struct_fields__)


class KeptEventWait(Struct, frozen=True):
    """A row that says who waits for which event; the item is -1 where the node is no map."""

    node: str
    item: int
    attempt: int
    workspace: str
    subject: str
    filter: str | None


class Kept(Struct, frozen=True):
    """The rows of one execution; how much it has yet to be told, and how many of its runs are offered to others."""

    execution: Execution
    live: Live | None
    queue: QueueEntry | None
    untold: int
    offered: int
    runs: list[runs.Run]
    letters: list[dlq.DeadLetter]
    event_waits: list[KeptEventWait]


async def every_execution(reader: Reader) -> AsyncIterator[str]:
    """The id of every execution there is, newest first, read a page at a time."""
    before = NEWEST
    while page := await reader.fetch("audited_ids", before, _PAGE):
        for (execution,) in page:
            yield execution
        before = page[-1][0]


async def kept(reader: Reader, execution: str) -> Kept | None:
    """What the tables say about an execution; None if it is not there."""
    row = await reader.fetch_one("audited_rows", execution)
    if row is None:
        return None
    return Kept(
        Execution(*row[:_LIVE]),
        None if row[_LIVE] is None else Live(*row[_LIVE:_QUEUE]),
        None if row[_QUEUE] is None else QueueEntry(*row[_QUEUE:_UNTOLD]),
        row[_UNTOLD],
        row[_UNTOLD + 1],
        await runs.listed(reader, execution, limit=_MOST_ROWS),
        await dlq.of_execution(reader, execution, limit=_MOST_ROWS),
        [KeptEventWait(*wait) for wait in await reader.fetch("audited_event_waits", execution)],
    )


async def is_named(reader: Reader, execution: str, blob: Blob) -> bool:
    """Whether the store knows of the blob, and keeps it for as long as it keeps the execution."""
    row = await reader.fetch_one("audited_blob", blob.hash, execution)
    return row is not None and row[0] == blob.size and row[1] > 0


async def strays(reader: Reader, table: str) -> AsyncIterator[str]:
    """The executions that a table has rows of and that are not there themselves, read a page at a time."""
    after = ""
    while page := [row[0] for row in await reader.fetch(f"executions_in_{table}", after, _PAGE)]:
        known = {row[0] for row in await reader.fetch("known_executions", after, page[-1])}
        for execution in page:
            if execution not in known:
                yield execution
        after = page[-1]
