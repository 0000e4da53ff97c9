"""Writing and reading: whole transactions, one at a time, refused once another process has taken over."""

import asyncio
import sqlite3
import subprocess
import threading
from collections.abc import AsyncIterator

import pytest

from ropewalk.core.errors import Conflict
from ropewalk.store.errors import StaleWriter
from ropewalk.store.sqlite import SqliteReader, SqliteStore
from ropewalk.store.sqlite.bulk import Message
from ropewalk.store.sqlite.writer import MARK_EVERY
from tests.store.conftest import Start
from tests.store.samples import NOON, SECOND, ask, entries, tell
from tests.store.test_ownership import line

FEW, MANY = 2, 500


@pytest.fixture
def store(sqlite_store: SqliteStore) -> SqliteStore:
    """Only this kind is spoken of here."""
    return sqlite_store


async def count(store: SqliteStore | SqliteReader, name: str = "e1") -> int:
    return len(await store.fetch("log_entries", name, 1, 10_000))


async def test_the_epoch_is_checked_also_when_time_is_marked(path: str):
    store = await SqliteStore.open(path)
    store._writer._marked -= 2 * MARK_EVERY
    tell(path, "update worker set epoch = epoch + 1, heartbeat_at = 7")

    with pytest.raises(StaleWriter):
        await store.write([("insert_log", entries("e1", 1))])

    assert ask(path, "select heartbeat_at from worker") == [(7,)]
    await store.close()


async def test_each_opening_has_an_epoch_of_its_own(path: str):
    epochs = []
    for _ in range(3):
        store = await SqliteStore.open(path)
        epochs.append(store.epoch)
        await store.close()

    assert epochs == [1, 2, 3]


# Transactions


async def test_a_writer_waits_for_the_transaction_before_and_turns_are_in_order(store: SqliteStore):
    order: list[str] = []
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def transact(name: str) -> None:
        async with store.transaction() as tx:
            entered.set()
            await go_on.wait()
            await tx.execute("insert_log", name, 1, b"{}")
        order.append(name)

    async def write(name: str, rows: int) -> None:
        await store.write([("insert_log", entries(name, rows))])
        order.append(name)

    first = asyncio.create_task(transact("first"))
    await entered.wait()
    others = [asyncio.create_task(work) for work in (write("second", MANY), write("third", 1), transact("fourth"))]
    await asyncio.sleep(0)
    assert order == []
    go_on.set()
    await asyncio.gather(first, *others)

    assert order == ["first", "second", "third", "fourth"]


async def test_a_cancelled_write_keeps_its_turn_until_the_commit_is_over(store: SqliteStore):
    gate = threading.Event()
    store._thread.submit(gate.wait)
    writing = asyncio.create_task(store.write([("insert_log", entries("e1", MANY))]))
    await asyncio.sleep(0)
    writing.cancel()
    following = asyncio.create_task(store.write([("insert_log", entries("e2", 1))]))
    for _ in range(5):
        await asyncio.sleep(0)
    is_waiting = not following.done()
    gate.set()
    await asyncio.wait((writing, following))

    assert is_waiting
    assert writing.cancelled()
    assert (await count(store, "e1"), await count(store, "e2")) == (MANY, 1)


# Reading


async def test_another_process_reads_while_the_owner_writes(store: SqliteStore, start: Start):
    await store.write([("insert_log", entries("e1", 1))])
    other = start("read", store.path)
    before = line(other)
    await store.write([("insert_log", [("e1", 2, b"{}")])])
    go_on(other)

    assert (before, line(other)) == ("1", "2")


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


async def test_a_store_without_an_owner_can_be_read(path: str):
    store = await SqliteStore.open(path)
    await store.write([("insert_log", entries("e1", 3))])
    await store.close()

    reader = await SqliteReader.open(path)

    assert await count(reader) == 3
    await reader.close()


# Beginning and end


@pytest.mark.parametrize(
    ("pragma", "value"),
    [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1), ("wal_autocheckpoint", 1000)],
)
async def test_the_writer_is_as_durable_as_promised(store: SqliteStore, pragma: str, value: object):
    assert store._connection.execute(f"pragma {pragma}").fetchone() == (value,)


async def test_closing_leaves_everything_in_one_file(path: str):
    store = await SqliteStore.open(path)
    await store.write([("insert_log", entries("e1", 3))])
    await store.close()

    alone = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    assert alone.execute("select count(*) from log").fetchone() == (3,)
    alone.close()


# Time


async def test_time_goes_on_from_the_time_of_day(path: str):
    store = await SqliteStore.open(path, wall=NOON)
    readings = [store.now() for _ in range(1000)]

    assert readings == sorted(readings)
    assert NOON <= readings[0] < NOON + 60 * SECOND
    await store.close()


async def test_time_never_falls_behind_what_the_store_has_seen(path: str):
    store = await SqliteStore.open(path, wall=NOON)
    store._offset += 3600 * SECOND
    await store.write([("insert_log", entries("e1", 1))])
    recorded = store.now()
    await store.close()

    later = await SqliteStore.open(path, wall=NOON - 3600 * SECOND)

    assert later.now() > recorded - SECOND
    assert ask(path, "select heartbeat_at from worker")[0][0] > NOON + 3600 * SECOND
    await later.close()


async def test_every_time_a_commit_could_have_carried_is_covered_by_the_mark(path: str):
    store = await SqliteStore.open(path, wall=NOON)
    latest = 0
    for seq in range(1, 200):
        latest = store.now()
        await store.write([("insert_log", [("e1", seq, b"{}")])])
    await store.close()

    later = await SqliteStore.open(path, wall=0)

    assert later.now() >= latest
    await later.close()


async def test_time_is_left_in_the_store_now_and_then_not_with_every_commit(path: str):
    store = await SqliteStore.open(path, wall=NOON)
    store._offset += SECOND
    await store.write([("insert_log", entries("e1", 1))])
    [(marked,)], remembered = ask(path, "select heartbeat_at from worker"), store._writer._marked
    store._writer._marked = store.now() + SECOND
    await store.write([("insert_log", entries("e2", 1))])

    assert NOON + SECOND <= marked == remembered
    assert ask(path, "select heartbeat_at from worker") == [(marked,)]
    await store.close()


async def test_a_large_batch_is_begun_with_before_anyone_waits_and_the_next_come_after_it(store: SqliteStore):
    large = store.write([("insert_log", entries("e1", 2 * store.inline_rows))])
    assert not store._is_at_rest()
    async with store.transaction() as tx:
        seen = await tx.fetch("log_heads", '["e1"]')
    again = store.write([("insert_log", entries("e1", 2 * store.inline_rows))])
    small = store.write([("insert_log", entries("e2", 1))])

    await large
    with pytest.raises(Conflict):
        await again
    await small

    assert seen == [("e1", 2 * store.inline_rows)]
    assert ask(store.path, "select count(*) from log where execution = 'e2'") == [(1,)]


async def test_a_large_batch_is_written_though_its_caller_goes_away(store: SqliteStore):
    writing = asyncio.ensure_future(store.write([("insert_log", entries("e1", 2 * store.inline_rows))]))
    await asyncio.sleep(0)
    writing.cancel()
    await store.close()

    assert ask(store.path, "select count(*) from log") == [(2 * store.inline_rows,)]


async def test_the_time_of_a_store_that_is_thrown_away_can_be_moved_and_no_other(path: str, store: SqliteStore):
    with pytest.raises(ValueError, match="only of a store that is thrown away"):
        store.skip(SECOND)
    await store.close()

    thrown_away = await SqliteStore.open(f"{path}.test", is_thrown_away=True)
    before = thrown_away.now()
    thrown_away.skip(3600 * SECOND)

    assert 3600 * SECOND <= thrown_away.now() - before < 3700 * SECOND
    with pytest.raises(ValueError, match="forward only"):
        thrown_away.skip(-1)
    await thrown_away.close()


# On the loop, or beside it


@pytest.fixture
async def movable(path: str) -> AsyncIterator[SqliteStore]:
    """A store whose time can be moved."""
    store = await SqliteStore.open(path, is_thrown_away=True)
    yield store
    await store.close()


class Disk:
    """Says which threads write, and takes as long over it as it is told (µs of store time)."""

    def __init__(self, store: SqliteStore) -> None:
        self.taken = 0
        self.is_beside: list[bool] = []
        self._write, self._store = store._writer._commits.write, store
        store._writer._commits.write = self.write  # type: ignore[method-assign]  # the disk itself cannot be slowed down here

    def write(self, message: Message, mark: int | None) -> None:
        self.is_beside.append(threading.current_thread() is not threading.main_thread())
        self._write(message, mark)
        self._store.skip(self.taken)


async def test_a_few_rows_are_written_on_the_loop_and_much_text_is_not(movable: SqliteStore):
    disk = Disk(movable)

    await movable.write([("insert_log", [("e1", 1, b"{}")])])
    await movable.write([("insert_log", [("e1", 2, b"x" * 2**20)])])

    assert disk.is_beside == [False, True]


async def test_the_loop_waits_for_a_slow_disk_once(movable: SqliteStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ropewalk.store.sqlite.writer.SLOW", 60 * SECOND)
    disk = Disk(movable)
    for seq, taken in enumerate([61 * SECOND, 61 * SECOND, 0, 0]):
        disk.taken = taken
        await movable.write([("insert_log", [("e1", seq, b"{}")])])

    assert disk.is_beside == [False, True, True, False]
