"""One process owns a store, and everyone can see which."""

import os
import subprocess
from pathlib import Path

import pytest

from ropewalk.store.errors import StoreInUse
from ropewalk.store.sqlite import OwnerInfo, SqliteStore, owner_info
from tests.store.conftest import Start


@pytest.fixture
def store(sqlite_store: SqliteStore) -> SqliteStore:
    """Only this kind is spoken of here."""
    return sqlite_store


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


async def test_a_second_process_is_refused_and_told_whom_to_ask(path: str, start: Start):
    owner = start("own", path)
    assert line(owner) == "owner"

    with pytest.raises(StoreInUse, match=f"in use by process {owner.pid} on .* since 2.*Z: stop it"):
        await SqliteStore.open(path)


async def test_the_owner_in_the_same_process_counts_too(store: SqliteStore):
    with pytest.raises(StoreInUse, match=f"process {os.getpid()}"):
        await SqliteStore.open(store.path)


async def test_another_name_of_the_same_file_is_the_same_store(store: SqliteStore, tmp_path: Path):
    link = tmp_path / "link.db"
    link.symlink_to(store.path)

    with pytest.raises(StoreInUse):
        await SqliteStore.open(str(link))


async def test_a_refused_process_leaves_the_owner_undisturbed(store: SqliteStore):
    with pytest.raises(StoreInUse):
        await SqliteStore.open(store.path)

    await store.write([("insert_log", [("e1", 1, b"{}")])])


async def test_what_a_killed_owner_left_in_the_lock_file_keeps_no_process_out(path: str, start: Start):
    owner = start("own", path)
    line(owner)
    owner.kill()
    owner.wait()
    assert b'"pid"' in Path(f"{path}.lock").read_bytes()

    assert owner_info(path) is None
    store = await SqliteStore.open(path)
    assert owner_info(path) is not None
    await store.close()


async def test_a_forked_child_does_not_keep_the_store_of_its_dead_parent(path: str, start: Start):
    owner = start("own_and_fork", path)
    line(owner)
    owner.kill()
    owner.wait()

    store = await SqliteStore.open(path)

    assert store.epoch == 2
    await store.close()


async def test_the_owner_is_shown_with_its_socket(store: SqliteStore):
    before = owner_info(store.path)
    store.set_socket("/run/ropewalk.sock")

    assert isinstance(before, OwnerInfo)
    assert (before.pid, before.socket) == (os.getpid(), None)
    assert owner_info(store.path) == OwnerInfo(before.pid, before.host, before.started_at, "/run/ropewalk.sock")


async def test_looking_for_the_owner_again_and_again_takes_nothing_from_it(store: SqliteStore):
    seen = {owner_info(store.path) is None for _ in range(100)}

    assert seen == {False}
    with pytest.raises(StoreInUse):
        await SqliteStore.open(store.path)


async def test_no_process_owns_a_store_that_was_closed_or_never_was(path: str):
    before = owner_info(path)
    await (await SqliteStore.open(path)).close()

    assert (before, owner_info(path)) == (None, None)


async def test_a_lock_file_that_was_removed_lets_a_second_owner_in_and_the_first_writes_no_more(path: str):
    first = await SqliteStore.open(path)
    os.unlink(f"{path}.lock")
    second = await SqliteStore.open(path)

    with pytest.raises(Exception, match="taken over"):
        await first.write([("insert_log", [("e1", 1, b"{}")])])

    assert await second.fetch("log_entries", "e1", 1, 10) == []
    await second.close()
    await first.close()
