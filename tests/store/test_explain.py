"""What keeps an execution from running: places in the queue, and who has what."""

from ropewalk.store import explain, offers, queue, workspaces
from ropewalk.store.access import Store
from ropewalk.store.explain import Holder, Place, SharedRun
from ropewalk.store.workspaces import Plan
from tests.store.samples import NOON, accept, live_row, offer


async def places(store: Store, *names: str) -> list[tuple[str, int]]:
    found = [await queue.get(store, name) for name in names]
    placed = [(entry.id, (await explain.place(store, entry)).position) for entry in found if entry is not None]
    return sorted(((name, at) for name, at in placed if at is not None), key=lambda each: each[1])


async def test_places_are_those_of_the_claim(store: Store):
    names = ("young", "old", "twin", "urgent", "woken")
    async with store.transaction() as tx:
        await accept(tx, "young", enqueued_at=NOON - 1)
        await accept(tx, "old", enqueued_at=NOON - 9)
        await accept(tx, "twin", enqueued_at=NOON - 1)
        await accept(tx, "urgent", priority=9)
        await accept(tx, "woken", priority=0, is_new=0)

    placed = await places(store, *names)
    async with store.transaction() as tx:
        claimed = [entry.execution for entry in (await queue.claim(tx, "local", NOON, 10))[0]]

    assert [name for name, _ in placed] == claimed
    assert [place for _, place in placed] == [1, 2, 3, 4, 5]


async def test_only_those_of_the_same_workspace_that_wait_are_counted(store: Store):
    async with store.transaction() as tx:
        await workspaces.ensure(tx, "acme", Plan.PRO, NOON)
        await accept(tx, "other", workspace="acme", enqueued_at=NOON - 9)
        await accept(tx, "failed", enqueued_at=NOON - 9)
        await tx.execute("return_queue", "FAILED", NOON, 3, "no", "failed")
        await accept(tx, "mine")
        await accept(tx, "next", enqueued_at=NOON + 1)
        entry = await queue.get(tx, "mine")
        assert entry is not None

        assert await explain.place(tx, entry) == Place(1, 2)


async def test_a_long_queue_is_counted_no_further_than_wanted(store: Store):
    async with store.transaction() as tx:
        for n in range(5):
            await accept(tx, f"e{n}", enqueued_at=NOON + n)
        entries = [entry for n in range(5) if (entry := await queue.get(tx, f"e{n}")) is not None]

        assert [await explain.place(tx, entry, most=3) for entry in entries] == [
            Place(1, None), Place(2, None), Place(3, None), Place(None, None), Place(None, None),
        ]  # fmt: skip
        assert await explain.place(tx, entries[4], most=5) == Place(5, 5)


async def test_the_first_holders_of_slots_are_named_and_all_are_counted(store: Store):
    rows = [live_row(f"e{n}", owner=f"w{n}", has_slot=1) for n in range(4)]
    parked = live_row("parked")
    foreign = live_row("foreign", workspace="acme", has_slot=1)
    await store.write([("insert_live", [*rows[::-1], parked, foreign])])

    assert await queue.slots_taken(store, "default") == 4
    assert await explain.slot_holders(store, "default", 2) == [Holder("e0", "w0"), Holder("e1", "w1")]


async def test_the_holder_of_a_key_is_found_parked_or_not(store: Store):
    rows = [live_row(f"e{n}", concurrency_key="k", has_key=has_key) for n, has_key in enumerate((0, 1, 0))]
    await store.write([("insert_live", rows)])

    assert await explain.key_holders(store, "default", "k") == [Holder("e1", None)]
    assert await explain.key_holders(store, "default", "other") == []
    assert await explain.key_holders(store, "acme", "k") == []


async def test_shared_runs_are_those_offered_and_those_leased_of_one_execution(store: Store):
    offered = [offer("o1", node="a"), offer("o2", node="b", item=3), offer("o3", execution="e2")]
    await store.write([("insert_offer", offered)])
    async with store.transaction() as tx:
        await offers.lease(tx, "default", "ann", NOON + 10, NOON, 1)

    found = await explain.shared_runs(store, "e1", 10)

    assert found == [
        SharedRun("a", None, 1, "LEASED", "ann", NOON + 10),
        SharedRun("b", 3, 1, "PENDING", None, None),
    ]
    assert await explain.shared_runs(store, "e1", 1) == found[:1]
