"""Writing to the shared store: once, also when the connection is lost, and never by one that was taken over from."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from ropewalk.store import runs, workers
from ropewalk.store.errors import StaleWriter, StoreDefect, StoreUnavailable
from ropewalk.store.postgres import PostgresReader, PostgresStore, reader
from tests.polling import until
from tests.postgres import ask
from tests.store.samples import entries, live_row, run, written
from tests.store.wires import a_line

BLOCKED = """
select count(*) from pg_stat_activity
 where wait_event_type = 'Lock' and datname = current_database() and application_name not like '%heartbeat'
"""


@pytest.fixture
def store(postgres_store: PostgresStore) -> PostgresStore:
    """Only this kind is spoken of here."""
    return postgres_store


@pytest.fixture
async def other(database: str) -> AsyncIterator[asyncpg.Connection]:
    """Someone else's connection."""
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


async def blocked(database: str, count: int = 1) -> None:
    """Returns once so many wait for a lock of someone else's."""

    async def are_blocked() -> bool:
        return await ask(database, BLOCKED) == [(count,)]

    await until(are_blocked, f"{count} wait for a lock")


@asynccontextmanager
async def in_the_way(database: str, order: str = "insert into log values ('e1', 1, '')") -> AsyncIterator[None]:
    """Someone else has done this and not committed it yet; in the end it is undone."""
    connection = await asyncpg.connect(database)
    try:
        await connection.execute("begin")
        await connection.execute(order)
        yield
        await connection.execute("rollback")
    finally:
        await connection.close()


# Leaving


@pytest.fixture
async def complaints() -> AsyncIterator[list[str]]:
    """What the driver says without being asked."""
    loop, said = asyncio.get_running_loop(), list[str]()
    loop.set_exception_handler(lambda _, about: said.append(about["message"]))
    yield said
    loop.set_exception_handler(None)


async def _changed(store: PostgresStore) -> None:
    async with store.transaction() as tx:
        await tx.fetch("check_epoch", store.worker, store.epoch)


@pytest.mark.parametrize("is_pooled", [False, True])
async def test_a_task_interrupted_as_its_transaction_begins_leaves_none_open(
    database: str, complaints: list[str], is_pooled: bool
):
    store = await PostgresStore.open(database, worker="one", notify=False, pooled=is_pooled)
    async with in_the_way(database, "select 1 from worker where id = 'one' for update"):
        task = asyncio.ensure_future(_changed(store))
        await blocked(database)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await _changed(store)
    await store.close()

    assert (task.cancelled(), complaints) == (True, [])


# A commit whose answer is lost


@pytest.mark.parametrize("batch", [[("insert_log", entries("e1", 3))], [("upsert_run", [run(), run()])] * 2])
async def test_a_commit_whose_answer_was_lost_is_looked_up_and_not_repeated(database: str, batch):
    async with a_line(database) as (line, url):
        store = await PostgresStore.open(url, worker="one", notify=False)
        await store.write([("insert_log", entries("warm", 1)), *batch[:0]])
        before = await ask(database, "select commits from worker")
        line.is_losing_answers = True
        await store.write(batch)

        assert line.losses == 1
        assert await ask(database, "select commits from worker") == [(before[0][0] + 1,)]
        await store.write([("insert_log", entries("after", 1))])
        await store.close()


async def test_a_commit_that_never_arrived_is_sent_again(database: str):
    async with a_line(database) as (line, url):
        store = await PostgresStore.open(url, worker="one", notify=False)
        await store.write([("insert_log", entries("e1", 1))])
        line.is_losing_requests = True
        await store.write([("insert_log", entries("e2", 2))])

        assert line.losses == 1
        assert await written(database) == [("e1", 1), ("e2", 2)]
        await store.close()


async def test_a_backend_terminated_in_mid_commit_changes_nothing_for_the_writer(store: PostgresStore, database: str):
    async with in_the_way(database):
        writing = asyncio.create_task(store.write([("insert_log", entries("e1", 3))]))
        await blocked(database)
        await ask(database, "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'")
    await writing

    assert await written(database) == [("e1", 3)]


async def test_a_commit_the_server_is_still_busy_with_and_its_repetition_are_one(database: str):
    async with a_line(database) as (line, url):
        store = await PostgresStore.open(url, worker="one", notify=False)
        async with in_the_way(database):
            writing = asyncio.create_task(store.write([("insert_log", entries("e1", 2))]))
            await blocked(database)
            line.cut()
            await blocked(database, 2)
        await writing

        assert await written(database) == [("e1", 2)]
        assert store.stale_writes == 0
        await store.close()


async def test_a_given_up_commit_that_arrives_late_does_not_pass_for_the_next_one(database: str):
    async with a_line(database) as (line, url):
        store = await PostgresStore.open(url, worker="one", notify=False, patience_seconds=0)
        async with in_the_way(database):
            lost = asyncio.create_task(store.write([("insert_log", entries("e1", 1))]))
            await blocked(database)
            line.cut()
            with pytest.raises(StoreUnavailable):
                await lost
            next_one = asyncio.create_task(store.write([("insert_log", entries("next", 1))]))
            await blocked(database, 2)
        with pytest.raises(StoreUnavailable, match="did not take a commit"):
            await next_one
        await store.write([("insert_log", entries("next", 1))])

        assert await written(database) == [("e1", 1), ("next", 1)]
        await store.close()


async def test_a_cancelled_write_is_carried_out_all_the_same(store: PostgresStore, database: str):
    async with in_the_way(database):
        writing = asyncio.create_task(store.write([("insert_log", entries("e1", 3))]))
        await blocked(database)
        writing.cancel()
        following = asyncio.create_task(store.write([("insert_log", entries("e2", 1))]))
    await asyncio.wait((writing, following))

    assert writing.cancelled()
    assert await written(database) == [("e1", 3), ("e2", 1)]


async def test_deadlocked_commits_are_written_in_the_end(
    store: PostgresStore, other: asyncpg.Connection, database: str
):
    await store.write([("upsert_run", [run("r1"), run("r2")])])
    transaction = other.transaction()
    await transaction.start()
    await other.execute("update run set node = 'b' where id = 'r2'")
    writing = asyncio.create_task(store.write([("upsert_run", [run("r1", state="FAILED"), run("r2", state="FAILED")])]))
    await blocked(database)
    # One of the two is undone; if it is we, that was the one.
    try:
        await other.execute("update run set node = 'b' where id = 'r1'")
    except asyncpg.DeadlockDetectedError:
        await transaction.rollback()
    else:
        await transaction.commit()
    await writing

    assert await store.fetch("list_runs", "e1", "", None, "FAILED", 10)


# Taken over


async def test_a_takeover_comes_after_a_commit_under_way_and_refuses_the_next(store: PostgresStore, database: str):
    second = await PostgresStore.open(database, worker="two", notify=False)

    async def take_over() -> list[str]:
        async with second.transaction() as tx:
            return await workers.take_over(tx, "one", "two", 2**62, 10)

    await store.write([("insert_live", [live_row(owner="one")])])
    async with in_the_way(database):
        writing = asyncio.create_task(store.write([("insert_log", entries("e1", 1))]))
        await blocked(database)
        early = await take_over()
    await writing
    late = await take_over()
    with pytest.raises(StaleWriter):
        await store.write([("insert_log", entries("e2", 1))])

    assert (early, late) == ([], ["e1"])
    assert await written(database) == [("e1", 1)]
    await second.close()


@pytest.mark.parametrize("rows", [1, 500])
async def test_a_commit_that_meets_a_takeover_writes_nothing(
    store: PostgresStore, other: asyncpg.Connection, database: str, rows: int
):
    async with other.transaction():
        await other.execute("select 1 from worker where id = 'one' for update")
        await other.execute("update worker set epoch = epoch + 1 where id = 'one'")
        writing = asyncio.create_task(store.write([("insert_log", entries("e1", rows)), ("upsert_run", [run()] * 2)]))
        await blocked(database)
    with pytest.raises(StaleWriter):
        await writing

    assert await written(database) == []
    assert await ask(database, "select * from run") == []


async def test_a_takeover_waits_for_a_transaction_under_way(
    store: PostgresStore, other: asyncpg.Connection, database: str
):
    taken = asyncio.Event()

    async def take_over() -> None:
        async with other.transaction():
            await other.execute("select 1 from worker where id = 'one' for update")
            taken.set()

    async with store.transaction() as tx:
        taking = asyncio.create_task(take_over())
        await blocked(database)
        assert not taken.is_set()
        await tx.execute("insert_log", "e1", 1, b"{}")
    await taking

    assert await written(database) == [("e1", 1)]


async def test_the_heartbeat_does_not_wait_for_transactions(store: PostgresStore):
    assert store._heartbeat
    async with store.transaction():
        before = store._heartbeat.beats
        assert store._heartbeat._loop
        store._heartbeat._loop.call_soon_threadsafe(store._heartbeat._wake.set)
        heart = store._heartbeat

        await until(lambda: heart.beats > before, "the heart beats", 5)


# Transactions and reading


async def test_a_transaction_that_goes_on_after_a_refusal_says_that_nothing_was_kept(
    store: PostgresStore, database: str
):
    async def transact() -> None:
        async with store.transaction() as tx:
            await tx.execute("insert_log", "e1", 1, b"{}")
            with pytest.raises(Exception, match="duplicate key"):
                await tx.execute("insert_log", "e1", 1, b"{}")

    with pytest.raises(StoreDefect, match="nothing of it was kept"):
        await transact()

    assert await written(database) == []


async def test_when_every_connection_is_taken_a_transaction_is_refused_after_a_while(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
):
    go_on, inside = asyncio.Event(), asyncio.Semaphore(0)

    async def hold() -> None:
        async with store.transaction():
            inside.release()
            await go_on.wait()

    holders = [asyncio.create_task(hold()) for _ in range(reader.CONNECTIONS)]
    for _ in holders:
        await inside.acquire()
    # Only now: on a busy machine making a connection may take longer.
    monkeypatch.setattr(reader, "ACQUIRE_SECONDS", 0.05)
    with pytest.raises(StoreUnavailable, match="none of our 4 connections was free"):
        async with store.transaction():
            raise AssertionError("never entered")
    go_on.set()
    await asyncio.gather(*holders)


async def test_a_statement_that_was_cut_off_leaves_the_connection_usable(store: PostgresStore, database: str):
    connections = "select count(*) from pg_stat_activity where application_name = 'ropewalk one changes'"
    for _ in range(10):
        with pytest.raises(StoreDefect):
            async with store.transaction() as tx:
                await tx.execute("insert_log", "e1", "one", b"{}")

    assert await ask(database, connections) == [(1,)]


async def test_a_text_that_postgresql_cannot_keep_is_kept_without_it(store: PostgresStore):
    await store.write([("upsert_run", [run("r1", error="bad\0byte"), run("r2", error="fine")])])

    assert {row.id: row.error for row in await runs.listed(store, "e1")} == {
        "r1": "bad�byte",
        "r2": "fine",
    }


async def test_time_is_the_databases(store: PostgresStore, database: str):
    [(before,)] = await ask(database, "select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)")
    now = store.now()
    [(after,)] = await ask(database, "select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)")

    assert before - 50_000 <= now <= after + 50_000


async def test_anyone_can_read_and_no_worker_is_registered_for_it(store: PostgresStore, database: str):
    await store.write([("insert_log", entries("e1", 2))])

    visitor = await PostgresReader.open(database)

    assert len(await visitor.fetch("log_entries", "e1", 1, 10)) == 2
    assert await visitor.fetch_one("log_entries", "e2", 1, 10) is None
    assert await ask(database, "select id from worker") == [("one",)]
    await visitor.close()
