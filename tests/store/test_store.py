"""What every store promises: whole transactions, refused once another has taken over."""

import asyncio

import pytest

from ropewalk.core.errors import Conflict
from ropewalk.store import executions, workers
from ropewalk.store.access import Store
from ropewalk.store.errors import StaleWriter, StoreDefect, StoreUnavailable
from ropewalk.store.rows import ExecutionChange, LiveChange
from tests.store.samples import NOON, entries, execution, known_blobs, live_row, meddle, run, seen, waiting

FEW, MANY = 2, 500


async def count(store: Store, name: str = "e1") -> int:
    return len(await store.fetch("log_entries", name, 1, 10_000))


@pytest.mark.parametrize("rows", [FEW, MANY])
async def test_what_was_written_is_there_for_everyone(store: Store, rows: int):
    await store.write([("insert_log", entries("e1", rows))])

    assert await seen(store, "select count(*) from log") == [(rows,)]
    assert await count(store) == rows


@pytest.mark.parametrize("rows", [FEW, MANY])
async def test_a_batch_with_one_bad_row_writes_nothing(store: Store, rows: int):
    await store.write([("insert_log", entries("e1", 1))])

    with pytest.raises(Conflict, match="log"):
        await store.write([("insert_log", entries("e2", rows)), ("insert_log", entries("e1", 1))])

    assert (await count(store, "e2"), await count(store, "e1")) == (0, 1)


@pytest.mark.parametrize("bad", [("e1", 1), ("e1", 1, object())])
async def test_a_mistake_of_ours_writes_nothing_and_the_store_lives_on(store: Store, bad: tuple[object, ...]):
    with pytest.raises(StoreDefect):
        await store.write([("insert_log", entries("e2", 1)), ("insert_log", [bad])])

    await store.write([("insert_log", entries("e1", 1))])
    assert (await count(store, "e1"), await count(store, "e2")) == (1, 0)


@pytest.mark.parametrize("rows", [FEW, MANY])
async def test_a_writer_whose_epoch_has_moved_writes_nothing_and_is_counted(store: Store, rows: int):
    await meddle(store, "update worker set epoch = epoch + 1")

    for _ in range(2):
        with pytest.raises(StaleWriter, match="taken over"):
            await store.write([("insert_log", entries("e1", rows))])

    assert await seen(store, "select count(*) from log") == [(0,)]
    assert store.stale_writes == 2


async def test_a_writer_whose_epoch_has_moved_enters_no_transaction(store: Store):
    async with store.transaction() as tx:
        await workers.expel(tx, store.worker)

    with pytest.raises(StaleWriter):
        async with store.transaction():
            raise AssertionError("never entered")

    assert store.stale_writes == 1


async def test_a_transaction_sees_what_it_wrote_and_others_do_not_until_it_ends(store: Store):
    async with store.transaction() as tx:
        touched = await tx.execute("insert_log", "e1", 1, b"{}")
        await tx.execute_many("insert_log", [("e1", seq, b"{}") for seq in range(2, MANY)])
        inside, outside = len(await tx.fetch("log_entries", "e1", 1, 10_000)), await count(store)

    assert (touched, inside, outside) == (1, MANY - 1, 0)
    assert await count(store) == MANY - 1


async def test_an_exception_undoes_the_transaction_and_the_store_lives_on(store: Store):
    async def transact() -> None:
        async with store.transaction() as tx:
            await tx.execute("insert_log", "e1", 1, b"{}")
            raise ValueError("changed my mind")

    with pytest.raises(ValueError, match="changed my mind"):
        await transact()

    await store.write([("insert_log", entries("e2", 1))])
    assert (await count(store, "e1"), await count(store, "e2")) == (0, 1)


@pytest.mark.parametrize("error", [TimeoutError("mine"), ConnectionError("mine"), RuntimeError("mine")])
async def test_what_goes_wrong_inside_a_transaction_for_other_reasons_is_not_the_stores(store: Store, error: Exception):
    async def transact() -> None:
        async with store.transaction() as tx:
            await tx.execute("insert_log", "e1", 1, b"{}")
            raise error

    with pytest.raises(type(error), match="mine"):
        await transact()

    assert await count(store) == 0


async def test_a_transaction_that_is_over_does_nothing_more(store: Store):
    async with store.transaction() as tx:
        pass

    with pytest.raises(RuntimeError, match="over"):
        await tx.execute("insert_log", "e1", 1, b"{}")


async def test_a_task_cannot_wait_for_its_own_transaction(store: Store):
    async with store.transaction():
        with pytest.raises(RuntimeError, match="inside a transaction already"):
            await store.write([("insert_log", entries("e1", 1))])


async def test_many_at_once_lose_nothing(store: Store):
    async def transact(name: str) -> None:
        async with store.transaction() as tx:
            await tx.execute("insert_log", name, 1, b"{}")
            await asyncio.sleep(0)
            await tx.execute_many("insert_log", [(name, seq, b"{}") for seq in range(2, 4)])

    async def write(name: str) -> None:
        await store.write([("insert_log", entries(name, 3))])

    await asyncio.gather(*(work(f"{work.__name__} {n}") for n in range(50) for work in (transact, write)))

    assert await seen(store, "select count(*), count(distinct execution) from log") == [(300, 100)]


async def test_a_cancelled_transaction_is_undone(store: Store):
    entered = asyncio.Event()

    async def transact() -> None:
        async with store.transaction() as tx:
            await tx.execute("insert_log", "e1", 1, b"{}")
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(transact())
    await entered.wait()
    task.cancel()
    await asyncio.wait((task,))

    assert await count(store) == 0
    await store.write([("insert_log", entries("e1", 1))])


async def test_reading_waits_for_no_writer(store: Store):
    await store.write([("insert_log", entries("e1", 1))])
    async with store.transaction() as tx:
        await tx.execute("insert_log", "e1", 2, b"{}")

        assert await count(store) == 1
        assert len(await store.scan("log_entries", "e1", 1, 10)) == 1


async def test_a_reader_cannot_write(store: Store):
    with pytest.raises(StoreUnavailable):
        await store.fetch("insert_log", "e1", 1, b"{}")

    assert await count(store) == 0


async def test_a_closed_store_says_so_and_closing_twice_is_closing_once(store: Store):
    await store.close()
    await store.close()

    with pytest.raises(StoreUnavailable, match="was closed: open it again"):
        await store.write([("insert_log", entries("e1", 1))])
    with pytest.raises(StoreUnavailable, match="was closed"):
        await store.fetch("latest_mark")
    with pytest.raises(StoreUnavailable, match="was closed"):
        await store.scan("latest_mark")


async def test_time_never_goes_back(store: Store):
    readings = [store.now() for _ in range(1000)]

    assert readings == sorted(readings)


async def test_the_last_of_several_changes_to_one_row_counts(store: Store):
    first, last = live_row("e1", wake_at=5), LiveChange("one", 9, None, 1, 0, "e1")
    runs = [run("r1", state="WAITING"), run("r1", state="SUCCESS")]

    await store.write(
        [
            ("insert_live", [first]),
            ("insert_execution", [execution("e1"), execution("e2")]),
            ("set_execution", [ExecutionChange("RUNNING", 7, None, None, "e1"), ("SUCCESS", 7, 8, None, "e1")]),
            ("update_live", [last]),
            ("upsert_run", runs),
            ("insert_queue", [waiting("e1"), waiting("e2")]),
            ("delete_queue", [("e1",)]),
        ]
    )

    states = [(found.id, found.state) for found in await executions.listed(store, "default")]
    assert states == [("e2", "PENDING"), ("e1", "SUCCESS")]
    assert await seen(store, "select owner, last_seq, wake_at, fence from live") == [("one", 9, None, 0)]
    assert await seen(store, "select id, state from run") == [("r1", "SUCCESS")]
    assert await seen(store, "select id from queue") == [("e2",)]


async def test_a_blob_put_without_a_pause_is_there_with_the_next_write(store: Store):
    blob = store.blobs.put_here(b"x" * 100_000)
    await store.write([("insert_blob", [(blob.hash, blob.size, NOON)])])

    assert await store.blobs.get(blob.hash) == b"x" * 100_000
    assert await known_blobs(store) == {blob.hash: blob.size}
