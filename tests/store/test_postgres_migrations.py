"""The same steps make the same schema on PostgreSQL, one worker at a time."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from ropewalk.store import migrations
from ropewalk.store.errors import IncompatibleStore, NoStore, NotADatabase, StoreDefect
from ropewalk.store.migrations import Migration, known_migrations
from ropewalk.store.postgres import PostgresReader, PostgresStore, migrating
from ropewalk.store.postgres.looking import any_reader, look_at
from ropewalk.store.postgres.migrating import with_byte_order
from ropewalk.store.queries import split
from tests.postgres import PostgresServer, ask

SCHEMA = Path(migrations.__file__).parent / "schema.sql"
COLUMNS = """
select table_name, column_name, data_type, is_nullable, column_default, collation_name
  from information_schema.columns where table_schema = 'public' order by table_name, ordinal_position
"""
INDEXES = "select indexdef from pg_indexes where schemaname = 'public' order by indexdef"
CONSTRAINTS = """
select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint
 where connamespace = 'public'::regnamespace order by 1, 2
"""


@pytest.fixture
async def empty(postgres: PostgresServer) -> AsyncIterator[str]:
    url = await postgres.create_database(is_empty=True)
    yield url
    await postgres.drop_database(url)


async def test_the_schema_is_the_sum_of_the_migrations(database: str, empty: str):
    for statement in split(SCHEMA.read_text()):
        await ask(empty, statement if "create table migration" in statement else with_byte_order(statement))

    for question in (COLUMNS, INDEXES, CONSTRAINTS):
        assert await ask(database, question) == await ask(empty, question)


async def test_every_text_compares_by_its_bytes_in_a_database_of_any_order(database: str):
    texts = [row for row in await ask(database, COLUMNS) if row[2] == "text" and row[0] != "migration"]

    assert {row[5] for row in texts} == {"C"}
    assert len(texts) > 80


async def test_a_user_who_may_only_read_sees_how_far_the_schema_is(database: str):
    await ask(database, "create role guest login")
    await ask(database, "grant select on all tables in schema public to guest")
    reader = await any_reader(database.replace("postgres@", "guest@"))
    server = await look_at(reader)
    await reader.close()
    await ask(database, "drop owned by guest")
    await ask(database, "drop role guest")

    assert (server.steps_taken, server.may_create) == (server.steps_known, False)
    assert "migration: delete, insert, update" in server.denied


async def test_workers_that_come_together_to_an_empty_database_take_each_step_once(empty: str):
    stores = await asyncio.gather(*(PostgresStore.open(empty, notify=False) for _ in range(4)))

    taken = await ask(empty, "select number, name, checksum from migration order by number")

    assert taken == [(step.number, step.name, step.checksum) for step in known_migrations()]
    for store in stores:
        await store.close()


async def test_a_database_that_is_behind_is_brought_up_to_date_and_keeps_what_is_in_it(
    empty: str, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as older:
        older.setattr(migrating, "known_migrations", lambda: known_migrations()[:1])
        older.setattr(migrating, "_tune", nothing)
        connection = await asyncpg.connect(empty)
        await migrating.migrate(connection, "here")
        await connection.execute("insert into log values ('e1', 1, '')")
        await connection.close()
    with pytest.raises(IncompatibleStore, match="older Ropewalk"):
        await PostgresReader.open(empty)

    store = await PostgresStore.open(empty, notify=False)

    assert await store.fetch("log_entries", "e1", 1, 10) == [(1, b"")]
    await store.close()


async def nothing(_: object) -> None:
    """The older version did not."""


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ("insert into migration values (999, 'later', 'x', 0)", "newer Ropewalk.*upgrade"),
        ("update migration set checksum = 'x' where number = 1", "another schema 1.*choose another"),
    ],
)
@pytest.mark.parametrize("opening", [PostgresStore.open, PostgresReader.open])
async def test_a_schema_we_do_not_know_is_not_touched(postgres: PostgresServer, change: str, advice: str, opening):
    url = await postgres.create_database()
    await ask(url, change)

    with pytest.raises(IncompatibleStore, match=advice):
        await opening(url)

    assert await ask(url, "select count(*) from worker") == [(0,)]
    await postgres.drop_database(url)


async def test_a_step_that_fails_leaves_nothing_behind(empty: str, monkeypatch: pytest.MonkeyPatch):
    broken = Migration(len(known_migrations()) + 1, "broken", "x", ("create table half (a bigint)", "no such words"))
    monkeypatch.setattr(migrating, "known_migrations", lambda: (*known_migrations(), broken))

    with pytest.raises(StoreDefect, match="syntax error"):
        await PostgresStore.open(empty, notify=False)

    assert await ask(empty, "select relname from pg_class where relname in ('half', 'migration')") == []


async def test_someone_elses_tables_are_left_alone(empty: str):
    await ask(empty, "create table workflow (id int)")

    with pytest.raises(NotADatabase, match="not those of Ropewalk"):
        await PostgresStore.open(empty)

    assert await ask(empty, "select relname from pg_class where relname = 'execution'") == []


@pytest.mark.parametrize(("schema", "place"), [("", "schema public"), ("?options=-csearch_path%3Dshop", "schema shop")])
async def test_a_reader_finds_nothing_of_ours_in_an_empty_schema_and_leaves_it_empty(
    empty: str, schema: str, place: str
):
    await ask(empty, "create schema shop")

    with pytest.raises(NoStore, match=f"nothing of Ropewalk in .*, {place} yet: `ropewalk run FILE`"):
        await PostgresReader.open(f"{empty}{schema}")

    assert await ask(empty, "select relname from pg_class where relname = 'migration'") == []


async def test_tables_whose_rows_change_all_the_time_are_swept_early(database: str):
    tuned = await ask(
        database, "select relname, reloptions from pg_class where relkind = 'r' and reloptions is not null"
    )

    swept = {name for name, options in tuned if any(option.startswith("autovacuum") for option in options)}
    assert swept >= {"live", "queue", "worker", "inbox"}
    assert swept == {name for name, _ in tuned} - {"execution"}


async def test_schemas_of_one_database_are_stores_of_their_own(postgres: PostgresServer, empty: str):
    await ask(empty, "create schema shop")
    url = f"{empty}?options=-csearch_path%3Dshop"
    shop, public = await PostgresStore.open(url, worker="one"), await PostgresStore.open(empty, worker="one")

    assert (shop.epoch, public.epoch) == (1, 1)
    assert await ask(empty, "select count(*) from shop.worker") == [(1,)]
    await shop.close()
    await public.close()
