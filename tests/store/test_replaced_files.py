"""A store whose files were moved, removed or replaced under a living process, and what its next owner makes of them."""

import json
import logging
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ropewalk.store.errors import StoreDamaged, StoreReplaced
from ropewalk.store.sqlite import SqliteReader, SqliteStore, connection
from tests.store.conftest import Start
from tests.store.test_ownership import line

ENTRY = ("insert_log", [("e1", 1, b"{}")])
MANY = ("insert_log", [("many", number, b"{}") for number in range(1, 1_000)])


@pytest.fixture
def store(sqlite_store: SqliteStore) -> SqliteStore:
    """Only this kind is spoken of here."""
    return sqlite_store


async def entries(store: SqliteStore, execution: str) -> int:
    return len(await store.fetch("log_entries", execution, 1, 10_000))


def restore(path: str, backup: str) -> None:
    """As `mv` does."""
    os.rename(backup, path)


async def backed_up(path: str) -> str:
    """A copy of the store, made while it was closed, which knows of one execution."""
    store = await SqliteStore.open(path)
    await store.write([("insert_log", [("old", 1, b"{}")])])
    await store.close()
    shutil.copyfile(path, f"{path}.backup")
    return f"{path}.backup"


@pytest.mark.parametrize("batch", [ENTRY, MANY], ids=["small", "large"])
@pytest.mark.parametrize("gone", ["", "-wal"])
async def test_a_commit_is_not_acknowledged_once_a_file_of_the_store_is_gone(store: SqliteStore, batch: Any, gone: str):
    os.rename(f"{store.path}{gone}", f"{store.path}.elsewhere")

    for _ in range(2):
        with pytest.raises(StoreReplaced, match="start it again"):
            await store.write([batch])
    with pytest.raises(StoreReplaced):
        async with store.transaction() as tx:
            await tx.execute("keep_secret", "a", "b")
    with pytest.raises(StoreReplaced):
        await store.check()


async def test_a_commit_is_not_acknowledged_once_the_database_was_replaced(path: str):
    backup = await backed_up(path)
    store = await SqliteStore.open(path)
    await store.write([ENTRY])
    restore(path, backup)

    with pytest.raises(StoreReplaced):
        await store.write([MANY])
    await store.close()


async def test_a_commit_is_not_acknowledged_once_a_link_leads_to_another_database(path: str, tmp_path: Path):
    backup = await backed_up(path)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    store = await SqliteStore.open(str(link))
    link.unlink()
    link.symlink_to(backup)

    with pytest.raises(StoreReplaced):
        await store.write([ENTRY])
    await store.close()


async def test_the_restored_database_is_opened_without_the_log_of_the_one_before(
    path: str, caplog: pytest.LogCaptureFixture
):
    backup = await backed_up(path)
    lost = await SqliteStore.open(path)
    await lost.write([MANY])
    restore(path, backup)
    with pytest.raises(StoreReplaced):
        await lost.write([ENTRY])
    await lost.close()

    with caplog.at_level(logging.WARNING, "ropewalk.store"):
        store = await SqliteStore.open(path)
    found = [await entries(store, execution) for execution in ("old", "many", "e1")]
    await store.close()

    assert found == [1, 0, 0]
    assert "belongs to the database that was there before" in caplog.text
    assert is_whole(path)


async def test_what_was_committed_before_is_still_in_the_moved_database_and_its_log(path: str):
    backup = await backed_up(path)
    lost = await SqliteStore.open(path)
    await lost.write([ENTRY])
    os.rename(path, f"{path}.moved")
    restore(path, backup)
    with pytest.raises(StoreReplaced):
        lost.check_files()
    await lost.close()
    await (await SqliteStore.open(path)).close()
    (aside,) = Path(path).parent.glob("*-wal.*")
    aside.rename(f"{path}.moved-wal")

    found = await SqliteStore.open(f"{path}.moved")

    assert await entries(found, "e1") == 1
    await found.close()


async def test_what_was_committed_is_in_the_database_though_its_log_was_removed(path: str):
    store = await SqliteStore.open(path)
    await store.write([ENTRY])
    os.unlink(f"{path}-wal")
    with pytest.raises(StoreReplaced):
        await store.write([MANY])
    await store.close()

    again = await SqliteStore.open(path)

    assert await entries(again, "e1") == 1
    await again.close()


async def test_a_database_that_was_moved_away_and_back_is_opened_with_its_log(path: str):
    store = await SqliteStore.open(path)
    await store.write([ENTRY])
    os.rename(path, f"{path}.moved")
    with pytest.raises(StoreReplaced):
        store.check_files()
    await store.close()
    os.rename(f"{path}.moved", path)

    again = await SqliteStore.open(path)

    assert await entries(again, "e1") == 1
    await again.close()


async def test_a_database_restored_over_the_old_one_beside_the_log_of_a_crash_is_not_opened(
    path: str, start: Start, monkeypatch: pytest.MonkeyPatch
):
    backup = await backed_up(path)
    crash(path, start)
    shutil.copyfile(backup, path)
    age(f"{path}-wal", monkeypatch)
    before = Path(path).read_bytes()

    with pytest.raises(StoreDamaged, match=r"move .*-wal and .*-shm away; if both belong together, `touch"):
        await SqliteStore.open(path)

    assert Path(path).read_bytes() == before


async def test_a_store_that_was_copied_with_the_log_of_a_crash_is_opened_with_it(
    path: str, start: Start, tmp_path: Path
):
    crash(path, start)
    copy = tmp_path / "copy"
    copy.mkdir()
    for each in (path, f"{path}-wal", f"{path}.lock"):
        shutil.copy(each, copy)

    store = await SqliteStore.open(str(copy / Path(path).name))

    assert await entries(store, "e1") == 1
    await store.close()


def crash(path: str, start: Start) -> None:
    """A process has committed something and is killed."""
    owner = start("own_and_write", path)
    assert line(owner) == "written"
    owner.kill()
    owner.wait()
    assert Path(f"{path}-wal").stat().st_size > 0


def age(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file was last written a minute ago; only a clock could set that back."""
    stat = os.stat

    def aged(asked: Any, **more: Any) -> os.stat_result:
        found = stat(asked, **more)
        if asked != path:
            return found
        fields = list(found)
        times = {name: getattr(found, name) for name in dir(found) if name.startswith("st_")}
        return os.stat_result(fields, {**times, "st_ctime": found.st_ctime - 60})

    monkeypatch.setattr(os, "stat", aged)


def is_whole(path: str) -> bool:
    with sqlite3.connect(path) as connection:
        return connection.execute("pragma integrity_check").fetchone() == ("ok",)


# Damage


async def many_pages(path: str) -> None:
    store = await SqliteStore.open(path)
    for execution in range(20):
        await store.write([("insert_log", [(f"e{execution}", seq, b"{}" * 50) for seq in range(1, 100)])])
    await store.close()


async def test_a_damaged_database_is_not_opened_by_an_owner(path: str):
    await many_pages(path)
    size = Path(path).stat().st_size
    with open(path, "r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(os.urandom(8 * 4096))
    before = Path(path).read_bytes()

    with pytest.raises(StoreDamaged, match=r"is damaged .*: stop what works on it, and restore it from a backup"):
        await SqliteStore.open(path)

    assert Path(path).read_bytes() == before


async def test_a_database_that_was_cut_short_is_not_opened_by_an_owner(path: str):
    await many_pages(path)
    os.truncate(path, Path(path).stat().st_size // 2)

    with pytest.raises(StoreDamaged):
        await SqliteStore.open(path)


async def test_a_store_that_turns_out_to_be_damaged_in_reading_is_not_written_any_more(
    path: str, caplog: pytest.LogCaptureFixture
):
    await many_pages(path)
    store = await SqliteStore.open(path)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(os.urandom(Path(path).stat().st_size - 4096))

    with pytest.raises(StoreDamaged):
        await store.fetch("whole_logs", json.dumps([f"e{execution}" for execution in range(20)]))
    with pytest.raises(StoreDamaged):
        await store.write([ENTRY])
    with pytest.raises(StoreDamaged):
        await store.check()

    assert caplog.text.count("is damaged") == 1
    before = Path(path).read_bytes()
    await store.close()
    assert Path(path).read_bytes() == before


async def test_a_reader_in_the_process_of_the_owner_leaves_it_its_locks(store: SqliteStore, path: str, start: Start):
    await store.write([ENTRY])
    await (await SqliteReader.open(path)).close()

    # The last to close a database removes its log; a process that could do that beside us would take our commits away.
    other = start("open_and_close", path)
    assert line(other) == "closed"
    other.wait()

    await store.write([MANY])
    assert await entries(store, "many") == 999


async def test_a_database_that_could_not_be_looked_through_in_time_is_opened_all_the_same(
    path: str, monkeypatch: pytest.MonkeyPatch
):
    await many_pages(path)
    monkeypatch.setattr(connection, "AT_A_START", 0.0)

    store = await SqliteStore.open(path)

    await store.write([MANY])
    assert await entries(store, "many") == 999
    await store.close()
