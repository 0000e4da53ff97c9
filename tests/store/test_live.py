"""What is not over: owned by one worker, or parked until it is due."""

import pytest

from ropewalk.core.errors import Conflict
from ropewalk.store import live
from ropewalk.store.access import Store
from ropewalk.store.rows import LiveChange
from tests.store.samples import NOON, live_row


async def test_parked_executions_wake_when_due_the_earliest_first_and_few_at_a_time(store: Store):
    parked = [live_row(f"e{n}", wake_at=NOON + 10 - n) for n in range(5)]
    await store.write([("insert_live", [*parked, live_row("never"), live_row("owned", owner="local", wake_at=NOON)])])

    assert await live.next_wake(store) == NOON + 6
    async with store.transaction() as tx:
        first = await live.take_due(tx, "local", NOON + 9, 3)
        second = await live.take_due(tx, "local", NOON + 9, 3)

    assert (sorted(first), second) == (["e2", "e3", "e4"], ["e1"])


async def test_what_a_worker_wakes_is_its_own_under_a_higher_fence(store: Store):
    await store.write([("insert_live", [live_row("e1", fence=4, wake_at=NOON), live_row("e2", wake_at=NOON)])])

    async with store.transaction() as tx:
        await live.take_due(tx, "local", NOON, 9)

    assert [(found.execution, found.fence) for found in await live.owned(store, "local")] == [("e1", 5), ("e2", 1)]
    assert await live.due(store, NOON, 9) == []


async def test_what_a_worker_owns_is_read_page_by_page(store: Store):
    await store.write([("insert_live", [live_row(f"e{n}", owner="local") for n in range(5)])])

    assert [found.execution for found in await live.owned(store, "local", after="e1", limit=2)] == ["e2", "e3"]


async def test_a_change_says_everything_that_can_change(store: Store):
    await store.write([("insert_live", [live_row()])])
    await store.write([("update_live", [LiveChange("local", 7, NOON, 1, 0, "e1")])])

    found = await live.get(store, "e1")
    assert found is not None
    assert (found.owner, found.last_seq, found.wake_at, found.has_slot) == ("local", 7, NOON, 1)


async def test_two_cannot_hold_one_key(store: Store):
    await store.write([("insert_live", [live_row("e1", has_key=1, concurrency_key="k")])])
    await store.write([("insert_live", [live_row("e2", last_seq=3, concurrency_key="k")])])

    with pytest.raises(Conflict):
        await store.write([("update_live", [LiveChange("local", 3, None, 1, 1, "e2")])])


async def test_what_is_left_to_lie_has_no_owner_has_no_slot_and_is_not_woken(store: Store):
    async with store.transaction() as tx:
        await tx.execute("insert_live", *live_row("e1", owner="one", has_slot=1, wake_at=NOON))
        await live.abandon(tx, "another", "e1")
        still = await live.get(tx, "e1")
        await live.abandon(tx, "one", "e1")

    left = await live.get(store, "e1")
    assert still is not None
    assert left is not None
    assert (still.owner, still.has_slot) == ("one", 1)
    assert (left.owner, left.has_slot, left.wake_at) == (None, 0, None)


async def test_what_is_over_is_gone(store: Store):
    await store.write([("insert_live", [live_row()])])
    await store.write([("delete_live", [("e1",)])])

    assert await live.get(store, "e1") is None
