"""Offers: runs that others than the owner of their execution may carry out, and who has leased them."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from ropewalk.store.access import Reader, Transaction, json_list
from ropewalk.store.events import item_of, place_of

Key = tuple[str, int | None, int]
"""Node, item, attempt."""
RUNNER: Final = "runner:"
"""The names of external runners, which lease runs and are no workers, begin with this."""


class Offer(Struct, frozen=True):
    """A run under a lease; what its runner reports counts only under this fence."""

    id: str
    execution: str
    workspace: str
    node: str
    item: int
    attempt: int
    pool: str
    work: str
    offered_at: int
    leased_by: str | None
    lease_until: int | None
    fence: int
    heartbeat_at: int | None
    is_stopped: int


class Reported(Struct, frozen=True):
    """The run that was reported."""

    execution: str
    node: str
    item: int | None
    attempt: int


class Expired(Struct, frozen=True):
    """A run whose runner has gone silent; `granted` is the time it had from its last heartbeat on (µs)."""

    run: Reported
    leased_by: str
    granted: int


async def lease(tx: Transaction, pool: str, runner: str, until: int, now: int, limit: int) -> list[Offer]:
    """Hands a runner the oldest runs of a pool until then; each lease has a fence of its own."""
    rows = await tx.fetch("lease_offers", pool, limit, runner, until, now)
    return sorted((Offer(*row) for row in rows), key=lambda offer: (offer.offered_at, offer.id))


async def lease_in(
    tx: Transaction, workspace: str, pool: str, runner: str, until: int, now: int, limit: int
) -> list[Offer]:
    """The same for the runs of one workspace."""
    rows = await tx.fetch("lease_offers_in", pool, limit, runner, until, now, workspace)
    return sorted((Offer(*row) for row in rows), key=lambda offer: (offer.offered_at, offer.id))


async def cap(tx: Transaction, offer: str, until: int) -> None:
    """The lease lasts no longer than this."""
    await tx.execute("cap_offer", until, offer)


async def unlease(tx: Transaction, offer: Offer) -> None:
    """The runner never heard that it has the run; others may take it."""
    await tx.execute("unlease_offer", offer.id, offer.leased_by, offer.fence)


async def is_waiting(reader: Reader, workspace: str, pool: str) -> bool:
    """Whether there is a run that no runner has taken."""
    return await reader.fetch_one("next_offer", pool, workspace) is not None


async def are_any(reader: Reader) -> bool:
    """Whether anything is offered or leased."""
    return await reader.fetch_one("any_offer") is not None


async def get(reader: Reader, offer: str) -> Offer | None:
    """A run that is offered or leased."""
    row = await reader.fetch_one("get_offer", offer)
    return None if row is None else Offer(*row)


async def extend(tx: Transaction, offer: Offer, until: int, now: int) -> bool | None:
    """The runner keeps the run until then; None if it has lost it, True if it is to stop."""
    row = await tx.fetch_one("extend_offer", now, until, offer.id, offer.leased_by, offer.fence)
    return None if row is None else bool(row[0])


async def end(tx: Transaction, offer: Offer, now: int) -> Reported | None:
    """The runner reports; None if it has lost the run."""
    row = await tx.fetch_one("end_offer", offer.id, offer.leased_by, offer.fence, now)
    return None if row is None else _reported(*row)


async def expired(tx: Transaction, now: int, limit: int) -> list[Expired]:
    """Runs whose runner has gone silent, longest first; no runner has them any more."""
    rows = await tx.fetch("expired_offers", now, limit)
    return [Expired(_reported(*run), leased_by, granted) for *run, leased_by, granted in rows]


async def stop(tx: Transaction, execution: str, key: Key) -> bool:
    """The run is not wanted any more; True if no runner had taken it."""
    node, item, attempt = key
    about = (execution, node, place_of(item), attempt)
    if await tx.execute("withdraw_offer", *about):
        return True
    await tx.execute("stop_offer", *about)
    return False


async def of_executions(reader: Reader, executions: Iterable[str]) -> dict[str, set[Key]]:
    """What of these executions is offered or leased."""
    found: dict[str, set[Key]] = {}
    for execution, node, place, attempt in await reader.fetch("offers_of", json_list(executions)):
        found.setdefault(execution, set()).add((node, item_of(place), attempt))
    return found


def _reported(execution: str, node: str, place: int, attempt: int) -> Reported:
    return Reported(execution, node, item_of(place), attempt)
