"""Everything the tables say about one execution, for the audit that compares them with its log."""

from collections.abc import AsyncIterator
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.core.events import Blob
from ropewalk.store import dlq, runs
from ropewalk.store.access import Reader, json_list
from ropewalk.store.executions import NEWEST, Execution
from ropewalk.store.queue import QueueEntry
from ropewalk.store.rows import LiveRow, RunEntry

TABLES: Final = ("log", "run", "dead_letter", "live", "queue", "event_wait", "offer", "inbox")
"""The tables whose rows belong to an execution."""

_PAGE: Final = 500
_MOST_ROWS: Final = 10_000_000
_LIVE: Final = len(Execution.__struct_fields__)
_QUEUE: Final = _LIVE + len(LiveRow._fields)
_UNTOLD: Final = _QUEUE + len(QueueEntry.__struct_fields__)


class KeptEventWait(Struct, frozen=True):
    """A row that says who waits for which event; the item is -1 where the node is no map."""

    node: str
    item: int
    attempt: int
    workspace: str
    subject: str
    filter: str | None
    scope: str | None


class Kept(Struct, frozen=True):
    """The rows of one execution; how much it has yet to be told, and how many of its runs are offered to others."""

    execution: Execution
    live: LiveRow | None
    queue: QueueEntry | None
    untold: int
    offered: int
    runs: list[RunEntry]
    letters: list[dlq.DeadLetter]
    event_waits: list[KeptEventWait]


class KeptAnswer(Struct, frozen=True):
    """What an idempotency key was answered with."""

    workspace: str
    route: str
    key: str
    body_hash: str
    executions: list[str]
    created_at: int


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
        None if row[_LIVE] is None else LiveRow(*row[_LIVE:_QUEUE]),
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


# What requests left behind


async def answers(reader: Reader) -> AsyncIterator[KeptAnswer]:
    """What every idempotency key was answered with, read a page at a time."""
    after = ("", "", "")
    while page := await reader.fetch("audited_answers", *after, _PAGE):
        for workspace, route, key, body_hash, answer, created_at in page:
            yield KeptAnswer(workspace, route, key, body_hash, _named_by(answer), created_at)
        after = page[-1][:3]


def _named_by(answer: str) -> list[str]:
    try:
        return msgspec.json.decode(answer, type=list[str])
    except msgspec.MsgspecError:
        return []


async def unnoted_starts(reader: Reader, since: int, limit: int) -> AsyncIterator[list[tuple[str, int]]]:
    """Executions accepted since then whose start is not noted exactly once, and how often it is; newest first."""
    before = NEWEST
    while page := await reader.fetch("unnoted_starts", before, since, limit):
        yield [(execution, times) for execution, times in page]
        before = page[-1][0]


async def noted_verbs(reader: Reader, verbs: list[str]) -> dict[tuple[str, str], int]:
    """How often each of these was asked of something, as the audit log has it."""
    return {(what, verb): times for what, verb, times in await reader.fetch("noted_verbs", json_list(verbs))}


async def strange_owners(reader: Reader, limit: int) -> list[tuple[str, str]]:
    """Executions whose owner is no known worker, and the name of that owner."""
    return [(execution, owner) for execution, owner in await reader.fetch("strange_owners", limit)]
