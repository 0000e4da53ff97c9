"""What the figures rest on: the floor, the rounds, the bars."""

import asyncio
import sqlite3
from functools import partial

import pytest

from ropewalk.bench import killing, rounds
from ropewalk.bench.claimer import claims
from ropewalk.bench.contenders import CONTENDERS, PYTHON, Broken, opened
from ropewalk.bench.figures import Figure, figures, percentile
from ropewalk.bench.floor import Floor
from ropewalk.bench.native import execute
from ropewalk.bench.queueing import SLOTS, refills
from ropewalk.bench.shapes import OUTPUT, chain, diamond, fan, single
from ropewalk.bench.stores import Files
from ropewalk.bench.table import rows
from ropewalk.bench.waiting import crowd, open_to_all
from ropewalk.core.definition import DEFAULT_LIMITS
from ropewalk.store import queue, workspaces
from ropewalk.store.errors import StoreUnavailable
from ropewalk.store.sqlite import SqliteStore
from ropewalk.wiring import Settings, open_service
from tests.store.conftest import path, postgres_store, sqlite_store, store

__all__ = ["path", "postgres_store", "sqlite_store", "store"]


def logged(db):
    with sqlite3.connect(db) as connection:
        found = connection.execute("select execution, seq, entry from log").fetchall()
    connection.close()
    return found


@pytest.fixture
def written(monkeypatch):
    """Every row of a log in the order in which they were committed."""
    found, write = [], SqliteStore.write

    async def noted(store, batch):
        await write(store, batch)
        found.extend(row for name, rows in batch if name == "insert_log" for row in rows)

    monkeypatch.setattr(SqliteStore, "write", noted)
    return found


@pytest.mark.parametrize("shape", [single(), chain(4), fan(3), diamond()], ids=lambda shape: shape.name)
async def test_the_floor_writes_one_row_per_start_and_one_per_node_in_the_order_of_the_graph(tmp_path, written, shape):
    db = str(tmp_path / "floor.db")
    async with opened("floor", db) as prepare:
        await (await prepare(shape))()
    places = [seq for _, seq, _ in written]

    assert sorted(written) == sorted(logged(db))
    assert sorted(places) == list(range(shape.size + 1))
    assert places[0] == 0
    assert all(places.index(source + 1) < places.index(target + 1) for source, target in shape.edges)


async def test_the_floor_keeps_executions_apart(tmp_path):
    db = str(tmp_path / "floor.db")
    async with opened("floor", db) as prepare:
        execute = await prepare(diamond())
        await asyncio.gather(*[execute() for _ in range(20)])
    found = logged(db)

    assert len({execution for execution, _, _ in found}) == 20
    assert len(found) == 20 * 6


async def test_a_wait_for_the_floor_ends_when_the_store_is_gone(tmp_path):
    store = await SqliteStore.open(str(tmp_path / "floor.db"))
    floor = Floor(store)
    committing = asyncio.create_task(floor.commit_for_ever())
    execute = await floor.prepare(single())
    await store.close()

    with pytest.raises(StoreUnavailable, match="was closed"):
        await execute()
    committing.cancel()


@pytest.mark.parametrize("contender", [*CONTENDERS, PYTHON])
async def test_every_contender_executes_the_same_shapes(tmp_path, contender):
    async with opened(contender, str(tmp_path / "bench.db")) as prepare:
        for shape in (single(), chain(3), fan(5), diamond()):
            await (await prepare(shape))()

    assert b"x" * 86 in b"".join(entry for _, _, entry in logged(tmp_path / "bench.db"))


def test_a_node_returns_about_a_hundred_bytes():
    assert 90 <= len(str(OUTPUT)) <= 110


async def test_an_execution_that_fails_measures_nothing(tmp_path):
    document = {"ropewalk": 1, "name": "failing", "nodes": [{"id": "a", "type": "fail", "with": {"message": "no"}}]}
    async with open_service(Settings(db=str(tmp_path / "bench.db"))) as service:
        version = await service.save({**document, "edges": []})

        with pytest.raises(Broken, match="FAILED"):
            await execute(service, version)


def test_a_process_that_says_nothing_breaks_the_measurement(tmp_path, capfd):
    with pytest.raises(Broken, match="before it said 'requested'"):
        killing.killed(DEFAULT_LIMITS.nodes + 1, 1, 1.0, Files(str(tmp_path)))
    assert "InvalidDefinition" in capfd.readouterr().err


@pytest.mark.parametrize(
    "measure",
    [partial(rounds.one_by_one, single(), 2, rounds.whole), partial(rounds.at_once, 2)],
    ids=["one_by_one", "at_once"],
)
def test_a_round_that_does_not_end_in_its_time_breaks_the_measurement(tmp_path, measure):
    with pytest.raises(Broken, match="did not end within 0 s"):
        measure(1, 0.0, Files(str(tmp_path)))


def test_rounds_end_with_their_time_but_one_is_always_made():
    assert list(rounds.turns(5, seconds=-1)) == [0]
    assert list(rounds.turns(3, seconds=60)) == [0, 1, 2]


def test_a_figure_is_the_median_of_its_rounds():
    found = figures("W2", "native", "sqlite", [{"ms_per_node": value} for value in (3.0, 1.0, 9.0)], 15)

    assert list(found) == [Figure("W2", "ms_per_node", 3.0, "ms", 15, "sqlite", "native")]


@pytest.mark.parametrize(("percent", "value"), [(50, 51), (95, 96), (99, 100), (100, 100)])
def test_a_percentile_is_one_of_the_values(percent, value):
    assert percentile(range(1, 101), percent) == value


@pytest.mark.parametrize(
    ("workload", "metric", "native", "floor", "row"),
    [
        ("W1", "latency_ms_p50", 1.8, 1.0, ("1.8", "1", "1.80 ×", "≤ 2 × ✓", "≤ 1.6 × ✗")),
        ("W1", "latency_ms_p95", 9.0, 3.0, ("9", "3", "3.00 ×", "", "")),
        ("W4", "executions_per_s", 2500.0, 5000.0, ("2,500", "5,000", "0.50 ×", "≥ 0.4 × ✓", "≥ 0.55 × ✗")),
        ("W4", "peak_rss_mb", 130.0, 40.0, ("130", "40", "3.25 ×", "≤ 120 MB ✗", "≤ 80 MB ✗")),
        ("W5", "seconds_lost", 0.2, None, ("0.2", "–", "–", "≤ 1 s ✓", "≤ 0.3 s ✓")),
        ("fairness", "fairness_ms", -0.5, None, ("-0.5", "–", "–", "≤ 100 ms ✓", "")),
    ],
)
def test_a_row_says_how_far_from_the_floor_and_whether_the_bars_are_met(workload, metric, native, floor, row):
    measured = [Figure(workload, metric, native, "", 1, "sqlite", "native")]
    if floor is not None:
        measured.append(Figure(workload, metric, floor, "", 1, "sqlite", "floor"))

    assert list(rows(measured)) == [(workload, metric, "native", *row)]


def test_several_workers_are_measured_by_one():
    rates = {"native": 2000.0, "floor": 4000.0, "native-1": 1000.0, "native-2": 2400.0}
    measured = [Figure("W4", "executions_per_s", rate, "1/s", 1, "postgres", name) for name, rate in rates.items()]

    assert [(row[2], *row[4:]) for row in rows(measured)] == [
        ("native", "4,000", "0.50 ×", "≥ 0.4 × ✓", "≥ 0.55 × ✗"),
        ("native-1", "2,000", "0.50 ×", "", ""),
        ("native-2", "2,000", "1.20 ×", "≥ 1.1 × ✓", "≥ 1.3 × ✗"),
    ]


@pytest.mark.parametrize(("store", "marks"), [("sqlite", ("≤ 1 s ✗", "≤ 0.3 s ✗")), ("postgres", ("", ""))])
def test_the_time_lost_is_judged_where_the_process_is_restarted_at_once(store, marks):
    [row] = rows([Figure("W5", "seconds_lost", 3.4, "s", 1, store, "native")])

    assert row[-2:] == marks


def test_a_freed_slot_is_empty_from_an_end_to_the_first_start_beyond_the_limit():
    began = [0.0] * SLOTS + [1.5, 2.25]
    ended = [1.0, 2.0, 3.0, 3.0, 3.0, 4.0, 4.0]

    assert list(refills(began, ended)) == [500.0, 250.0]


async def test_a_crowd_waits_for_the_one_slot_of_its_workspace_and_no_worker_can_claim_it(store):
    await crowd(store, "crowded", 3)
    async with store.transaction() as tx:
        claimed, _ = await queue.claim(tx, "w1", store.now(), 10)

    assert claimed == []
    assert (await workspaces.get(store, "crowded")).slots == 1
    assert await store.fetch("count_slots", "crowded") == [(1,)]
    assert await queue.any_waiting(store, store.now())


async def test_a_claimer_alone_gets_all_there_is_and_times_each(store):
    await open_to_all(store, "open", 4)

    assert len(await claims(store, 10)) == 4
    assert not await queue.any_waiting(store, store.now())


async def test_no_claimer_takes_more_than_wanted(store):
    await open_to_all(store, "open", 4)

    assert len(await claims(store, 3)) == 3
    assert await queue.any_waiting(store, store.now())
