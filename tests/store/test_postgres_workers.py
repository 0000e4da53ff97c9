"""Workers of a fleet: alive by their heartbeat, gone when it stops, and told of each other's doings."""

import asyncio
import subprocess
from collections.abc import AsyncIterator

import pytest

from ropewalk.store import workers
from ropewalk.store.access import CONNECTED
from ropewalk.store.errors import StaleWriter, StoreUnavailable
from ropewalk.store.postgres import PostgresStore
from ropewalk.store.postgres import store as store_module
from tests.polling import blocking_until, until
from tests.postgres import PostgresServer, ask
from tests.store.conftest import Start
from tests.store.samples import entries
from tests.store.test_ownership import line
from tests.store.wires import a_line

HANG_UP = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like "
QUICK = {"lease_seconds": 1.0, "beat_seconds": 0.02}


@pytest.fixture
async def quick(database: str) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(database, worker="one", notify=False, **QUICK)
    yield store
    await store.close()


def beats(store: PostgresStore) -> int:
    assert store._heartbeat
    return store._heartbeat.beats


# The heartbeat


async def test_the_heartbeat_goes_on_while_the_loop_is_blocked(quick: PostgresStore):
    before = beats(quick)

    blocking_until(lambda: beats(quick) >= before + 3, "the heart beats three times")

    assert quick._lost is None


async def test_a_beat_says_when_and_how_much_the_worker_has_in_hand(quick: PostgresStore):
    registered = await workers.get(quick, "one")
    quick.load = 7
    before = beats(quick)
    await until(lambda: beats(quick) >= before + 2, "the heart beats twice")

    worker = await workers.get(quick, "one")

    assert registered
    assert worker
    assert worker.load == 7
    assert worker.heartbeat_at > registered.heartbeat_at
    assert abs(worker.heartbeat_at - quick.now()) < 1_000_000


async def test_a_worker_is_listed_with_what_it_said_of_itself(database: str):
    store = await PostgresStore.open(database, version="1.2", pool="gpu", slots=9, notify=False)
    worker = await workers.get(store, store.worker)

    assert worker
    assert (worker.version, worker.pool, worker.slots, worker.epoch) == ("1.2", "gpu", 9, 1)
    assert store.worker.startswith(f"{worker.host[:10]}")
    await store.close()


async def test_a_worker_that_was_taken_over_from_is_told_by_its_heartbeat_and_refused(
    quick: PostgresStore, database: str
):
    told: list[str] = []
    quick.on_lost = told.append
    await ask(database, "update worker set epoch = epoch + 1")
    await until(lambda: told, "the worker is told")

    with pytest.raises(StaleWriter, match="taken over"):
        await quick.write([("insert_log", entries("e1", 1))])

    assert len(told) == 1
    assert quick.stale_writes == 1
    assert await ask(database, "select * from log") == []


async def test_a_worker_that_cannot_renew_for_a_lease_gives_up_by_itself(database: str):
    told: list[str] = []
    async with a_line(database) as (line, url):
        store = await PostgresStore.open(url, worker="one", notify=False, lease_seconds=0.3, beat_seconds=0.02)
        store.on_lost = told.append
        line.is_down = True
        line.cut()
        await until(lambda: told, "the worker is told")

        with pytest.raises(StaleWriter, match="could not renew its lease"):
            await store.write([("insert_log", entries("e1", 1))])
        with pytest.raises(StaleWriter):
            async with store.transaction():
                raise AssertionError("never entered")

        line.is_down = False
        await store.close()
    assert len(told) == 1


async def test_a_heartbeat_that_lost_its_connection_is_back_at_once(database: str):
    store = await PostgresStore.open(database, worker="one", notify=False)
    before = beats(store)
    await ask(database, HANG_UP + "'%heartbeat'")

    # Long before the next beat would have been due.
    await until(lambda: beats(store) > before, "the heart beats again", 3)
    await until(lambda: store._heartbeat and store._heartbeat.has_lock, "the lock is taken again", 3)

    assert store._lost is None
    await store.close()


async def test_a_worker_that_lost_its_lease_comes_back_as_another(quick: PostgresStore, database: str):
    await ask(database, "update worker set epoch = epoch + 1")
    with pytest.raises(StaleWriter):
        await quick.write([("insert_log", entries("e1", 1))])
    await quick.rejoin()
    await quick.write([("insert_log", entries("e2", 1))])
    async with quick.transaction() as tx:
        await tx.execute("insert_log", "e3", 1, b"{}")

    assert quick.worker != "one"
    assert await ask(database, "select execution from log order by 1") == [("e2",), ("e3",)]
    assert await ask(database, "select count(*) from worker where heartbeat_at > 0") == [(2,)]


async def test_what_waited_while_its_worker_came_back_as_another_is_not_written(quick: PostgresStore, database: str):
    begun = quick.rejoin(), quick.write([("insert_log", entries("e1", 1))])

    _, refused = await asyncio.gather(*begun, return_exceptions=True)

    assert isinstance(refused, StoreUnavailable)
    assert "has come back as" in str(refused)
    assert await ask(database, "select count(*) from log") == [(0,)]


async def test_a_closed_store_does_not_come_back(quick: PostgresStore):
    await quick.close()

    with pytest.raises(StoreUnavailable, match="was closed"):
        await quick.rejoin()


async def test_a_worker_that_leaves_says_so(database: str):
    store = await PostgresStore.open(database, worker="one", notify=False)
    await store.close()

    assert await ask(database, "select heartbeat_at, has_lock from worker") == [(0, 0)]


async def test_the_same_name_again_is_a_higher_epoch_and_the_first_is_refused(quick: PostgresStore, database: str):
    again = await PostgresStore.open(database, worker="one", notify=False)
    with pytest.raises(StaleWriter):
        await quick.write([("insert_log", entries("e1", 1))])
    await again.write([("insert_log", entries("e1", 1))])

    assert (quick.epoch, again.epoch) == (1, 2)
    await again.close()


@pytest.mark.parametrize("name", ["", "a b", "o'ne", "x" * 201, "ö"])
async def test_a_name_that_is_none_is_refused(database: str, name: str):
    with pytest.raises(ValueError, match="letters, digits"):
        await PostgresStore.open(database, worker=name)


# Who is gone


async def test_a_killed_worker_is_known_to_be_gone_before_its_lease_ends(
    database: str, start: Start, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(store_module, "GRACE_SECONDS", 0.05)
    store = await PostgresStore.open(database, worker="one", notify=False)
    process = start("work", database, "two")
    line(process)
    alive = await store.departed()
    kill(process)

    found = await until(store.departed, "the killed worker is known to be gone", 10)

    assert (alive, found) == ([], ["two"])
    await store.close()


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


async def test_a_worker_that_was_cut_off_itself_believes_no_other_gone(database: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store_module, "GRACE_SECONDS", 0)
    store = await PostgresStore.open(database, worker="one", notify=False)
    await ask(database, "insert into worker select 'two', 1, '', 1, '', '', 0, 0, 0, 1, 0, 1")
    seen = await store.departed()
    assert store._heartbeat
    store._heartbeat.has_lock = False

    assert (seen, await store.departed()) == (["two"], [])
    await store.close()


# Two workers


async def test_two_workers_write_side_by_side(database: str):
    both = [await PostgresStore.open(database, worker=name, notify=False) for name in ("one", "two")]
    for number in range(20):
        await asyncio.gather(*(each.write([("insert_log", entries(f"{each.worker} {number}", 5))]) for each in both))

    assert await ask(database, "select count(*) from log") == [(200,)]
    for each in both:
        await each.close()


async def test_a_hint_reaches_the_others(database: str):
    both = [await PostgresStore.open(database, worker=name) for name in ("one", "two")]
    heard: list[str] = []
    both[1].on_hint = heard.extend
    await until(lambda: "*" in heard, "the worker hears that it is connected")
    for topic in ("acme", "acme", "default"):
        both[0].hint(topic)
    await until(lambda: {"acme", "default"} <= set(heard), "both hints are heard")

    assert heard.count("acme") == 1
    for each in both:
        await each.close()


async def test_a_flood_of_topics_is_any(database: str):
    store = await PostgresStore.open(database)
    heard: list[list[str]] = []
    store.on_hint = heard.append
    await until(lambda: heard, "a hint is heard")
    for number in range(20_000):
        store.hint(f"workspace {number}")
    await until(lambda: len(heard) == 2, "two hints are heard")

    assert heard[1] == ["*"]
    assert store._notices
    assert store._notices.sent == 1
    await store.close()


async def test_many_hints_are_few_notifications(database: str):
    store = await PostgresStore.open(database)
    heard: list[str] = []
    store.on_hint = heard.extend
    await until(lambda: heard, "a hint is heard")
    for _ in range(200):
        store.hint("acme")
    store.hint("last")
    await until(lambda: "last" in heard, "the last hint is heard")

    assert store._notices
    # Those that came in one turn of the loop go together, but for what was on its way.
    assert 1 <= store._notices.sent <= 5
    await store.close()


async def test_hearing_goes_on_after_the_connection_was_lost(database: str):
    store = await PostgresStore.open(database)
    heard: list[str] = []
    store.on_hint = heard.extend
    await until(lambda: "*" in heard, "the worker hears that it is connected")
    heard.clear()
    await ask(database, HANG_UP + "'%notices'")
    await until(lambda: "*" in heard, "the worker hears that it is connected")
    store.hint("acme")
    await until(lambda: "acme" in heard, "the hint is heard")

    assert heard == ["*", CONNECTED, "acme"]
    await store.close()


async def test_without_notifications_nothing_is_sent_and_nothing_comes(postgres: PostgresServer, database: str):
    silent = await PostgresStore.open(database, worker="one", notify=False)
    other = await PostgresStore.open(database, worker="two")
    heard: list[str] = []
    other.on_hint = heard.extend
    await until(lambda: "*" in heard, "the worker hears that it is connected")
    silent.hint("acme")
    other.hint("default")
    await until(lambda: "default" in heard, "the hint is heard")

    assert heard == ["*", CONNECTED, "default"]
    await silent.close()
    await other.close()
