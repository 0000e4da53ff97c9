"""The long history that the store's speed is measured with, and how its plans are judged."""

import asyncpg
import pytest

from ropewalk.bench.floor import open_store
from ropewalk.core import log
from ropewalk.store import executions, runs
from ropewalk.store import log as stored_log
from tools import million_plans, million_rows

SIZE = 70


@pytest.fixture(params=["sqlite", "postgres"])
def db(request, tmp_path):
    return str(tmp_path / "full.db") if request.param == "sqlite" else request.getfixturevalue("database")


@pytest.fixture
async def store(db, monkeypatch):
    monkeypatch.setattr(million_rows, "AT_A_TIME", 50)
    await million_rows.make(db, SIZE)
    opened = await open_store(db)
    yield opened
    await opened.close()


async def test_a_copied_history_has_as_many_executions_as_wanted_oldest_first(store):
    found = await executions.listed(store, "default", limit=200)
    ids = [each.id for each in found]

    assert len(ids) == SIZE + 1
    assert ids == sorted(ids, reverse=True)
    assert {(len(each.id), each.state) for each in found} == {(36, "SUCCESS")}


async def test_every_copy_has_a_log_and_runs_of_its_own(store):
    for copy in await executions.listed(store, "default", limit=200):
        entries = await stored_log.entries(store, copy.id)
        events = list(log.decode_all(entry for _, entry in entries))
        found = await runs.listed(store, copy.id)

        assert events[0].execution == copy.id
        assert type(events[-1]).__name__ == "ExecutionSucceeded"
        assert [(run.execution, run.node) for run in found] == [(copy.id, "n0")]
        assert copy.trace_id == copy.id.replace("-", "")


async def test_no_statement_of_the_hot_path_walks_through_history(db, store):
    shown = await million_plans.shown(db)

    assert [line for line in shown if "✗" in line] == []
    assert sum("✓" in line for line in shown) == len(million_plans.ASKED) + len(million_plans.WRITTEN)


@pytest.mark.parametrize(
    ("line", "is_walked"),
    [
        ("->  Seq Scan on log", True),
        ("->  Parallel Seq Scan on log holder", True),
        ("->  Seq Scan on log_of_something", False),
        ("->  Index Scan using log_pkey on log", False),
        ("SCAN log", True),
        ("SCAN log USING INDEX log_by_something", False),
        ("SEARCH log USING INDEX sqlite_autoindex_log_1 (execution=?)", False),
    ],
)
def test_a_walk_through_a_table_is_told_from_the_use_of_an_index(line, is_walked):
    assert million_plans.is_walked("log", line) is is_walked


async def test_a_walk_through_history_is_said(database):
    connection = await asyncpg.connect(database)
    try:
        plan = await million_plans.explained(connection, "select count(state) from execution", ())
    finally:
        await connection.close()

    assert next(million_plans.lines("count", plan)) == "\ncount: walks through execution ✗"
