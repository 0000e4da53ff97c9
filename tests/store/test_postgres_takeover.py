"""Taking over from a worker that was stopped in the middle of a transaction: the others do not wait for it."""

from collections.abc import AsyncIterator

import pytest

from ropewalk.store import workers
from ropewalk.store.errors import StoreUnavailable
from ropewalk.store.postgres import PostgresStore
from tests.polling import until
from tests.postgres import ask
from tests.store.samples import entries, live_row, written
from tests.store.wires import a_pooler

NEVER = 2**62
SILENT = "update worker set heartbeat_at = 1 where id = 'one'"


@pytest.fixture
def store(postgres_store: PostgresStore) -> PostgresStore:
    """The one that is taken over from."""
    return postgres_store


@pytest.fixture
async def heir(database: str) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(database, worker="two", notify=False)
    yield opened
    await opened.close()


async def take_over(heir: PostgresStore) -> list[str]:
    async with heir.transaction() as tx:
        return await workers.take_over(tx, "one", heir.worker, NEVER, 10)


async def test_a_row_that_is_locked_is_left_for_later(store: PostgresStore, heir: PostgresStore):
    await store.write([("insert_live", [live_row(owner="one")])])
    async with store.transaction():
        early = await take_over(heir)
    late = await take_over(heir)

    assert (early, late) == ([], ["e1"])


async def stopped(store: PostgresStore, heir: PostgresStore, database: str) -> None:
    """A worker is silent in the middle of a transaction, and another ends its sessions."""
    async with store.transaction() as tx:
        await tx.execute("insert_log", "e1", 1, b"{}")
        await ask(database, SILENT)
        await workers.hang_up(heir, 2)
        await until_none(database, "ropewalk one changes")


async def test_the_transaction_of_a_silent_worker_is_undone(store: PostgresStore, heir: PostgresStore, database: str):
    with pytest.raises(StoreUnavailable):
        await stopped(store, heir, database)

    assert await written(database) == []


async def test_behind_a_pooler_it_is_undone_as_well(heir: PostgresStore, database: str):
    async with a_pooler(database) as (_, url):
        store = await PostgresStore.open(url, worker="one", pooled=True)
        await store.write([("insert_live", [live_row(owner="one")])])
        with pytest.raises(StoreUnavailable):
            await stopped(store, heir, database)
        taken = await take_over(heir)
        await store.close()

    assert (taken, await written(database)) == (["e1"], [])


@pytest.mark.parametrize("connections", [1, 2])
async def test_behind_a_pooler_no_worker_is_interrupted_for_having_come_after_a_silent_one(
    heir: PostgresStore, database: str, connections: int
):
    async with a_pooler(database, connections) as (_, url):
        silent = await PostgresStore.open(url, worker="one", pooled=True)
        await silent.write([("insert_log", entries("e1", 1))])
        other = await PostgresStore.open(url, worker="three", pooled=True)
        await ask(database, SILENT)
        async with other.transaction() as tx:
            await tx.execute("insert_log", "e2", 1, b"{}")
            await workers.hang_up(heir, 2)
        for each in (silent, other):
            await each.close()

    assert await written(database) == [("e1", 1), ("e2", 1)]


async def until_none(database: str, name: str) -> None:
    """Returns once there is no session of this name."""

    async def is_gone() -> bool:
        return not await ask(database, f"select 1 from pg_stat_activity where application_name = '{name}'")

    await until(is_gone, f"there is no session of {name}", 10)


async def test_a_worker_that_was_heard_of_is_not_interrupted(store: PostgresStore, heir: PostgresStore, database: str):
    async with store.transaction() as tx:
        await tx.execute("insert_log", "e1", 1, b"{}")
        await workers.hang_up(heir, 2)

    assert await written(database) == [("e1", 1)]


async def test_a_silent_worker_between_two_transactions_keeps_its_connections(
    store: PostgresStore, heir: PostgresStore, database: str
):
    sessions = "select pid from pg_stat_activity where application_name like 'ropewalk one %' order by pid"
    await store.write([("insert_log", entries("e1", 1))])
    before = await ask(database, sessions)
    await ask(database, SILENT)
    await workers.hang_up(heir, 2)

    assert await ask(database, sessions) == before


async def test_a_worker_back_under_another_name_is_not_taken_for_the_dead(
    store: PostgresStore, heir: PostgresStore, database: str
):
    await store.rejoin()
    async with store.transaction() as tx:
        await tx.execute("insert_log", "e1", 1, b"{}")
        await ask(database, SILENT)
        await workers.hang_up(heir, 2)

    assert await written(database) == [("e1", 1)]


async def test_a_name_that_the_database_has_cut_is_no_workers(database: str, heir: PostgresStore):
    # What is left of the session's name is also what is left of the silent one's.
    alive, dead = "n" * 60 + "a", "n" * 60 + "b"
    stores = [await PostgresStore.open(database, worker=name, notify=False) for name in (alive, dead)]
    async with stores[0].transaction() as tx:
        await tx.execute("insert_log", "e1", 1, b"{}")
        await ask(database, f"update worker set heartbeat_at = 1 where id = '{dead}'")
        await workers.hang_up(heir, 2)

    assert await written(database) == [("e1", 1)]
    for each in stores:
        await each.close()
