"""Figures that only the store knows."""

from ropewalk.core.breaker import Breaker, BreakerState
from ropewalk.store import breakers, metrics, queue, workspaces
from ropewalk.store.access import Store
from ropewalk.store.metrics import FullWorkspace
from ropewalk.store.workspaces import Plan
from tests.store.samples import NOON, accept, letter


async def test_an_empty_store_has_nothing_to_count(store: Store):
    assert await metrics.waiting(store) == 0
    assert await metrics.full_workspaces(store) == []
    assert await metrics.dead_letters(store) == 0
    assert await metrics.breakers(store) == {}


async def test_a_workspace_is_full_while_something_waits_and_every_slot_is_taken(store: Store):
    async with store.transaction() as tx:
        await workspaces.ensure(tx, "small", Plan.FREE, NOON)
        for name in ("e1", "e2", "e3"):
            await accept(tx, name, workspace="small")
        await accept(tx, "e4")
    before = (await metrics.waiting(store), await metrics.full_workspaces(store))

    async with store.transaction() as tx:
        await queue.claim(tx, store.worker, NOON + 1, 10)

    assert before == (4, [])
    assert await metrics.waiting(store) == 2
    assert await metrics.full_workspaces(store) == [FullWorkspace("small", 1, 1)]


async def test_dead_letters_and_breakers_are_counted_by_how_they_are(store: Store):
    await store.write([("upsert_dead_letter", [letter("d1"), letter("d2", resolution="DISCARDED")])])
    async with store.transaction() as tx:
        for target, state in (("a", BreakerState.OPEN), ("b", BreakerState.OPEN), ("c", BreakerState.CLOSED)):
            await breakers.put(tx, "default", target, Breaker(state))

    assert await metrics.dead_letters(store) == 1
    assert await metrics.breakers(store) == {"OPEN": 2, "CLOSED": 1}
