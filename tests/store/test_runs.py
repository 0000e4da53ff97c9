"""Runs: written once or brought up to date, leased to one runner at a time."""

from ropewalk.core.state import RunState
from ropewalk.store import runs
from ropewalk.store.access import Store
from tests.store.samples import NOON, SECOND, run


def pending(name: str, at: int = NOON):
    return run(name, state="PENDING", retry_after=at, finished_at=None)


async def test_a_run_is_as_it_was_said_last(store: Store):
    waiting = run("r1", state="WAITING", finished_at=None)
    await store.write([("upsert_run", [waiting])])
    await store.write([("upsert_run", [run("r1", error="late")])])

    found = await runs.get(store, "r1")
    assert found is not None
    assert (found.state, found.finished_at, found.error) == ("SUCCESS", NOON + 5, "late")


async def test_runs_are_listed_in_order_with_filters_and_cursor(store: Store):
    rows = [run(f"r{n}", node="ab"[n % 2], state="FAILED" if n < 3 else "SUCCESS") for n in range(6)]
    await store.write([("upsert_run", [*rows, run("r9", execution="e2")])])

    async def ids(**options: object) -> list[str]:
        return [found.id for found in await runs.listed(store, "e1", **options)]

    assert await ids() == ["r0", "r1", "r2", "r3", "r4", "r5"]
    assert await ids(after="r1", limit=2) == ["r2", "r3"]
    assert await ids(node="a", state=RunState.SUCCESS) == ["r4"]


async def test_a_lease_goes_to_the_oldest_that_is_due_and_to_one_runner(store: Store):
    await store.write([("upsert_run", [pending("r1", NOON + 2), pending("r2", NOON), pending("r3", NOON + SECOND)])])

    async with store.transaction() as tx:
        first = await runs.lease(tx, "ann", NOON + SECOND, NOON + 5, 1)
        second = await runs.lease(tx, "bob", NOON + SECOND, NOON + 5, 5)

    assert [(found.id, found.leased_by, found.fence) for found in (*first, *second)] == [
        ("r2", "ann", 1), ("r1", "bob", 1),
    ]  # fmt: skip


async def test_a_lease_is_extended_for_its_holder_only_and_never_shortened(store: Store):
    await store.write([("upsert_run", [pending("r1")])])
    async with store.transaction() as tx:
        await runs.lease(tx, "ann", NOON + 10, NOON, 1)
        answers = [
            await runs.extend_lease(tx, "r1", "ann", 1, NOON + 20, NOON + 5),
            await runs.extend_lease(tx, "r1", "ann", 1, NOON + 15, NOON + 6),
            await runs.extend_lease(tx, "r1", "ann", 2, NOON + 99, NOON + 6),
            await runs.extend_lease(tx, "r1", "bob", 1, NOON + 99, NOON + 6),
            await runs.extend_lease(tx, "r1", "ann", 1, NOON + 99, NOON + 21),
        ]

    found = await runs.get(store, "r1")
    assert answers == [True, True, False, False, False]
    assert found is not None
    assert (found.lease_until, found.heartbeat_at) == (NOON + 20, NOON + 6)


async def test_runs_of_silent_runners_are_found_longest_silent_first(store: Store):
    await store.write([("upsert_run", [pending("r1"), pending("r2"), pending("r3")])])
    async with store.transaction() as tx:
        for until in (NOON + 20, NOON + 10, NOON + 99):
            await runs.lease(tx, "ann", until, NOON, 1)
        found = await runs.expired(tx, NOON + 50, 10)

    assert [each.lease_until for each in found] == [NOON + 10, NOON + 20]
