"""Workers: who may write, and who was heard of when."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ropewalk.store import suspicion
from ropewalk.store.access import Reader, Transaction, json_list

MOST_SHOWN: Final = 1_000
"""How many of them people see."""

NEVER: Final = 2**62
"""Later than any time."""


class Worker(Struct, frozen=True):
    """A process that owns executions; what it writes counts only under its current epoch."""

    id: str
    epoch: int
    host: str
    pid: int
    version: str
    pool: str
    slots: int
    load: int
    started_at: int
    heartbeat_at: int


async def expel(tx: Transaction, worker: str) -> bool:
    """What is written as this worker is refused from now on; whether there is such a worker."""
    return await tx.execute("raise_epoch", worker) == 1


async def stop_taking(tx: Transaction, worker: str) -> None:
    """The worker finishes what it has, and takes nothing more: no start is to wait for it."""
    await tx.execute("stop_taking", worker)


async def get(reader: Reader, worker: str) -> Worker | None:
    """The worker of this id, if there is one."""
    row = await reader.fetch_one("get_worker", worker)
    return None if row is None else Worker(*row)


async def listed(reader: Reader, limit: int = 100) -> list[Worker]:
    """The workers heard of last, first."""
    return [Worker(*row) for row in await reader.fetch("list_workers", limit)]


async def silent(reader: Reader, before: int, after: int, limit: int) -> list[str]:
    """Workers that left something behind and were heard of neither since `before` nor until `after`, a time to come."""
    return [row[0] for row in await reader.fetch("silent_workers", before, after, limit)]


async def owning(reader: Reader, workers: Sequence[str], limit: int) -> list[str]:
    """Those of the workers that have something in hand."""
    return [row[0] for row in await reader.fetch("owning_workers", json_list(workers), limit)]


async def take_over(tx: Transaction, dead: str, worker: str, before: int, limit: int, after: int = NEVER) -> list[str]:
    """Gives the worker up to `limit` executions of a dead one, whose late writes are refused from now on.

    Nothing, if the store has heard of it since `before` and until `after`: it is not dead. Nor while a transaction has
    its row, be it its own or that of another who takes over from it.
    """
    heard = await tx.fetch_one("lock_worker", dead)
    if heard is None or before <= heard[0] <= after:
        return []
    await expel(tx, dead)
    taken = [row[0] for row in await tx.fetch("take_over_live", worker, dead, limit)]
    await suspicion.raise_for(tx, taken)
    return taken


async def hang_up(reader: Reader, before: int) -> None:
    """What workers have under way in the store that it has not heard of since then is undone."""
    await reader.fetch("hang_up", before)


async def forget(tx: Transaction, worker: str, before: int) -> int:
    """Others than this worker, last heard of before then, that own nothing are no longer listed; how many."""
    return await tx.execute("forget_workers", worker, before)
