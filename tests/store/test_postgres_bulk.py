"""A batch as one statement does what its statements do one by one."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from uuid_utils import uuid7

from ropewalk.store.access import Batch
from ropewalk.store.bulk import FEW, bulk, primary_keys
from ropewalk.store.errors import StaleWriter, StoreDefect
from ropewalk.store.postgres import PostgresStore
from ropewalk.store.postgres.bulk import Message, composed, layered
from ropewalk.store.rows import ROWS, ExecutionChange
from tests.postgres import PostgresServer, ask
from tests.store.samples import NOON, entries, execution, run
from tests.store.statements import CHANGES, INSERTS, Samples, as_in_a_burst, is_for_what_is_there

NULLABLE = "select table_name, column_name from information_schema.columns where is_nullable = 'YES'"
KINDS = "select table_name, column_name, data_type from information_schema.columns where table_schema = 'public'"
COUNT = 6


@pytest.fixture
async def twin(postgres: PostgresServer) -> AsyncIterator[PostgresStore]:
    """A second store to compare with."""
    url = await postgres.lend()
    store = await PostgresStore.open(url, worker="twin", notify=False)
    yield store
    await store.close()
    await postgres.take_back(url)


@pytest.fixture
async def samples(database: str) -> Samples:
    return Samples(await ask(database, KINDS), await ask(database, NULLABLE))


async def table_of(store: PostgresStore, name: str) -> list[tuple[Any, ...]]:
    return sorted(await ask(store._address.url, f"select * from {bulk(name).table}"), key=repr)


async def one_by_one(store: PostgresStore, batch: Batch) -> None:
    async with store.transaction() as tx:
        for name, rows in batch:
            for row in rows:
                await tx.execute(name, *row)


@pytest.mark.parametrize("name", ROWS)
async def test_in_bulk_is_the_same_as_row_by_row(
    postgres_store: PostgresStore, twin: PostgresStore, samples: Samples, name: str
):
    table = bulk(name).table
    before = [(each, samples.rows(each, COUNT, 0)) for each in INSERTS if bulk(each).table == table][:1]
    again = is_for_what_is_there(name)
    batch = [(name, samples.rows(name, COUNT + 2, 1))] if again else before
    for part in [before, batch] if again else [batch]:
        await postgres_store.write(part)
        await one_by_one(twin, part)

    found = await table_of(postgres_store, name)

    assert found == await table_of(twin, name)
    assert found or name.startswith("delete")


@pytest.mark.parametrize("name", [name for name in ROWS if bulk(name).alike])
async def test_what_all_rows_share_is_said_once_and_kept_in_each(
    postgres_store: PostgresStore, twin: PostgresStore, samples: Samples, name: str
):
    before = next(each for each in INSERTS if bulk(each).table == bulk(name).table)
    writer = postgres_store._writer
    assert writer
    writer._prepared.clear()
    for turn, each in enumerate([before, name] if is_for_what_is_there(name) else [name]):
        part = [(each, as_in_a_burst(each, samples.rows(each, FEW, turn)))]
        await postgres_store.write(postgres_store.prepared(part))
        await one_by_one(twin, part)

    assert ("fence", ((name, bulk(name).alike),)) in writer._prepared
    assert await table_of(postgres_store, name) == await table_of(twin, name)


async def test_what_is_rehearsed_writes_nothing(postgres_store: PostgresStore):
    writer = postgres_store._writer
    assert writer
    rehearsed = {name for _, forms in writer._prepared for name, _ in forms}

    assert rehearsed >= {"insert_execution", "insert_log", "insert_run", "set_execution"}
    assert [await table_of(postgres_store, name) for name in rehearsed] == [[] for _ in rehearsed]
    assert await ask(postgres_store._address.url, "select commits from worker") == [(0,)]


async def updates_of_executions(store: PostgresStore) -> tuple[int, int]:
    """How many there were, and how many of them left every index alone."""
    writer = store._writer
    assert writer
    assert writer._connection
    await writer._connection.execute("select pg_stat_force_next_flush()")
    counts = "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'execution'"
    [(all_of_them, hot)] = await ask(store._address.url, counts)
    return all_of_them, hot


async def test_an_execution_ends_without_a_new_entry_in_any_index(postgres_store: PostgresStore):
    ids = [str(uuid7()) for _ in range(300)]
    await postgres_store.write([("insert_execution", [execution(each, workflow=ids[0]) for each in ids])])
    before = await updates_of_executions(postgres_store)

    await postgres_store.write(
        [("set_execution", [ExecutionChange("SUCCESS", NOON, NOON, None, each) for each in ids])]
    )

    after = await updates_of_executions(postgres_store)
    assert (after[0] - before[0], after[1] - before[1]) == (300, 300)


async def test_everything_together_is_the_same_as_one_after_the_other(
    postgres_store: PostgresStore, twin: PostgresStore, samples: Samples
):
    inserted = [(name, samples.rows(name, COUNT, 0)) for name in INSERTS]
    changed = [(name, samples.rows(name, 3, 1)) for name in CHANGES]
    await postgres_store.write([*inserted, *changed])
    await one_by_one(twin, [*inserted, *changed])

    for name in ROWS:
        assert await table_of(postgres_store, name) == await table_of(twin, name), name


async def test_a_stale_worker_changes_nothing_by_any_statement(
    postgres_store: PostgresStore, database: str, samples: Samples
):
    inserted = [(name, samples.rows(name, COUNT, 0)) for name in INSERTS]
    await postgres_store.write(inserted)
    before = {name: await table_of(postgres_store, name) for name in ROWS}
    writer = postgres_store._writer
    assert writer
    believed = writer._expected
    await ask(database, "update worker set epoch = epoch + 1")
    for name in [*CHANGES, *INSERTS]:
        # Each time as one that does not know yet.
        writer._expected = believed
        with pytest.raises(StaleWriter):
            await writer.write([(name, samples.rows(name, COUNT + 1, 1))])

    assert {name: await table_of(postgres_store, name) for name in ROWS} == before


@pytest.mark.parametrize("name", ROWS)
def test_every_row_of_a_batch_is_named_by_its_key_or_its_table(name: str):
    form = bulk(name)

    assert len(form.key) == len(primary_keys()[form.table]) or name == "delete_offers"
    assert form.bytes_at is None or not form.alike


def shape(batch: Batch) -> list[Counter[str]]:
    return [Counter({name: len(columns[0]) for name, columns in layer}) for layer in layered(batch)]


def test_what_touches_each_row_once_is_one_layer():
    batch = [("insert_log", entries("e1", 3)), ("upsert_run", [run("r1"), run("r2")]), ("delete_live", [])]

    assert shape(batch) == [Counter(insert_log=3, upsert_run=2)]


def test_what_touches_a_row_again_is_in_a_later_layer():
    batch = [
        ("upsert_run", [run("r1"), run("r2"), run("r1"), run("r1")]),
        ("insert_inbox", [("s1", "e1", "{}", 1)]),
        ("delete_inbox", [("s1",), ("s2",)]),
    ]

    assert shape(batch) == [
        Counter(upsert_run=2, insert_inbox=1, delete_inbox=1),
        Counter(upsert_run=1, delete_inbox=1),
        Counter(upsert_run=1),
    ]


def test_what_may_touch_any_row_is_alone_with_its_table():
    offers = [(f"o{n}", "e1", "default", "a", -1, 1, "default", "{}", 1) for n in range(3)]
    batch = [("insert_offer", offers[:2]), ("delete_offers", [("e1",), ("e2",)]), ("insert_offer", offers[2:])]

    assert shape(batch) == [Counter(insert_offer=2), Counter(delete_offers=2), Counter(insert_offer=1)]


def test_nothing_is_no_layer_at_all():
    assert layered([("insert_log", [])]) == []


def test_there_are_two_forms_of_a_statement_for_any_rows():
    types = {
        "upsert_run": ("text",) * 2 + ("text", "bigint", "bigint") + ("text",) * 2 + ("bigint",) * 3 + ("text",) * 2
    }
    mixtures = [{}, {"node": "n"}, {"state": "FAILED"}, {"node": "n", "attempt": 2, "started_at": 5}]
    said = [Message([("upsert_run", [run(f"r{n}", **each) for n in range(FEW)])], types).told for each in mixtures]
    odd = [run("odd", error="E"), *[run(f"r{n}") for n in range(FEW)]]

    assert {forms for told in said if told for forms, _ in told} == {(("upsert_run", bulk("upsert_run").alike),)}
    assert Message([("upsert_run", odd)], types).told[0][0] == (("upsert_run", ()),)


async def test_what_does_not_fit_its_statement_is_refused_when_it_is_written(postgres_store: PostgresStore):
    await postgres_store.write([("upsert_run", [run("r1")])])
    for wrong in [("only", "two")], [run("r2")._replace(attempt="one")], [run("r2"), ("short",)]:
        batch = postgres_store.prepared([("upsert_run", wrong)])

        with pytest.raises(StoreDefect):
            await postgres_store.write(batch)


@pytest.mark.parametrize("name", ["get_run", "lease_offers", "no_such_statement"])
def test_what_is_no_plain_change_of_named_rows_cannot_be_in_a_batch(name: str):
    with pytest.raises(StoreDefect, match="cannot be part of a batch"):
        bulk(name)


def test_the_fence_comes_first_and_everything_waits_for_it():
    text = composed(
        [("insert_log", ()), ("delete_live", ())],
        {"insert_log": ("text",) * 3, "delete_live": ("text",)},
        is_fenced=True,
    )

    assert text.startswith("with fence as (update worker")
    assert text.count("exists (select 1 from fence)") == 2
    assert "$8::text::text[]" in text
