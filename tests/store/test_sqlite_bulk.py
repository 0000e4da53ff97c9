"""A batch as one statement does what its statements do one by one."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ropewalk.core.errors import Conflict
from ropewalk.store.access import Batch
from ropewalk.store.bulk import FEW, bulk
from ropewalk.store.errors import StaleWriter, StoreDefect
from ropewalk.store.rows import ROWS, RunEntry
from ropewalk.store.sqlite import SqliteStore
from ropewalk.store.sqlite import bulk as bulk_of_sqlite
from ropewalk.store.sqlite.bulk import _MOST_FORMS, Message, for_many
from tests.store.samples import ask, entries, execution, run, tell
from tests.store.statements import CHANGES, INSERTS, Samples, is_for_what_is_there

COLUMNS = 'select m.name, c.name, c.type, c."notnull" from sqlite_master as m, pragma_table_info(m.name) as c'
COUNTS = [1, 6, FEW - 1, FEW, 300]


@pytest.fixture
def store(sqlite_store: SqliteStore) -> SqliteStore:
    """Only this kind is spoken of here."""
    return sqlite_store


@pytest.fixture
async def twin(tmp_path: Path) -> Any:
    """A second store to compare with."""
    store = await SqliteStore.open(str(tmp_path / "twin.db"))
    yield store
    await store.close()


@pytest.fixture
def samples(store: SqliteStore) -> Samples:
    columns = ask(store.path, COLUMNS)
    kinds = [
        (table, column, {"BIGINT": "bigint", "bytea": "bytea"}.get(kind, kind)) for table, column, kind, _ in columns
    ]
    return Samples(kinds, [(table, column) for table, column, _, is_needed in columns if not is_needed])


def table_of(store: SqliteStore, name: str) -> list[tuple[Any, ...]]:
    return sorted(ask(store.path, f"select * from {bulk(name).table}"), key=repr)


def table_of_runs(store: SqliteStore) -> list[tuple[Any, ...]]:
    """As far as it is written: one column is of earlier versions."""
    return sorted(ask(store.path, f"select {', '.join(RunEntry._fields)} from run"))


async def one_by_one(store: SqliteStore, batch: Batch) -> None:
    async with store.transaction() as tx:
        for name, rows in batch:
            for row in rows:
                await tx.execute(name, *row)


@pytest.mark.parametrize("is_in_transaction", [False, True])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", ROWS)
async def test_in_bulk_is_the_same_as_row_by_row(
    store: SqliteStore, twin: SqliteStore, samples: Samples, name: str, count: int, is_in_transaction: bool
):
    table = bulk(name).table
    before = [(each, samples.rows(each, count, 0)) for each in INSERTS if bulk(each).table == table][:1]
    parts = [before, [(name, samples.rows(name, count + 2, 1))]] if is_for_what_is_there(name) else [before]
    for part in parts:
        assert Message(part).forms
        if is_in_transaction:
            async with store.transaction() as tx:
                for each, rows in part:
                    await tx.execute_many(each, rows)
        else:
            await store.write(part)
        await one_by_one(twin, part)

    found = table_of(store, name)

    assert found == table_of(twin, name)
    assert found or name.startswith("delete")


@pytest.mark.parametrize("count", COUNTS)
async def test_everything_together_is_the_same_as_one_after_the_other(
    store: SqliteStore, twin: SqliteStore, samples: Samples, count: int
):
    inserted = [(name, samples.rows(name, count, 0)) for name in INSERTS]
    changed = [(name, samples.rows(name, count, 1)) for name in CHANGES]
    batch = [*inserted, *changed]
    assert Message(batch).forms
    await store.write(batch)
    await one_by_one(twin, batch)

    for name in ROWS:
        assert table_of(store, name) == table_of(twin, name), name


async def test_a_stale_worker_changes_nothing_by_any_statement(store: SqliteStore, path: str, samples: Samples):
    await store.write([(name, samples.rows(name, 6, 0)) for name in INSERTS])
    before = {name: table_of(store, name) for name in ROWS}
    tell(path, "update worker set epoch = epoch + 1")
    for number, name in enumerate(ROWS, 1):
        with pytest.raises(StaleWriter):
            await store.write([(name, samples.rows(name, 7, 1))])
        assert store.stale_writes == number

    assert {name: table_of(store, name) for name in ROWS} == before


@pytest.mark.parametrize("count", [1, FEW, 300])
async def test_what_all_rows_share_is_said_once_and_kept_in_each(store: SqliteStore, count: int):
    rows = [run(f"r{place}", error=None) for place in range(count)]

    await store.write([("upsert_run", rows)])

    assert table_of_runs(store) == sorted(map(tuple, rows))


def sayings() -> Iterator[Any]:
    for count in (1, FEW):
        yield pytest.param(
            [("upsert_run", [run(f"r{place}", error="a\0b") for place in range(count)])], id=f"same {count}"
        )
        rows = [run(f"r{place}", error=f"{place}\0b") for place in range(count)]
        yield pytest.param([("upsert_run", rows)], id=f"NUL {count}")
    odd = "\\u0000 \\ \" ' ; -- 🪢 \u2028 \x7f"
    yield pytest.param([("upsert_run", [run("r1", error=odd), run("r2", node=odd)])], id="odd texts")
    yield pytest.param([("insert_log", [("e1", 1, b""), ("e1", 2, b"\0\xff"), ("e2", 1, b"")])], id="bytes of any kind")
    yield pytest.param([("insert_log", [("e1", 1, b"")])], id="no bytes")


@pytest.mark.parametrize("batch", list(sayings()))
async def test_texts_and_bytes_of_any_content_are_kept(store: SqliteStore, twin: SqliteStore, batch: Batch):
    await store.write(batch)
    await one_by_one(twin, batch)

    assert table_of(store, batch[0][0]) == table_of(twin, batch[0][0])
    assert len(table_of(store, batch[0][0])) == len(batch[0][1])


async def test_what_is_too_long_for_one_value_is_written_row_by_row(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bulk_of_sqlite, "LARGEST", 1_000)
    store._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2_000)
    logs, runs = [("e1", seq, b"x" * 900) for seq in range(5)], [run(f"r{each}", error="x" * 900) for each in range(5)]

    await store.write([("insert_log", logs)])
    await store.write([("upsert_run", runs)])

    assert (table_of(store, "insert_log"), table_of_runs(store)) == (logs, runs)


async def test_a_view_without_its_trigger_is_made_anew(store: SqliteStore):
    store._connection.execute("create temp view commit_0 as select 1")

    await store.write([("insert_log", entries("e1", 1))])

    assert ask(store.path, "select count(*) from log") == [(1,)]


@pytest.mark.parametrize("count", [2, 100])
async def test_updates_of_one_row_are_carried_out_one_after_another(store: SqliteStore, count: int):
    await store.write([("insert_execution", [execution("e1")])])
    changes = [("RUNNING", place, None, None, "e1") for place in range(count)]

    await store.write([("set_execution", changes)])

    assert ask(store.path, "select started_at from execution") == [(count - 1,)]


async def test_what_is_inserted_twice_is_refused_and_nothing_of_it_is_kept(store: SqliteStore):
    await store.write([("insert_log", entries("e1", 3))])

    with pytest.raises(Conflict, match=r"log\.execution, log\.seq"):
        await store.write([("upsert_run", [run("r1")]), ("insert_log", entries("e1", 4)[2:])])

    assert (ask(store.path, "select count(*) from log"), ask(store.path, "select * from run")) == ([(3,)], [])


@pytest.mark.parametrize("row", [("e1", 1, "{}\ud800"), ("e1",)], ids=["text", "short"])
async def test_rows_that_cannot_be_written_are_refused_and_the_next_are_written(store: SqliteStore, row: Any):
    message = store.prepared([("insert_log", [row])])

    with pytest.raises((UnicodeEncodeError, StoreDefect)):
        await store.write(message)
    await store.write([("insert_log", entries("e1", 1))])

    assert ask(store.path, "select count(*) from log") == [(1,)]


async def test_any_number_of_kinds_of_batches_can_be_written(store: SqliteStore, samples: Samples):
    """Each has a view of its own, and the old ones make room."""
    names = INSERTS[:9]
    kinds = [[name for place, name in enumerate(names) if kind >> place & 1] for kind in range(1, _MOST_FORMS + 60)]
    for number, kind in enumerate(kinds):
        await store.write([(name, [_renamed(row, number) for row in samples.rows(name, 1, 0)]) for name in kind])

    assert len(table_of(store, names[0])) == sum(names[0] in kind for kind in kinds)
    views = store._connection.execute("select count(*) from sqlite_temp_master where type = 'view'").fetchone()
    assert views[0] <= _MOST_FORMS


def _renamed(row: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    return tuple(f"{value} {number}" if isinstance(value, str) else value for value in row)


async def test_a_view_of_a_batch_is_the_connections_alone(store: SqliteStore):
    await store.write([("insert_log", entries("e1", 1))])

    with sqlite3.connect(store.path) as other:
        found = other.execute("select name from sqlite_master where type in ('view', 'trigger')").fetchall()

    assert found == []


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_changed_is_found_by_an_index(store: SqliteStore, name: str):
    text = for_many((name, ()), "?1", "?2")

    plan = [row[3] for row in store._connection.execute(f"explain query plan {text}", ("", "[]"))]

    assert any(line.startswith(f"SEARCH {bulk(name).table} USING") for line in plan), plan
