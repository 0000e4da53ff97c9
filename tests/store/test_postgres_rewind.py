"""A database that went back in time under a living worker: noticed by what it has forgotten, and written to no more."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from ropewalk.store import workers
from ropewalk.store.errors import StaleWriter, WentBack
from ropewalk.store.postgres import PostgresStore
from tests.polling import until
from tests.postgres import a_copy, ask
from tests.store.samples import entries, execution, live_row, register, written

SELDOM = {"lease_seconds": 60.0, "beat_seconds": 30.0}
"""No beat comes between two lines of a test."""
OFTEN = {"lease_seconds": 60.0, "beat_seconds": 0.02}
"""Soon heard of, and no lease runs out while a busy machine puts the copy in its place."""


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(database, worker="one", notify=False, **SELDOM)
    yield store
    await store.close()


@pytest.fixture
async def beating(database: str) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(database, worker="one", notify=False, **OFTEN)
    yield store
    await store.close()


async def test_a_commit_on_a_database_that_forgot_one_writes_nothing_and_says_so(store: PostgresStore, database: str):
    told: list[str] = []
    store.on_lost = told.append
    async with a_copy(database) as copy:
        for name in ("e1", "e2", "e3"):
            await store.write([("insert_log", entries(name, 1))])
        await copy.go_back()

        with pytest.raises(WentBack, match="commit 3 of worker one was answered, and the last it knows of is 0"):
            await store.write([("insert_log", entries("e4", 1))])

    await asyncio.sleep(0)
    assert await written(database) == []
    assert [rewind.worker for rewind in store.rewinds] == ["one"]
    assert len(told) == 1


async def test_it_writes_again_under_another_name(store: PostgresStore, database: str):
    async with a_copy(database) as copy:
        await store.write([("insert_log", entries("e1", 1))])
        await copy.go_back()
        with pytest.raises(WentBack):
            await store.write([("insert_log", entries("e2", 1))])
        await store.rejoin()
        await store.write([("insert_log", entries("e3", 1))])

    assert store.worker != "one"
    assert len(store.rewinds) == 1
    assert await written(database) == [("e3", 1)]


async def test_a_worker_with_nothing_to_write_hears_of_it_from_its_heartbeat(beating: PostgresStore, database: str):
    async with a_copy(database) as copy:
        await beating.write([("insert_log", entries("e1", 1))])
        await copy.go_back()
        await until(lambda: beating.rewinds, "the rewind is noticed")

    assert "went back in time" in beating.rewinds[0].why


async def test_a_worker_that_wrote_nothing_misses_its_own_heartbeats(beating: PostgresStore, database: str):
    async with a_copy(database) as copy:
        before = beating._heartbeat.beats
        await until(lambda: beating._heartbeat.beats > before + 1, "the heart beats")
        await copy.go_back()
        await until(lambda: beating.rewinds, "the rewind is noticed")

    assert "the last heartbeat of worker one is not there" in beating.rewinds[0].why


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ("delete from worker", "it does not know worker one"),
        ("update worker set epoch = epoch - 1", "worker one has epoch 1, and the database knows epoch 0"),
    ],
)
async def test_a_worker_the_database_does_not_know_so_is_refused(
    store: PostgresStore, database: str, order: str, why: str
):
    await ask(database, order)
    with pytest.raises(WentBack, match=why):
        async with store.transaction():
            pass
    with pytest.raises(WentBack, match=why):
        await store.write([("insert_log", entries("e1", 1))])

    assert await written(database) == []


async def test_a_worker_that_was_also_taken_over_from_notes_what_is_lost(store: PostgresStore, database: str):
    async with a_copy(database) as copy:
        await store.write([("insert_log", entries("e1", 1))])
        await copy.go_back()
        await ask(database, "update worker set epoch = epoch + 1")
        with pytest.raises(StaleWriter):
            await store.write([("insert_log", entries("e2", 1))])
        await store.rejoin()

    assert ["commit 1 of worker one was answered" in rewind.why for rewind in store.rewinds] == [True]


async def test_a_worker_whose_lease_ran_out_and_whose_commits_are_there_notes_nothing(
    store: PostgresStore, database: str
):
    await store.write([("insert_log", entries("e1", 1))])
    await ask(database, "update worker set epoch = epoch + 1")
    with pytest.raises(StaleWriter):
        await store.write([("insert_log", entries("e2", 1))])
    await store.rejoin()

    assert store.rewinds == []


async def test_what_was_taken_in_a_transaction_that_is_lost_gets_no_log(store: PostgresStore, database: str):
    """No commit is missing: the one that would be the first about the execution finds it in no hands, or not at all."""
    async with a_copy(database) as copy:
        async with store.transaction() as tx:
            await tx.execute("insert_execution", *execution("e1"))
            await tx.execute("insert_live", *live_row("e1", owner="one"))
        expected = ("expect_live", [("e1", "one")])
        await store.write([expected, ("insert_log", entries("e1", 1))])
        before = await written(database)
        await copy.go_back()
        await ask(database, "update worker set commits = 1")

        with pytest.raises(WentBack, match="what worker one had taken to execute is not its own there"):
            await store.write([expected, ("insert_log", entries("e1", 1))])

    assert before == [("e1", 1)]
    assert await written(database) == []


async def test_a_heartbeat_from_a_time_to_come_is_no_sign_of_life(store: PostgresStore):
    now = store.now()
    async with store.transaction() as tx:
        await register(tx, "dead", now + 10_000_000)
        await register(tx, "well", now)
        for name, owner in (("e1", "dead"), ("e2", "well")):
            await tx.execute("insert_live", *live_row(name, owner=owner))
    window = (now - 5_000_000, now + 5_000_000)
    silent = await workers.silent(store, *window, 10)
    async with store.transaction() as tx:
        taken = [await workers.take_over(tx, name, "one", window[0], 10, window[1]) for name in ("dead", "well")]

    assert silent == ["dead"]
    assert taken == [["e1"], []]
