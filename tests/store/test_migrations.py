"""The schema is made step by step, forward only."""

import re
import sqlite3
from pathlib import Path

import pytest

from ropewalk.core.events import ExecutionTimedOut
from ropewalk.core.state import ExecutionState
from ropewalk.store import executions, migrations
from ropewalk.store.errors import IncompatibleStore, NoStore
from ropewalk.store.migrations import Migration, known_migrations, pending
from ropewalk.store.queries import split, without_comments
from ropewalk.store.sqlite import SqliteReader, SqliteStore, connection
from tests.store.samples import ask, tell

SCHEMA = Path(migrations.__file__).parent / "schema.sql"


@pytest.fixture
def store(sqlite_store: SqliteStore) -> SqliteStore:
    """Only this kind is spoken of here."""
    return sqlite_store


def shape(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("select sql from sqlite_master where sql is not null")
    plain = (without_comments(text).replace("if not exists ", "").lower() for (text,) in rows)
    return sorted(re.sub(r"\s+", "", text).removesuffix("withoutrowid") for text in plain)


async def test_the_schema_is_the_sum_of_the_migrations(store: SqliteStore):
    read = sqlite3.connect(":memory:")
    read.executescript(SCHEMA.read_text())
    made = sqlite3.connect(store.path)

    assert shape(made) == shape(read)
    read.close()
    made.close()


async def test_every_step_is_remembered_with_its_checksum(store: SqliteStore):
    steps = [(step.number, step.name, step.checksum) for step in known_migrations()]

    assert ask(store.path, "select number, name, checksum from migration order by number") == steps


async def test_opening_again_takes_no_step_again(path: str):
    for _ in range(2):
        await (await SqliteStore.open(path)).close()

    assert len(ask(path, "select * from migration")) == len(known_migrations())


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ("insert into migration values (999, 'later', 'x', 0)", "newer Ropewalk.*upgrade"),
        ("update migration set checksum = 'x' where number = 1", "another schema 1.*choose another"),
    ],
)
@pytest.mark.parametrize("opening", [SqliteStore.open, SqliteReader.open])
async def test_a_schema_we_do_not_know_is_not_touched(path: str, change: str, advice: str, opening):
    await (await SqliteStore.open(path)).close()
    tell(path, change)
    before = Path(path).read_bytes()

    with pytest.raises(IncompatibleStore, match=advice):
        await opening(path)

    assert Path(path).read_bytes() == before


async def test_a_reader_refuses_a_store_that_is_behind(path: str):
    await (await SqliteStore.open(path)).close()
    tell(path, "delete from migration where number > 1")

    with pytest.raises(
        IncompatibleStore, match=r"older Ropewalk \(schema 1, this one knows \d+\): .*`ropewalk up` brings"
    ):
        await SqliteReader.open(path)


async def test_a_reader_finds_nothing_of_ours_in_an_empty_file_and_leaves_it_empty(path: str):
    Path(path).touch()

    with pytest.raises(NoStore, match=r"nothing of Ropewalk in .* yet: `ropewalk run FILE` or `ropewalk up` makes it"):
        await SqliteReader.open(path)

    assert Path(path).read_bytes() == b""


async def test_a_step_that_fails_leaves_nothing_behind(path: str, monkeypatch: pytest.MonkeyPatch):
    await (await SqliteStore.open(path)).close()
    broken = Migration(
        len(known_migrations()) + 1, "broken", "x", ("create table half (a bigint primary key)", "no such words")
    )
    monkeypatch.setattr(connection, "known_migrations", lambda: (*known_migrations(), broken))

    with pytest.raises(Exception, match="syntax error"):
        await SqliteStore.open(path)

    assert ask(path, "select name from sqlite_master where name = 'half'") == []
    assert len(ask(path, "select * from migration")) == len(known_migrations())


async def test_what_timed_out_before_failures_were_found_by_their_error_is_found_too(
    path: str, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as earlier:
        earlier.setattr(connection, "known_migrations", lambda: known_migrations()[:5])
        await (await SqliteStore.open(path)).close()
    columns = "id, workspace, workflow, version, state, trigger, accepted_at"
    for number, state in enumerate(["TIMEOUT", "SUCCESS"]):
        tell(path, f"insert into execution ({columns}) values ('e{number}', 'default', 'w', 1, '{state}', 'MANUAL', 0)")
    store = await SqliteStore.open(path)

    [found] = await executions.listed(store, "default", executions.Filter(state=ExecutionState.TIMEOUT))
    await store.close()

    assert (found.id, found.error) == ("e0", ExecutionTimedOut(0).error)
    assert ask(path, "select error from execution where id = 'e1'") == [(None,)]


def test_only_the_steps_not_taken_are_pending():
    steps = [Migration(number, "step", f"sum {number}", ()) for number in (1, 2, 3)]

    assert pending([(1, "sum 1")], steps, "here") == steps[1:]


def test_a_mended_comment_is_no_change():
    assert split("select 1; -- old words") == split("-- new words\nselect 1;")
