"""Rows to try things with; what a test is about it says itself."""

import sqlite3
from pathlib import Path
from typing import Any

from ropewalk.store.access import Store, Transaction
from ropewalk.store.postgres import PostgresStore
from ropewalk.store.rows import (
    DeadLetterEntry,
    LiveRow,
    LogEntry,
    NewExecution,
    NewOffer,
    NewQueueEntry,
    RunEntry,
)
from ropewalk.store.sqlite import SqliteStore
from tests import postgres

NOON = 1_800_000_000_000_000
SECOND = 1_000_000
ROOT = Path(__file__).parents[2]


def execution(id: str = "e1", **changes: Any) -> NewExecution:  # noqa: A002 (the column's name)
    row = NewExecution(id, "default", "w1", 1, "PENDING", "MANUAL", None, None, None, None, None, NOON, None, None)
    return row._replace(**changes)


def live_row(id: str = "e1", **changes: Any) -> LiveRow:  # noqa: A002 (the column's name)
    return LiveRow(id, "default", None, 0, 1, None, 0, 0, None, 5)._replace(**changes)


def waiting(id: str = "e1", **changes: Any) -> NewQueueEntry:  # noqa: A002 (the column's name)
    return NewQueueEntry(id, "default", "PENDING", 5, 1, NOON, NOON)._replace(**changes)


def run(id: str = "r1", **changes: Any) -> RunEntry:  # noqa: A002 (the column's name)
    row = RunEntry(
        id, "e1", "a", None, 1, "SUCCESS", "local", None, NOON, NOON + 5, None, None
    )  # fmt: skip
    return row._replace(**changes)


def offer(id: str = "o1", **changes: Any) -> NewOffer:  # noqa: A002 (the column's name)
    return NewOffer(id, "e1", "default", "a", -1, 1, "default", "{}", NOON)._replace(**changes)


def letter(id: str = "d1", **changes: Any) -> DeadLetterEntry:  # noqa: A002 (the column's name)
    row = DeadLetterEntry(
        id, "default", f"run of {id}", "e1", "w1", "a", None, 3, "MAX_RETRIES", "TRANSIENT", "no answer", "f1",
        "{}", "{}", NOON, "PENDING", None, None, None,
    )  # fmt: skip
    return row._replace(**changes)


def entries(name: str, count: int) -> list[LogEntry]:
    """A log of so many entries."""
    return [LogEntry(name, seq, b"{}") for seq in range(1, count + 1)]


async def accept(tx: Transaction, id: str, *, workspace: str = "default", **changes: Any) -> None:  # noqa: A002 (as above)
    """An execution waits for its turn; changes are those of its place in the queue, `concurrency_key` aside."""
    key = changes.pop("concurrency_key", None)
    await tx.execute("insert_execution", *execution(id, workspace=workspace, concurrency_key=key))
    await tx.execute("insert_live", *live_row(id, workspace=workspace, concurrency_key=key))
    await tx.execute("insert_queue", *waiting(id, workspace=workspace, **changes))


async def register(tx: Transaction, worker: str, heard: int, *, pool: str = "default", slots: int = 0) -> int:
    """A worker comes, last heard of then; the epoch it writes under."""
    row = await tx.fetch_one("register_worker", worker, "host", 7, "1", pool, slots, heard)
    assert row is not None
    return int(row[0])


async def known_blobs(store: Store) -> dict[str, int]:
    """The blobs the store was told of, and their sizes."""
    return {digest: size for digest, size, _ in await store.fetch("walk_blobs", "", NOON, 100)}


async def seen(store: Store, question: str) -> list[tuple[Any, ...]]:
    """What another connection sees in the store."""
    if isinstance(store, PostgresStore):
        return await postgres.ask(store._address.url, question)
    assert isinstance(store, SqliteStore)
    return ask(store.path, question)


async def written(database: str) -> list[tuple[Any, ...]]:
    """How many entries each log has in a database of PostgreSQL."""
    return await postgres.ask(database, "select execution, count(*) from log group by execution order by execution")


async def meddle(store: Store, order: str) -> None:
    """Someone else changes the store."""
    if isinstance(store, PostgresStore):
        await postgres.ask(store._address.url, order)
    else:
        assert isinstance(store, SqliteStore)
        tell(store.path, order)


def ask(path: str, question: str) -> list[tuple[Any, ...]]:
    """What another connection sees in the file."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(question).fetchall()
    finally:
        connection.close()


def tell(path: str, order: str, *arguments: Any) -> None:
    """Someone else changes the file."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute(order, arguments)
    finally:
        connection.close()
