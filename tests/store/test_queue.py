"""The queue: slots and keys are never exceeded, turns are fair, priority then age decides."""

import pytest

from ropewalk.store import live, queue, workspaces
from ropewalk.store.access import Store
from ropewalk.store.queue import Returned
from ropewalk.store.rows import LiveChange
from ropewalk.store.workspaces import Plan
from tests.store.samples import NOON, SECOND, accept, seen, waiting


async def claimed(store: Store, limit: int = 10, *, now: int = NOON, after: str = "") -> list[str]:
    async with store.transaction() as tx:
        return [entry.execution for entry in (await queue.claim(tx, "local", now, limit, after=after))[0]]


async def test_a_claim_is_ownership_slot_and_dispatch_at_once(store: Store):
    async with store.transaction() as tx:
        await accept(tx, "e1", concurrency_key="k")
        [entry], _ = await queue.claim(tx, "local", NOON, 10)

    held, queued = await live.get(store, "e1"), await queue.get(store, "e1")
    assert held is not None
    assert queued is not None
    assert (held.owner, held.has_slot, held.has_key, held.fence) == ("local", 1, 1, entry.fence)
    assert (entry.fence, entry.last_seq, entry.workflow, entry.version) == (1, 1, "w1", 1)
    assert (queued.state, queued.claimed_by, queued.claimed_at) == ("CLAIMED", "local", NOON)


async def test_what_was_claimed_is_not_claimed_again(store: Store):
    async with store.transaction() as tx:
        await accept(tx, "e1")

    assert (await claimed(store), await claimed(store)) == (["e1"], [])


async def test_what_goes_on_comes_before_what_is_new_then_priority_then_age(store: Store):
    async with store.transaction() as tx:
        await accept(tx, "young", enqueued_at=NOON - 1)
        await accept(tx, "old", enqueued_at=NOON - 9)
        await accept(tx, "urgent", priority=9)
        await accept(tx, "woken", priority=0, is_new=0)

    assert await claimed(store) == ["woken", "urgent", "old", "young"]


async def test_what_is_not_due_waits(store: Store):
    async with store.transaction() as tx:
        await accept(tx, "e1", not_before=NOON + SECOND)

    assert (await claimed(store), await claimed(store, now=NOON + SECOND)) == ([], ["e1"])


async def test_what_came_while_the_claim_was_on_its_way_has_its_place_in_line(store: Store):
    async with store.transaction() as tx:
        await accept(tx, "early", enqueued_at=NOON, not_before=NOON)
        await accept(tx, "urgent", priority=9, enqueued_at=NOON + 2, not_before=NOON + 2)

    assert await claimed(store, 1, now=NOON + 1) == ["urgent"]


async def test_a_workspace_never_has_more_than_its_slots(store: Store):
    async with store.transaction() as tx:
        await workspaces.ensure(tx, "acme", Plan.PRO, NOON)
        for n in range(9):
            await accept(tx, f"e{n}", workspace="acme")

    first, full = await claimed(store, 3) + await claimed(store, 99), await claimed(store)
    await store.write([("delete_live", [("e0",)]), ("delete_queue", [("e0",)])])

    assert (len(first), full, await claimed(store)) == (5, [], ["e5"])
    assert await seen(store, "select count(*) from live where has_slot = 1") == [(5,)]


async def test_a_full_workspace_delays_no_other_even_with_room_for_one(store: Store):
    async with store.transaction() as tx:
        await workspaces.ensure(tx, "a full one", Plan.FREE, NOON)
        for n in range(5):
            await accept(tx, f"full{n}", workspace="a full one")
        await accept(tx, "mine")

    assert (await claimed(store, 1), await claimed(store, 1)) == (["full0"], ["mine"])


async def test_workspaces_take_turns_however_long_their_queues(store: Store):
    async with store.transaction() as tx:
        for name in ("a", "b", "c"):
            await workspaces.ensure(tx, name, Plan.ENTERPRISE, NOON)
            for n in range(10 if name == "a" else 2):
                await accept(tx, f"{name}{n}", workspace=name)

    assert await claimed(store, 5) == ["a0", "b0", "c0", "a1", "b1"]
    assert await claimed(store, 3, after="b") == ["c1", "a2", "a3"]


async def test_a_key_is_held_by_one_execution_at_a_time(store: Store):
    async with store.transaction() as tx:
        for n in range(3):
            await accept(tx, f"e{n}", concurrency_key="order 7", enqueued_at=NOON - 9 + n)
        await accept(tx, "other", concurrency_key="order 8")
        await accept(tx, "none")

    first, blocked = await claimed(store), await claimed(store)
    await store.write([("delete_live", [("e0",)])])

    assert (first, blocked, await claimed(store)) == (["e0", "none", "other"], [], ["e1"])


async def test_an_execution_that_kept_its_key_while_parked_goes_on_with_it(store: Store):
    async with store.transaction() as tx:
        await accept(tx, "e1", concurrency_key="k")
        await queue.claim(tx, "local", NOON, 1)
        await tx.execute("update_live", *LiveChange(None, 5, None, 0, 1, "e1"))
        await accept(tx, "e2", concurrency_key="k")
        await tx.execute("insert_queue", *waiting("e1", is_new=0))

    assert await claimed(store) == ["e1"]


async def test_what_was_claimed_and_could_not_be_dispatched_wakes_when_it_was_to(store: Store):
    async with store.transaction() as tx:
        await accept(tx, "e1", is_new=0)
        await tx.execute("update_live", *LiveChange(None, 1, NOON + SECOND, 0, 0, "e1"))
        [entry], _ = await queue.claim(tx, "local", NOON, 10)
        while_claimed = await live.due(tx, NOON + SECOND, 10)
        await queue.unclaim(tx, "local", entry, Returned("PENDING", NOON + 9 * SECOND, 1, "no such file"))
        returned = await live.due(tx, NOON + SECOND, 10)

    assert while_claimed == []
    assert returned == ["e1"]
    assert await live.next_wake(store) == NOON + SECOND


@pytest.mark.parametrize(("state", "is_new", "has_key"), [("PENDING", 1, 0), ("PENDING", 0, 0), ("RUNNING", 0, 1)])
async def test_what_could_not_be_dispatched_keeps_its_key_only_if_it_had_begun(
    store: Store, state: str, is_new: int, has_key: int
):
    async with store.transaction() as tx:
        await accept(tx, "e1", concurrency_key="k", is_new=is_new)
        await tx.execute("set_execution", state, None, None, None, "e1")
        [entry], _ = await queue.claim(tx, "local", NOON, 10)
        await queue.unclaim(tx, "local", entry, Returned("FAILED", NOON, 1, "no such file"))
        returned = await live.get(tx, "e1")

    assert returned is not None
    assert (returned.has_slot, returned.has_key) == (0, has_key)


async def test_an_entry_that_failed_waits_anew_when_enqueued_again(store: Store):
    async with store.transaction() as tx:
        await accept(tx, "e1")
        await tx.execute("return_queue", "FAILED", NOON, 3, "no such workflow", "e1")
        failed = await queue.get(tx, "e1")
        await tx.execute("insert_queue", *waiting("e1"))
        again = await queue.get(tx, "e1")

    assert failed is not None
    assert again is not None
    assert (failed.state, failed.attempts, failed.error) == ("FAILED", 3, "no such workflow")
    assert (again.state, again.attempts, again.error, again.claimed_by) == ("PENDING", 0, None, None)


async def test_an_entry_is_removed_once(store: Store):
    async with store.transaction() as tx:
        await accept(tx, "e1")
        answers = [await tx.execute("delete_queue", "e1") for _ in range(2)]

    assert answers == [1, 0]
