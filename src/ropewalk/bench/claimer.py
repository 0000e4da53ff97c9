"""A worker that only claims, one execution at a time, and says how long each claim took that got something (ms)."""

import asyncio
import sys
import time
from typing import Final

import uvloop

from ropewalk.bench.processes import say
from ropewalk.store import queue
from ropewalk.store.access import Store
from ropewalk.store.postgres import PostgresStore

PAUSE: Final = 0.002
"""After a claim that got nothing (s): a worker in earnest waits longer."""


async def claims(store: Store, wanted: int) -> list[float]:
    """The times of so many claims, or of as many as there are."""
    times: list[float] = []
    served_last = ""
    while len(times) < wanted and await queue.any_waiting(store, store.now()):
        began = time.perf_counter()
        async with store.transaction() as tx:
            claimed, _ = await queue.claim(tx, tx.worker, store.now(), 1, after=served_last)
        if claimed:
            times.append((time.perf_counter() - began) * 1000)
            served_last = claimed[-1].workspace
        else:
            await asyncio.sleep(PAUSE)
    return times


async def live(db: str, wanted: int) -> None:
    store = await PostgresStore.open(db)
    try:
        say("ready")
        await asyncio.to_thread(sys.stdin.readline)
        say("times", *await claims(store, wanted))
    finally:
        await store.close()


if __name__ == "__main__":
    uvloop.run(live(sys.argv[1], int(sys.argv[2])))
