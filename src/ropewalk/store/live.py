"""What is not over: who owns each execution, and when the parked ones wake."""

from ropewalk.store.access import Reader, Transaction
from ropewalk.store.rows import LiveRow


async def get(reader: Reader, execution: str) -> LiveRow | None:
    """The execution, if it is not over."""
    row = await reader.fetch_one("get_live", execution)
    return None if row is None else LiveRow(*row)


async def owned(reader: Reader, worker: str, *, after: str = "", limit: int = 1000) -> list[LiveRow]:
    """What a worker owns, after a cursor: after a crash, what is to be picked up."""
    return [LiveRow(*row) for row in await reader.fetch("owned_live", worker, after, limit)]


async def acquire(tx: Transaction, worker: str, execution: str) -> str | None:
    """Gives the worker an execution without an owner, over or not; its owner after that, None if it does not exist."""
    while not await tx.execute("acquire_live", worker, execution):
        found = await get(tx, execution)
        if found is not None and found.owner is not None:
            return found.owner
        if found is None:
            return worker if await tx.execute("hold_ended", worker, execution) else await _owner(tx, execution)
    return worker


async def _owner(tx: Transaction, execution: str) -> str | None:
    found = await get(tx, execution)
    return None if found is None else found.owner


async def release(tx: Transaction, worker: str, execution: str) -> None:
    """Undoes `acquire`: what the worker has without a slot loses its owner; the row of an ended execution goes."""
    await tx.execute("release_live", execution, worker)
    await tx.execute("unhold_ended", execution)


async def abandon(tx: Transaction, worker: str, execution: str) -> None:
    """The worker does not own it any more, and it has no slot; no worker is to wake it."""
    await tx.execute("abandon_live", execution, worker)


async def due(reader: Reader, now: int, limit: int) -> list[str]:
    """Parked executions whose time has come, the earliest first."""
    return [row[0] for row in await reader.fetch("due_live", now, limit)]


async def take_due(tx: Transaction, worker: str, now: int, limit: int) -> list[str]:
    """The earliest of them, in no particular order, owned by the worker from now on, each under a fence one higher."""
    return [row[0] for row in await tx.fetch("take_due_live", worker, now, limit)]


async def next_wake(reader: Reader) -> int | None:
    """When the next parked execution is due."""
    row = await reader.fetch_one("next_wake")
    return None if row is None else row[0]
