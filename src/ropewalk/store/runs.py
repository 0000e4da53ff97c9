"""Runs: one row per attempt, and the leases of those that someone else than the owner carries out."""

from typing import Final

from msgspec import Struct

from ropewalk.core.state import RunState
from ropewalk.store.access import Reader, Transaction
from ropewalk.store.rows import RunEntry

_ALL: Final = 1000


class Run(Struct, frozen=True):
    """One attempt at one node or item."""

    id: str
    execution: str
    node: str
    item: int | None
    attempt: int
    state: str
    worker: str | None
    leased_by: str | None
    lease_until: int | None
    fence: int
    heartbeat_at: int | None
    retry_after: int | None
    started_at: int | None
    finished_at: int | None
    error_type: str | None
    error: str | None


async def put(tx: Transaction, run: RunEntry) -> None:
    """The run is as it is said here; its lease stays as it was."""
    await tx.execute("upsert_run", *run)


async def get(reader: Reader, run: str) -> Run | None:
    """The run of this id, if it has a row."""
    row = await reader.fetch_one("get_run", run)
    return None if row is None else Run(*row)


async def listed(
    reader: Reader,
    execution: str,
    *,
    node: str | None = None,
    state: RunState | None = None,
    after: str = "",
    limit: int = _ALL,
) -> list[Run]:
    """The runs of an execution in the order they came to be, after a cursor."""
    return [Run(*row) for row in await reader.fetch("list_runs", execution, after, node, state, limit)]


async def lease(tx: Transaction, runner: str, until: int, now: int, limit: int) -> list[Run]:
    """Hands a runner the oldest due runs until then; each lease has a fence of its own."""
    rows = await tx.fetch("lease_runs", now, limit, runner, until)
    return sorted((Run(*row) for row in rows), key=lambda run: (run.retry_after or 0, run.id))


async def extend_lease(tx: Transaction, run: str, runner: str, fence: int, until: int, now: int) -> bool:
    """The runner keeps the run until then; false if it has lost it."""
    return await tx.execute("extend_lease", now, until, run, runner, fence) == 1


async def expired(tx: Transaction, now: int, limit: int) -> list[Run]:
    """Runs whose runner has gone silent, longest first."""
    return [Run(*row) for row in await tx.fetch("expired_leases", now, limit)]
