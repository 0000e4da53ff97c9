"""What a user with access to the tables changes or takes away is told, and what retention removes is not."""

import asyncio
import re
import shutil
import sqlite3
from pathlib import Path
from zlib import crc32

import pytest

from ropewalk.core.duration import DAY, HOUR
from ropewalk.service.retention import Policy, sweep
from ropewalk.store import retention
from ropewalk.store.sqlite import SqliteStore
from tests.engines.worlds import World, act, at_most, flow, node
from tests.service.test_auditing import audit, named
from tests.store.samples import ask, tell


async def make(db: str) -> None:
    """Leaves one that is done and was started under a key, one under another, one that was cancelled, one at work."""
    world = World(db)
    await world.open()
    try:
        await at_most(20, begin(world))
    finally:
        await world.close()


async def begin(world: World) -> None:
    for name in ("done", "other"):
        version = await world.save(flow(act("a", 41), name=name))
        await world.ended(await world.service.start(version, "unread", key=name))
    cancelled = await world.start(flow(node("ask", "approval", title="?"), name="cancelled"))
    await world.service.pause(cancelled)
    await world.service.resume(cancelled)
    await world.service.cancel(cancelled)
    await world.ended(cancelled)
    await world.start(flow(node("g", "gate"), name="works"))
    await world.outside.gate().arrived()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    asyncio.run(make(str(folder / "ropewalk.db")))
    return folder


@pytest.fixture
def db(made: Path, tmp_path: Path) -> str:
    shutil.copytree(made, tmp_path / "copy")
    return str(tmp_path / "copy" / "ropewalk.db")


def in_log(workflow: str, was: str, is_now: str) -> str:
    text = f"cast(replace(cast(entry as text), '{was}', '{is_now}') as blob)"
    return f"update log set entry = {text} where execution = {named(workflow)}"


DONE, OTHER = named("done"), named("other")
TABLES = ("execution where id", "log where execution", "run where execution", "live where execution", "queue where id")
FORGERIES = {
    "the output of the last node and of the execution": (
        [in_log("done", '"output":41', '"output":42'), in_log("done", '"a":41', '"a":42')], "I-02", "entry"
    ),
    "an input that nothing reads": ([in_log("done", '"unread"', '"other"')], "I-02", "entry 1"),
    "an input of one that is at work": ([in_log("works", '"version":1', '"version":1 ')], "I-02", "entry 1"),
    "a seal": ([in_log("done", '"sum":', '"sum":1')], "I-02", "entry"),
    "every idempotency row deleted": (["delete from idempotency"], "I-30", "no row says so"),
    "an idempotency row deleted": (["delete from idempotency where key = 'done'"], "I-30", "no row says so"),
    "an idempotency row repointed": (
        [f"update idempotency set answer = '[\"' || {OTHER} || '\"]' where key = 'done'"], "I-30", "under another key"
    ),
    "an idempotency row that names one started without a key": (
        [f"update idempotency set answer = '[\"' || {named('works')} || '\"]' where key = 'done'"],
        "I-30", "under another key",
    ),
    "an idempotency row for another body": (
        ["update idempotency set body_hash = 'x' where key = 'done'"], "I-30", "no row says so"
    ),
    "an execution deleted everywhere": (
        [f"create temporary table gone as select {DONE} as id",
         *(f"delete from {table} = (select id from gone)" for table in TABLES)],
        "I-30", "which is not there",
    ),
    "every audit row deleted": (["delete from audit"], "I-44", "0 times"),
    "the audit row of a start": ([f"delete from audit where object = {DONE}"], "I-44", "start is noted 0 times"),
    "a start that is noted twice": (
        ["insert into audit select 'x', at, workspace, actor, verb, object, before, after, detail from audit "
         f"where verb = 'start' and object = {DONE}"],
        "I-44", "start is noted 2 times",
    ),
    "the audit row of a cancel": (["delete from audit where verb = 'cancel'"], "I-44", "cancel"),
    "the audit row of a pause": (["delete from audit where verb = 'pause'"], "I-44", "pause"),
    "the audit row of a resume": (["delete from audit where verb = 'resume'"], "I-44", "resume"),
    "an owner that does not exist": (["update live set owner = 'ghost'"], "I-46", "ghost"),
}  # fmt: skip


def meddle(db: str, *orders: str) -> None:
    """Another program changes the file, on one connection."""
    connection = sqlite3.connect(db, isolation_level=None)
    for order in orders:
        connection.execute(order)
    connection.close()


async def test_an_untouched_store_passes(db: str):
    assert await audit(db) == []


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_forgery_is_told(db: str, forgery: str):
    orders, invariant, complaint = FORGERIES[forgery]
    meddle(db, *orders)

    found = await audit(db)

    assert [each for each in found if each.invariant == invariant and complaint in each.message], found


# What retention removes


async def swept(db: str, policy: Policy, later: int) -> None:
    """So much later everything that is old is gone."""
    store = await SqliteStore.open(db)
    await sweep(store, store.now() + later, policy)
    await store.close()


async def test_an_execution_that_retention_removed_is_no_forgery_though_its_key_is_kept(db: str):
    await swept(db, Policy(executions=HOUR), 2 * HOUR)

    assert ask(db, "select key from idempotency order by key") == [("done",), ("other",)]
    assert ask(db, f"select 1 from execution where id = {DONE}") == []
    assert await audit(db) == []


async def test_one_that_retention_cannot_have_removed_is_a_forgery_all_the_same(db: str):
    """What it removed was older than what is missing."""
    store = await SqliteStore.open(db)
    async with store.transaction() as tx:
        await retention.note(tx, retention.EXECUTIONS, store.now() - HOUR)
    await store.close()
    meddle(db, *FORGERIES["an execution deleted everywhere"][0])

    assert [each.invariant for each in await audit(db)] == ["I-30"]


async def test_audit_rows_that_retention_removed_are_no_forgery(db: str):
    await swept(db, Policy(audit=HOUR), 2 * HOUR)

    assert ask(db, "select count(*) from audit where verb <> 'forgot'") == [(0,)]
    assert await audit(db) == []


async def test_keys_that_are_a_day_old_are_no_longer_asked_for(db: str):
    await swept(db, Policy(), DAY + HOUR)
    tell(db, "update worker set heartbeat_at = heartbeat_at + ?", DAY + HOUR)

    assert ask(db, "select count(*) from idempotency") == [(0,)]
    assert await audit(db) == []


# Older versions


async def test_what_was_written_before_there_were_seals_passes_without_them(db: str):
    """Nor had it to say under which key it was started, and its audit log may have been cut."""
    for execution, seq, entry in ask(db, "select execution, seq, entry from log"):
        plain = re.sub(rb',"sum":\d+}$', b"}", entry)
        plain = re.sub(rb',"once":"[0-9a-f]+"', b"", plain)
        tell(db, "update log set entry = ? where execution = ? and seq = ?", plain, execution, seq)
    tell(db, "delete from audit")
    tell(db, "delete from idempotency")

    assert await audit(db) == []


async def test_a_log_that_a_new_version_went_on_with_is_sealed_from_there(db: str):
    """And one that an older worker went on with, as while a release is rolled out, is not from there."""
    entries = ask(db, f"select seq, entry from log where execution = {named('cancelled')} order by seq")
    for seq, entry in entries[::2]:
        plain = re.sub(rb',"sum":\d+}$', b"}", entry)
        tell(db, f"update log set entry = ? where execution = {named('cancelled')} and seq = ?", plain, seq)
    for seq, entry in entries[1::2]:
        tell(db, f"update log set entry = ? where execution = {named('cancelled')} and seq = ?", resealed(entry), seq)

    assert len(entries) > 3
    assert [each for each in await audit(db) if each.invariant == "I-02"] == []


def resealed(entry: bytes) -> bytes:
    plain = re.sub(rb',"sum":\d+}$', b"}", entry)
    return b'%b,"sum":%d}' % (plain[:-1], crc32(plain))
