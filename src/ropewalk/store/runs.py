"""Runs: one row per attempt."""

from typing import Final

from msgspec import Struct

from ropewalk.core.state import RunState
from ropewalk.store.access import Reader
from ropewalk.store.events import item_of, place_of
from ropewalk.store.rows import RunEntry

_ALL: Final = 1000


class Attempt(Struct, frozen=True):
    """Which attempt of an execution is meant."""

    execution: str
    node: str
    item: int | None
    attempt: int


class Lease(Struct, frozen=True):
    """An attempt that any worker or runner of its pool may carry out, and the one that has it."""

    leased_by: str | None
    lease_until: int | None
    fence: int
    heartbeat_at: int | None
    pool: str
    offered_at: int


async def get(reader: Reader, run: str) -> RunEntry | None:
    """The run of this id, if it has a row."""
    row = await reader.fetch_one("get_run", run)
    return None if row is None else RunEntry(*row)


async def listed(
    reader: Reader,
    execution: str,
    *,
    node: str | None = None,
    state: RunState | None = None,
    after: str = "",
    limit: int = _ALL,
) -> list[RunEntry]:
    """The runs of an execution in the order they came to be, after a cursor."""
    return [RunEntry(*row) for row in await reader.fetch("list_runs", execution, after, node, state, limit)]


async def offered(reader: Reader, offer: str) -> Attempt | None:
    """The attempt that was offered, as long as it is not reported."""
    row = await reader.fetch_one("offered_run", offer)
    if row is None:
        return None
    execution, node, place, attempt = row
    return Attempt(execution, node, item_of(place), attempt)


async def lease(reader: Reader, of: Attempt) -> Lease | None:
    """Who has an attempt that is offered to others; None for one that is not."""
    row = await reader.fetch_one("run_lease", of.execution, of.node, place_of(of.item), of.attempt)
    return None if row is None else Lease(*row)
