"""Executions: found by their workspace only, listed page by page, by any filter."""

import pytest

from ropewalk.core.state import ExecutionState, TriggerType
from ropewalk.store import executions
from ropewalk.store.access import Store
from ropewalk.store.executions import Filter
from ropewalk.store.rows import ExecutionChange
from tests.store.samples import NOON, SECOND, execution, live_row, run


async def test_an_accepted_execution_is_found_in_its_workspace_only(store: Store):
    await store.write([("insert_execution", [execution()])])

    found = await executions.get(store, "default", "e1")
    assert found == await executions.load(store, "e1")
    assert found is not None
    assert (found.state, found.accepted_at) == ("PENDING", NOON)
    assert await executions.get(store, "other", "e1") is None


async def test_an_end_is_recorded(store: Store):
    await store.write([("insert_execution", [execution()])])
    await store.write([("set_execution", [ExecutionChange("FAILED", NOON, NOON + 5, "no", "e1")])])

    found = await executions.load(store, "e1")
    assert found is not None
    assert (found.state, found.started_at, found.finished_at, found.error) == ("FAILED", NOON, NOON + 5, "no")


STATES = ["SUCCESS", "FAILED", "RUNNING", "TIMEOUT", "PAUSED", "CANCELLED"]


@pytest.fixture
async def history(store: Store) -> Store:
    """Sixty executions, e00 to e59, one a second: six states in turn, two workflows, every third by cron."""
    rows = [
        execution(
            f"e{n:02}",
            workflow=f"w{n % 2}",
            state=STATES[n % 6],
            trigger="MANUAL" if n % 3 else "CRON",
            accepted_at=NOON + n * SECOND,
        )
        for n in range(60)
    ]
    lives = [live_row(row.id) for row in rows if row.state in ("RUNNING", "PAUSED")]
    rows.append(execution("e99", workspace="other"))
    await store.write([("insert_execution", rows), ("insert_live", lives)])
    failed = [row for row in rows if row.state in ("FAILED", "TIMEOUT")]
    errors = {"FAILED": "at 100%!_ of it", "TIMEOUT": "too late"}
    ends = [ExecutionChange(row.state, NOON, NOON, errors[row.state], row.id) for row in failed]
    # Every second one that runs waits.
    runs = [run(f"r{n:02}", execution=f"e{n:02}", state="WAITING") for n in range(2, 60, 12)]
    async with store.transaction() as tx:
        await tx.execute("insert_workflow", "w1", "default", "The Second", NOON)
    await store.write([("set_execution", ends), ("upsert_run", runs)])
    return store


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(), range(60)),
        (Filter(workflow="w1"), range(1, 60, 2)),
        (Filter(trigger=TriggerType.CRON), range(0, 60, 3)),
        (Filter(state=ExecutionState.SUCCESS), range(0, 60, 6)),
        (Filter(state=ExecutionState.FAILED), range(1, 60, 6)),
        (Filter(state=ExecutionState.TIMEOUT), range(3, 60, 6)),
        (Filter(state=ExecutionState.RUNNING), range(2, 60, 6)),
        (Filter(state=ExecutionState.PAUSED, workflow="w0"), range(4, 60, 6)),
        (Filter(state=ExecutionState.PAUSED, workflow="w1"), range(0)),
        (Filter(state=ExecutionState.FAILED, workflow="w1", trigger=TriggerType.MANUAL), range(1, 60, 6)),
        (Filter(since=NOON + 10 * SECOND, until=NOON + 20 * SECOND), range(10, 20)),
        (Filter(workflow="w0", since=NOON + 50 * SECOND), range(50, 60, 2)),
        (Filter(id_part="e1"), range(10, 20)),
        (Filter(id_part="7"), range(7, 60, 10)),
        (Filter(id_part="7", workflow="w0"), range(0)),
        (Filter(id_part="7", workflow="w1", state=ExecutionState.FAILED), range(7, 60, 30)),
        (Filter(id_part="7", among=("w1", "nosuch")), range(7, 60, 10)),
        (Filter(id_part="e99"), range(0)),
        (Filter(is_waiting=True), range(2, 60, 12)),
        (Filter(is_waiting=True, state=ExecutionState.PAUSED), range(0)),
        (Filter(search="E5"), range(50, 60)),
        (Filter(search="100%!_"), range(1, 60, 6)),
        (Filter(search="100_"), range(0)),
        (Filter(search="100%!_", reads_payloads=False), range(0)),
        (Filter(search="the second"), range(1, 60, 2)),
        (Filter(search="the second", state=ExecutionState.TIMEOUT, reads_payloads=False), range(3, 60, 6)),
        (Filter(search="e1", is_waiting=True), range(14, 15)),
        (Filter(among=("w0", "w1"), state=ExecutionState.FAILED), range(1, 60, 6)),
    ],
)
async def test_pages_together_are_every_execution_wanted_newest_first(history: Store, wanted: Filter, expected: range):
    found: list[str] = []
    cursor = executions.NEWEST
    while page := await executions.listed(history, "default", wanted, before=cursor, limit=7):
        assert len(page) <= 7
        found += [row.id for row in page]
        cursor = page[-1].id
    first = await executions.first(history, "default", wanted, after="e05", before="e50", limit=7)

    assert found == [f"e{n:02}" for n in reversed(expected)]
    assert [row.id for row in first] == [f"e{n:02}" for n in expected if 5 < n < 50][:7]
    assert await executions.counted(history, "default", wanted) == len(expected)
    assert await executions.counted(history, "default", wanted, limit=3) == min(3, len(expected))
