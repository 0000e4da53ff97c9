"""How long a claim takes while several workers, each a process of its own, want what is there."""

from contextlib import ExitStack
from typing import Final

import uvloop

from ropewalk.bench.contenders import NATIVE_4, Broken
from ropewalk.bench.figures import Round, percentile
from ropewalk.bench.processes import started
from ropewalk.bench.rounds import Measured, turns
from ropewalk.bench.stores import Stores
from ropewalk.bench.waiting import open_to_all
from ropewalk.store.postgres import PostgresStore

CLAIMERS: Final = 4
WORKSPACES: Final = 8


def lease(claims: int, rounds: int, seconds: float, stores: Stores) -> Measured:
    """Rounds of so many claims by each of the workers."""
    found = []
    for _ in turns(rounds, seconds):
        with stores.fresh() as db:
            found.append(_round(db, claims))
    return {NATIVE_4: found}


def _round(db: str, claims: int) -> Round:
    uvloop.run(_fill(db, CLAIMERS * claims))
    with ExitStack() as stack:
        claimers = [stack.enter_context(started("claimer", db, str(claims))) for _ in range(CLAIMERS)]
        for each in claimers:
            each.words("ready")
        for each in claimers:
            each.tell("go")
        times = sorted(float(word) for each in claimers for word in each.words("times")[1:])
    if not times:
        raise Broken("no claim got anything")
    return {"lease_ms_p50": percentile(times, 50), "lease_ms_p95": percentile(times, 95)}


async def _fill(db: str, size: int) -> None:
    store = await PostgresStore.open(db)
    try:
        for place in range(WORKSPACES):
            await open_to_all(store, f"tenant-{place}", -(-size // WORKSPACES))
    finally:
        await store.close()
