"""Runs: written once or brought up to date."""

from ropewalk.core.state import RunState
from ropewalk.store import runs
from ropewalk.store.access import Store
from tests.store.samples import NOON, run


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
