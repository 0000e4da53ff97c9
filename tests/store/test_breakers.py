"""Breakers: what one worker writes, every worker reads."""

from ropewalk.core.breaker import Breaker, BreakerState
from ropewalk.store import breakers
from ropewalk.store.access import Store
from tests.store.samples import NOON

OPEN = Breaker(BreakerState.OPEN, 5, 0, NOON, NOON + 1, NOON + 2, NOON + 3, None)
HALF_OPEN = Breaker(BreakerState.HALF_OPEN, 5, 1, NOON, NOON + 1, NOON + 2, NOON + 3, NOON + 4)


async def test_a_target_that_was_never_called_is_closed(store: Store):
    assert await breakers.get(store, "default", "http shop.example") == Breaker()


async def test_a_breaker_is_read_as_it_was_written_last(store: Store):
    async with store.transaction() as tx:
        await breakers.put(tx, "default", "shop", OPEN)
        locked = await breakers.lock(tx, "default", "shop")
        await breakers.put(tx, "default", "shop", HALF_OPEN)

    assert locked == OPEN
    assert await breakers.get(store, "default", "shop") == HALF_OPEN
    assert await breakers.get(store, "other", "shop") == Breaker()


async def test_breakers_are_listed_by_target_after_a_cursor(store: Store):
    rows = [breakers.entry("default", name, OPEN) for name in ("c", "a", "b")]
    await store.write([("upsert_breaker", rows)])

    assert await breakers.listed(store, "default", after="a") == [("b", OPEN), ("c", OPEN)]
