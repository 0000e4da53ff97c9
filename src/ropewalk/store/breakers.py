"""Breakers: the health of each target, shared by all workers."""

from collections.abc import Iterable, Mapping

from ropewalk.core.breaker import Breaker, BreakerState, Calls, Counted
from ropewalk.store.access import Reader, Row, Transaction
from ropewalk.store.rows import BreakerEntry


async def get(reader: Reader, workspace: str, target: str) -> Breaker:
    """The target's breaker; a new one if the target was never called."""
    return _breaker(await reader.fetch_one("get_breaker", workspace, target))


async def exists(reader: Reader, workspace: str, target: str) -> bool:
    """Whether a call of the target has left a result in its breaker."""
    return await reader.fetch_one("get_breaker", workspace, target) is not None


async def lock(tx: Transaction, workspace: str, target: str) -> Breaker:
    """The same, kept from others until the end of the transaction."""
    # A row that is not there cannot be locked.
    await tx.execute("ensure_breaker", workspace, target)
    return _breaker(await tx.fetch_one("lock_breaker", workspace, target))


async def every(reader: Reader) -> dict[tuple[str, str], Breaker]:
    """The breaker of every target, by workspace and target."""
    return {(row[0], row[1]): _breaker(row[2:]) for row in await reader.fetch("every_breaker")}


def _breaker(row: Row | None) -> Breaker:
    return Breaker() if row is None else Breaker(BreakerState(row[0]), *row[1:])


async def put(tx: Transaction, workspace: str, target: str, breaker: Breaker) -> None:
    """The target's breaker is this one."""
    await tx.execute("upsert_breaker", *entry(workspace, target, breaker))


def entry(workspace: str, target: str, breaker: Breaker) -> BreakerEntry:
    """The breaker as a row of a batch."""
    return BreakerEntry(
        workspace,
        target,
        breaker.state,
        breaker.failure_count,
        breaker.success_count,
        breaker.window_start,
        breaker.last_failure,
        breaker.opened_at,
        breaker.next_retry,
        breaker.probe_until,
        breaker.probes,
        breaker.answered,
    )


async def listed(reader: Reader, workspace: str, *, after: str = "", limit: int = 50) -> list[tuple[str, Breaker]]:
    """The targets of a workspace and their breakers, after a cursor."""
    rows = await reader.fetch("list_breakers", workspace, after, limit)
    return [(row[0], _breaker(row[1:])) for row in rows]


# Counts


async def count(tx: Transaction, calls: Mapping[tuple[str, str], Calls]) -> None:
    """Add what was counted of these targets to what all workers have counted."""
    # In one order, so that two workers never wait for each other.
    await tx.execute_many("count_calls", list(_rows(calls)))


def _rows(calls: Mapping[tuple[str, str], Calls]) -> Iterable[tuple[str, str, int, int, int]]:
    for (workspace, target), counted in sorted(calls.items(), key=lambda each: each[0]):
        for span, each in counted.spans.items():
            yield workspace, target, span, each.calls, each.failures


async def counted(reader: Reader, workspace: str, target: str, since: int) -> Counted:
    """What all workers have counted of the target in the spans from that one on."""
    row = await reader.fetch_one("calls_counted", workspace, target, since)
    return Counted() if row is None else Counted(int(row[0]), int(row[1]))


async def forget_calls(tx: Transaction, workspace: str, target: str) -> None:
    """Nothing was counted of the target."""
    await tx.execute("forget_calls", workspace, target)


async def forget_old_calls(tx: Transaction, before: int) -> None:
    """What was counted in spans before that moment is removed."""
    await tx.execute("forget_old_calls", before)
