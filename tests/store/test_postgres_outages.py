"""What stands between a worker and its database: a server that goes and comes back, and a transaction pooler."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
import pytest

from ropewalk.store.errors import StoreUnavailable
from ropewalk.store.postgres import PostgresStore
from tests.postgres import PostgresServer, ask
from tests.store.samples import entries, run, written
from tests.store.wires import a_pooler

# The server comes back


@pytest.fixture(scope="module")
def own_server():
    """A durable server that a test may stop."""
    server = PostgresServer(fsync="on", full_page_writes="on")
    yield server
    server.remove()


async def test_after_a_restart_everything_goes_on_and_nothing_is_lost(own_server: PostgresServer):
    url = await own_server.create_database()
    store = await PostgresStore.open(url, worker="one")
    await store.write([("insert_log", entries("e1", 2))])
    own_server.restart()

    await store.write([("insert_log", entries("e2", 3))])
    async with store.transaction() as tx:
        await tx.execute("insert_log", "e3", 1, b"{}")

    assert len(await store.fetch("log_entries", "e1", 1, 10)) == 2
    assert await written(url) == [("e1", 2), ("e2", 3), ("e3", 1)]
    await store.close()


async def test_a_write_waits_for_a_server_that_is_away_and_is_written_once(own_server: PostgresServer):
    url = await own_server.create_database()
    store = await PostgresStore.open(url, worker="one", notify=False)
    own_server.stop()
    writing = asyncio.create_task(store.write([("insert_log", entries("e1", 2))]))
    await asyncio.sleep(0)
    own_server.start()
    await writing

    assert await written(url) == [("e1", 2)]
    await store.close()


async def test_a_server_that_stays_away_is_named_and_the_store_lives_on(own_server: PostgresServer):
    url = await own_server.create_database()
    store = await PostgresStore.open(url, worker="one", notify=False, patience_seconds=0.2)
    own_server.stop()
    try:
        with pytest.raises(StoreUnavailable, match=f"database test_3 at 127.0.0.1:{own_server.port} cannot be reached"):
            await store.write([("insert_log", entries("e1", 2))])
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await store.fetch("latest_mark")
    finally:
        own_server.start()
    await store.write([("insert_log", entries("e1", 2))])

    assert await written(url) == [("e1", 2)]
    await store.close()


@contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    """These processes stand still: a client that asks them something hears nothing."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("asking", ["fetch", "transaction"])
async def test_a_caller_told_to_stop_waiting_for_a_silent_server_stops(database: str, asking: str):
    store = await PostgresStore.open(database, worker="one", notify=False)
    sessions = await ask(database, "select pid from pg_stat_activity where application_name like 'ropewalk %'")
    pool = store._reader._pool if asking == "fetch" else store._pool

    async def ask_in_vain() -> None:
        if asking == "fetch":
            await store.fetch("latest_mark")
        async with store.transaction() as tx:
            await tx.execute("insert_log", "e1", 1, b"{}")

    with frozen([pid for (pid,) in sessions]):
        waiting = asyncio.create_task(ask_in_vain())
        while pool._pool.get_idle_size():
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,), timeout=30)
        has_stopped = waiting.cancelled()

    assert has_stopped
    await store.close()


# Behind a pooler


async def test_behind_a_transaction_pooler_everything_works_that_needs_no_session(database: str):
    async with a_pooler(database) as (pooler, url):
        store = await PostgresStore.open(url, worker="one", pooled=True)
        await store.write([("insert_log", entries("e1", 3)), ("upsert_run", [run(state="WAITING"), run()])])
        async with store.transaction() as tx:
            await tx.execute_many("insert_log", [("e2", seq, b"{}") for seq in range(1, 4)])
        store.hint("unheard")
        found = [len(await store.fetch("log_entries", name, 1, 10)) for name in ("e1", "e2")]
        scanned = await store.scan("log_entries", "e1", 1, 10)
        blob = await store.blobs.put(b"large")

        assert (found, len(scanned)) == ([3, 3], 3)
        assert await store.blobs.get(blob.hash) == b"large"
        assert await ask(database, "select state from run") == [("SUCCESS",)]
        assert await store.departed() == []
        assert pooler.transactions > 5
        await store.close()


async def test_behind_a_pooler_nothing_of_a_session_is_left_on_the_server(database: str):
    async with a_pooler(database, connections=1) as (_, url):
        store = await PostgresStore.open(url, worker="one", pooled=True)
        await store.write([("insert_log", entries("e1", 3))])
        async with store.transaction() as tx:
            await tx.execute("insert_log", "e2", 1, b"{}")
        settings = "select name from pg_settings where source = 'session' and setting <> reset_val"
        plain = await asyncpg.connect(url, statement_cache_size=0)

        assert await plain.fetch("select name from pg_prepared_statements where name <> ''") == []
        assert await plain.fetch(settings) == []
        await plain.close()
        await store.close()
