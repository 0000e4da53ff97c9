"""Offers: runs that others may carry out, leased to one runner at a time."""

from ropewalk.store import offers
from ropewalk.store.access import Store
from ropewalk.store.offers import Expired, Offer, Reported
from tests.store.samples import NOON, SECOND, offer


async def offered(store: Store, *rows: object) -> None:
    await store.write([("insert_offer", rows)])


async def leased(
    store: Store, runner: str, limit: int = 1, *, pool: str = "default", until: int = NOON + 10
) -> list[Offer]:
    async with store.transaction() as tx:
        return await offers.lease(tx, pool, runner, until, NOON, limit)


async def test_a_lease_goes_to_the_oldest_of_the_pool_and_to_one_runner(store: Store):
    await offered(store, offer("o1", offered_at=NOON + 2), offer("o2"), offer("o3", pool="gpu"))

    first, second = await leased(store, "ann"), await leased(store, "bob", 5)

    assert [(each.id, each.leased_by, each.fence) for each in (*first, *second)] == [("o2", "ann", 1), ("o1", "bob", 1)]
    assert [each.id for each in await leased(store, "gina", pool="gpu")] == ["o3"]


async def test_a_lease_is_extended_for_its_holder_only_and_before_its_end(store: Store):
    await offered(store, offer("o1"))
    [mine] = await leased(store, "ann")
    stale = Offer(**{**{name: getattr(mine, name) for name in Offer.__struct_fields__}, "fence": 2})

    async with store.transaction() as tx:
        answers = [
            await offers.extend(tx, mine, NOON + 20, NOON + 5),
            await offers.extend(tx, mine, NOON + 15, NOON + 20),
            await offers.extend(tx, stale, NOON + 99, NOON + 6),
            await offers.extend(tx, mine, NOON + 99, NOON + 21),
        ]

    assert answers == [False, False, None, None]


async def test_a_report_ends_the_offer_once_and_under_its_fence_only(store: Store):
    await offered(store, offer("o1", item=4))
    [mine] = await leased(store, "ann")

    async with store.transaction() as tx:
        late = await offers.end(tx, mine, NOON + 11)
        first = await offers.end(tx, mine, NOON + 9)
        again = await offers.end(tx, mine, NOON + 9)

    assert (late, first, again) == (None, Reported("e1", "a", 4, 1), None)


async def test_what_a_silent_runner_had_is_told_once(store: Store):
    await offered(store, offer("o1"), offer("o2", attempt=2))
    await leased(store, "ann")
    await leased(store, "ann", until=NOON + SECOND)

    async with store.transaction() as tx:
        found = [await offers.expired(tx, NOON + 50, 10) for _ in range(2)]

    assert found == [[Expired(Reported("e1", "a", None, 1), "ann", 10)], []]


async def test_a_run_is_withdrawn_while_no_runner_has_it_and_stopped_after(store: Store):
    await offered(store, offer("o1"), offer("o2", attempt=2))
    [mine] = await leased(store, "ann")

    async with store.transaction() as tx:
        withdrawn = [await offers.stop(tx, "e1", ("a", None, attempt)) for attempt in (1, 2)]
        is_stopped = await offers.extend(tx, mine, NOON + 20, NOON + 5)

    assert (withdrawn, is_stopped) == ([False, True], True)
    assert await offers.of_executions(store, ["e1", "e2"]) == {"e1": {("a", None, 1)}}


async def test_a_runner_of_one_workspace_is_handed_nothing_of_another(store: Store):
    await offered(store, offer("o1", workspace="elsewhere"), offer("o2"))

    async with store.transaction() as tx:
        found = await offers.lease_in(tx, "default", "default", "ann", NOON + 10, NOON, 5)

    assert [each.id for each in found] == ["o2"]
    assert await offers.is_waiting(store, "elsewhere", "default")
    assert not await offers.is_waiting(store, "default", "default")


async def test_a_lease_ends_no_later_than_it_is_capped(store: Store):
    await offered(store, offer("o1"))
    [mine] = await leased(store, "ann", until=NOON + 100)

    async with store.transaction() as tx:
        await offers.cap(tx, "o1", NOON + 5)
        late = await offers.end(tx, mine, NOON + 6)

    assert late is None


async def test_what_a_runner_never_heard_of_goes_to_the_next_under_another_fence(store: Store):
    await offered(store, offer("o1"))
    [mine] = await leased(store, "ann")

    async with store.transaction() as tx:
        await offers.unlease(tx, mine)
    [theirs] = await leased(store, "bob")

    assert (theirs.leased_by, theirs.fence) == ("bob", 2)
    assert await offers.get(store, "o1") == theirs
