"""What is wrong with the file or the disk is said in our words, and nothing is half written."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ropewalk.core.errors import Conflict, NotFound, Unavailable
from ropewalk.store.errors import (
    IncompatibleStore,
    NotADatabase,
    StoreBusy,
    StoreCorrupted,
    StoreDamaged,
    StoreDefect,
    StoreFull,
    StoreUnavailable,
)
from ropewalk.store.sqlite import SqliteReader, SqliteStore, connection
from ropewalk.store.sqlite.faults import is_unsure, translated
from tests.store.conftest import Start
from tests.store.samples import ask, entries, tell
from tests.store.test_ownership import line

UNPRIVILEGED = "65534"


@pytest.fixture
def store(sqlite_store: SqliteStore) -> SqliteStore:
    """Only this kind is spoken of here."""
    return sqlite_store


@pytest.mark.parametrize("content", [b"#!/bin/sh\n", b"SQLite format 2\0" + b"x" * 5000, b"S"])
@pytest.mark.parametrize("opening", [SqliteStore.open, SqliteReader.open])
async def test_a_file_that_is_no_database_is_refused_and_left_alone(path: str, content: bytes, opening):
    Path(path).write_bytes(content)

    with pytest.raises(NotADatabase, match="choose another path"):
        await opening(path)

    assert Path(path).read_bytes() == content
    assert os.listdir(Path(path).parent) == [Path(path).name]


async def test_garbage_behind_a_good_beginning_is_refused(path: str):
    Path(path).write_bytes(b"SQLite format 3\0" + b"garbage" * 1000)

    with pytest.raises((NotADatabase, StoreCorrupted)):
        await SqliteStore.open(path)


async def test_the_database_of_another_program_is_refused_and_left_alone(path: str):
    tell(path, "create table bookmark (url text)")
    before = Path(path).read_bytes()

    with pytest.raises(NotADatabase, match="not one of Ropewalk"):
        await SqliteStore.open(path)

    assert Path(path).read_bytes() == before


async def test_an_empty_file_becomes_a_store(path: str):
    Path(path).touch()

    await (await SqliteStore.open(path)).close()

    assert ask(path, "select count(*) from migration") != [(0,)]


async def test_a_store_that_is_not_there_is_made_only_if_wanted(path: str):
    with pytest.raises(NotFound, match="no store at"):
        await SqliteStore.open(path, create=False)
    with pytest.raises(NotFound, match="no store at"):
        await SqliteReader.open(path)

    assert not os.path.exists(path)


@pytest.mark.parametrize("place", ["no/such/directory/x.db", "/proc/ropewalk.db", ":memory:"])
async def test_a_place_that_cannot_hold_a_store_is_named_with_the_remedy(tmp_path: Path, place: str):
    path = place if place.startswith(("/", ":")) else str(tmp_path / place)

    with pytest.raises(StoreUnavailable, match=r"directory must exist|name a path"):
        await SqliteStore.open(path)


async def test_a_directory_is_no_database(tmp_path: Path):
    with pytest.raises(NotADatabase, match="is a directory"):
        await SqliteStore.open(str(tmp_path))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that other users can reach."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
        os.chmod(folder, 0o755)


@pytest.mark.parametrize("lock_is_writable", [True, False])
async def test_a_store_one_may_not_write_is_named_with_the_remedy(
    open_folder: Path, start: Start, lock_is_writable: bool
):
    path = str(open_folder / "ropewalk.db")
    await (await SqliteStore.open(path)).close()
    os.chmod(path, 0o444)
    os.chmod(f"{path}.lock", 0o666 if lock_is_writable else 0o444)
    os.chmod(open_folder, 0o555)

    other = start("attempt", path, UNPRIVILEGED)

    assert line(other) == "StoreUnavailable"
    assert "must be writable by this user" in line(other)


@pytest.mark.parametrize("rows", [1, 200])
async def test_a_full_disk_keeps_nothing_of_the_commit_and_the_store_lives_on(store: SqliteStore, rows: int):
    pages = store._connection.execute("pragma page_count").fetchone()[0]
    store._connection.execute(f"pragma max_page_count = {pages}")
    large = [("e1", seq, b"x" * 20_000) for seq in range(rows)]

    with pytest.raises(StoreFull, match=r"no room left.*make some"):
        await store.write([("insert_log", entries("e2", 3)), ("insert_log", large)])

    assert await store.fetch("log_entries", "e2", 1, 10) == []
    store._connection.execute("pragma max_page_count = 1000000")
    await store.write([("insert_log", entries("e2", 3))])
    assert len(await store.fetch("log_entries", "e2", 1, 10)) == 3


async def test_a_transaction_on_a_full_disk_keeps_nothing_either(store: SqliteStore):
    pages = store._connection.execute("pragma page_count").fetchone()[0]
    store._connection.execute(f"pragma max_page_count = {pages}")

    async def transact() -> None:
        async with store.transaction() as tx:
            await tx.execute_many("insert_log", entries("e2", 3))
            await tx.execute_many("insert_log", [("e1", seq, b"x" * 20_000) for seq in range(20)])

    with pytest.raises(StoreFull):
        await transact()

    assert await store.fetch("log_entries", "e2", 1, 10) == []


async def test_a_file_system_that_refuses_a_write_keeps_nothing_of_the_commit_and_the_store_lives_on(
    path: str, start: Start
):
    filling = start("fill", path, "1000000")

    refused, before, of_refused, after = (line(filling) for _ in range(4))

    assert refused in ("StoreUnavailable", "StoreFull")
    assert (before, of_refused, after) == ("2", "0", "2")


async def test_a_database_locked_by_another_program_is_said_to_be(store: SqliteStore):
    store._connection.execute("pragma busy_timeout = 10")
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("begin immediate")

    with pytest.raises(StoreBusy, match="another program keeps"):
        await store.write([("insert_log", entries("e1", 1))])
    with pytest.raises(StoreBusy):
        async with store.transaction():
            raise AssertionError("never entered")

    other.close()
    await store.write([("insert_log", entries("e1", 1))])


async def test_a_damaged_database_is_said_to_be_and_not_written_any_more(path: str):
    store = await SqliteStore.open(path)
    await store.write([("insert_log", [(f"e{number}", 1, b"x" * 3000) for number in range(200)])])
    await store.close()
    content = bytearray(Path(path).read_bytes())
    # Every page but the first, which holds the schema's root.
    content[4096 * 2 :] = os.urandom(len(content) - 4096 * 2)
    Path(path).write_bytes(content)

    with pytest.raises(StoreCorrupted, match="restore it from a backup"):
        await SqliteStore.open(path)


async def test_a_sqlite_too_old_is_named_with_the_one_needed(path: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "FLOOR", (99, 1, 0))

    with pytest.raises(IncompatibleStore, match=r"SQLite 99\.1\.0 or newer is needed"):
        await SqliteStore.open(path)


def failure(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode, error.sqlite_errorname = code, "SQLITE_IOERR"
    return error


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        (sqlite3.SQLITE_FULL, StoreFull),
        (sqlite3.SQLITE_IOERR_WRITE, StoreUnavailable),
        (sqlite3.SQLITE_READONLY_DIRECTORY, StoreUnavailable),
        (sqlite3.SQLITE_CANTOPEN, StoreUnavailable),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusy),
        (sqlite3.SQLITE_CORRUPT_INDEX, StoreDamaged),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, Conflict),
        (sqlite3.SQLITE_CONSTRAINT_NOTNULL, StoreDefect),
        (sqlite3.SQLITE_ERROR, StoreDefect),
    ],
)
def test_each_code_has_the_error_that_says_what_to_do(code: int, ours: type[Exception]):
    assert type(translated(failure(code), "x.db")) is ours


def test_what_may_pass_by_itself_can_be_tried_again():
    assert all(issubclass(kind, Unavailable) for kind in (StoreFull, StoreBusy, StoreUnavailable))


async def test_after_a_failed_sync_the_store_writes_no_more_until_it_is_opened_again(store: SqliteStore):
    error = failure(sqlite3.SQLITE_IOERR_FSYNC)

    assert is_unsure(error)
    store._writer.ours(error)
    with pytest.raises(StoreUnavailable, match=r"not written any more.*open it again"):
        await store.write([("insert_log", entries("e1", 1))])
