"""The audit: a store in any state its engine leaves it in passes, and every kind of lie is told."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from ropewalk.checker import Limits, Violation
from ropewalk.core.events import SlotReleased
from ropewalk.service.auditing import Audit
from ropewalk.store.access import Row, Value
from ropewalk.store.auditing import TABLES
from ropewalk.store.blobs import BlobFiles
from ropewalk.store.postgres import PostgresReader
from ropewalk.store.postgres.looking import blobs_of
from ropewalk.store.sqlite import SqliteReader
from tests import postgres
from tests.engines.worlds import ONCE, World, act, at_most, flow, node
from tests.store.samples import ask, tell

LATER = {"maxAttempts": 2, "delay": "1h", "jitter": 0}


async def make(db: str) -> None:
    """Leaves one of each: failed, late, large, waiting for an event with a key, to retry, with a slot, queued."""
    world = World(db)
    await world.open(default_slots=1)
    try:
        await at_most(20, begin(world))
    finally:
        await world.close()


async def begin(world: World) -> None:
    await world.run(flow(act("b", fails=9, retry=ONCE), name="failed"))
    await world.run(flow(node("ask", "approval", title="?"), name="late", timeout="30ms"))
    await world.run(flow(act("big", "x" * 70_000), name="large"))
    waits = flow(node("e", "wait", event="paid", filter="item.id == 7"), name="waits", concurrencyKey="k")
    for document in (waits, flow(act("r", fails=1, retry=LATER), name="retries")):
        await world.until(await world.start(document), SlotReleased)
    await world.start(flow(node("g", "gate"), name="works"))
    await world.outside.gate().arrived()
    await world.start(flow(act("q"), name="queued"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    asyncio.run(make(str(folder / "ropewalk.db")))
    return folder


@pytest.fixture
def db(made: Path, tmp_path: Path) -> str:
    shutil.copytree(made, tmp_path / "copy")
    return str(tmp_path / "copy" / "ropewalk.db")


async def audit(db: str, *, at_rest: bool = True, limits: Limits | None = None) -> list[Violation]:
    """Everything an audit of the store finds."""
    reader = await SqliteReader.open(db)
    try:
        return await found_by(Audit(reader, at_rest=at_rest, limits=limits, load_blob=BlobFiles(f"{db}.blobs").get))
    finally:
        await reader.close()


async def found_by(walk: Audit) -> list[Violation]:
    found = [violation async for each in walk.executions() for violation in each.violations]
    return found + await walk.together()


def named(workflow: str) -> str:
    """The execution of this workflow, in SQL."""
    return f"(select e.id from execution e join workflow w on w.id = e.workflow where w.name = '{workflow}')"


@pytest.mark.parametrize("at_rest", [True, False])
async def test_what_an_engine_leaves_behind_passes(db: str, at_rest: bool):
    assert await audit(db, at_rest=at_rest, limits={"default": 1}) == []
    tables = ("execution", "live", "queue", "event_wait", "blob", "dead_letter")
    assert [ask(db, f"select count(*) from {table}")[0][0] for table in tables] == [7, 4, 1, 1, 3, 1]


ENDED = named("failed")
OFFER = "insert into offer (id, execution, workspace, node, item, attempt, pool, work, offered_at, fence)"
LIES = {
    "an execution's trigger": ("update execution set trigger = 'CRON'", "execution: trigger"),
    "the error of what timed out": ("update execution set error = 'no' where state = 'TIMEOUT'", "execution: error"),
    "an execution's trace": ("update execution set trace_id = 'other'", "execution: trace_id"),
    "an execution's key": ("update execution set concurrency_key = 'other'", "execution: concurrency_key"),
    "a life that is over": (f"insert into live select id, workspace, null, 1, 1, null, 0, 0, null, 5 from execution "
                            f"where id = {ENDED}", "live: it is FAILED, and is kept"),
    "a life that is lost": ("delete from live where has_slot = 1", "live: it is RUNNING, and is not kept"),
    "a slot": (f"update live set has_slot = 1, owner = 'local' where execution = {named('waits')}", "live: has_slot"),
    "a slot that no execution has": ("update live set has_slot = 0, owner = null where has_slot = 1", "live: has_slot"),
    "a slot without an owner": ("update live set owner = null", "it has a slot and no owner"),
    "an owner without a fence": ("update live set fence = 0", "an owner and no fence"),
    "an owner without a slot": ("update live set owner = 'w' where has_slot = 0", "it has no slot, and w holds it"),
    "a waking": (f"update live set wake_at = wake_at + 1 where execution = {named('retries')}", "live: wake_at"),
    "a waking that is lost": (f"update live set wake_at = null where execution = {named('retries')}", "live: wake_at"),
    "a key": (f"update live set has_key = 0 where execution = {named('waits')}", "live: has_key"),
    "a priority": ("update live set priority = 9", "live: priority"),
    "a place in the queue that is lost": ("delete from queue", "queue: it needs a slot"),
    "a place in the queue of who is over": (f"update queue set id = {ENDED}", "queue: it needs no slot"),
    "a place in the queue in other words": ("update queue set priority = 9, is_new = 0", "queue: is_new"),
    "a claim without a worker": ("update queue set state = 'CLAIMED'", "queue: state"),
    "a run": ("update run set retry_after = retry_after + 1", "retry_after"),
    "a run that is lost": ("delete from run", "the log has it, the table has not"),
    "a run too many": (f"insert into run (id, execution, node, attempt, state) values ('x', {ENDED}, 'b', 9, 'FAILED')",
                       "run x (b 9): no event made it"),
    "a dead letter's resolution": ("update dead_letter set resolution = 'FIXED'", "resolution"),
    "a dead letter's reviewer": ("update dead_letter set reviewed_by = 'eve'", "reviewed_by"),
    "a dead letter's inputs": ("update dead_letter set inputs = '7'", "other inputs"),
    "a dead letter too many": ("update dead_letter set id = 'x'", "dead letter x (b): no event made it"),
    "an event wait that is lost": ("delete from event_wait", "event wait of e: the log has it"),
    "an event wait's subject": ("update event_wait set subject = 'other'", "event wait of e: subject"),
    "an event wait of nobody": (f"update event_wait set execution = {ENDED}", "nobody waits there"),
    "something that was not told": (f"insert into inbox (id, execution, signal, sent_at) values ('x', {ENDED}, '', 0)",
                                    "yet to be told 1 things"),
    "an entry's number": ("update log set "
                          """entry = cast(replace(cast(entry as text), '"seq":1,', '"seq":9,') as blob)""",
                          "the entry kept as 1 says it is 9"),
    "a log that is lost": (f"delete from log where execution = {ENDED}", "its log does not begin with"),
    "a blob without a row": ("delete from blob", "the store does not know"),
    "a blob that may go any day": ("delete from blob_reference", "the store does not know"),
    "a run that is offered": (f"{OFFER} values ('x', {ENDED}, 'default', 'b', -1, 1, 'p', '', 0, 0)",
                              "1 of its runs are offered"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_is_told(db: str, lie: str):
    order, complaint = LIES[lie]
    tell(db, order)

    assert [each for each in await audit(db) if complaint in each.message]


async def test_rows_of_a_version_that_kept_no_traces_and_gave_no_reason_for_a_timeout_pass(db: str):
    tell(db, "update execution set trace_id = null")
    tell(db, "update execution set error = null where state = 'TIMEOUT'")

    assert await audit(db) == []


@pytest.mark.parametrize("place", [0, 1], ids=["of a node", "of the execution"])
async def test_a_damaged_large_value_is_told(db: str, place: int):
    file = sorted(Path(f"{db}.blobs").glob("*/*"), key=lambda file: file.stat().st_size)[place]
    file.write_bytes(b"y" * file.stat().st_size)

    assert [each.invariant for each in await audit(db)] == ["I-39"]


STRAYS = {
    "log": "insert into log values ('stray', 1, '')",
    "run": "insert into run (id, execution, node, attempt, state) values ('x', 'stray', 'a', 1, 'SUCCESS')",
    "dead_letter": "update dead_letter set execution = 'stray'",
    "live": "insert into live values ('stray', 'default', null, 1, 1, null, 0, 0, null, 5)",
    "queue": "insert into queue (id, workspace, state, priority, is_new, enqueued_at, not_before, attempts) "
             "values ('stray', 'default', 'PENDING', 5, 1, 0, 0, 0)",
    "event_wait": "insert into event_wait values ('stray', 'a', -1, 1, 'default', 's', null, null)",
    "offer": f"{OFFER} values ('x', 'stray', 'default', 'a', -1, 1, 'p', '', 0, 0)",
    "inbox": "insert into inbox (id, execution, signal, sent_at) values ('x', 'stray', '', 0)",
}  # fmt: skip


@pytest.mark.parametrize("at_rest", [True, False])
@pytest.mark.parametrize("table", TABLES)
async def test_a_row_of_an_execution_that_does_not_exist_is_told(db: str, table: str, at_rest: bool):
    tell(db, STRAYS[table])

    told = [each.message for each in await audit(db, at_rest=at_rest) if each.execution == "stray"]

    assert told == [f"{table}: it has rows and does not exist"]


# What may be for a moment, while someone executes on the store

W = "insert into worker values ('w', 1, 'host', 7, '1', 'default', 0, 0, 0, 0, 0, 0)"
CLAIM = (
    W,
    f"update live set owner = 'w', has_slot = 1, fence = fence + 1 where execution = {named('queued')}",
    "update queue set state = 'CLAIMED', claimed_by = 'w'",
)
MOMENTS = {
    "a claim whose execution has not begun": CLAIM,
    "one that is held to be told something": (W, "update live set owner = 'w' where has_slot = 0"),
    "one that is over and held to be told something": (
        W,
        f"insert into live select id, workspace, 'w', 1, 0, null, 0, 0, null, 5 from execution where id = {ENDED}",
    ),
    "something one that is over has yet to be told": (
        f"insert into inbox (id, execution, signal, sent_at) values ('x', {ENDED}, '', 0)",
    ),
}


@pytest.mark.parametrize("orders", MOMENTS.values(), ids=list(MOMENTS))
async def test_what_is_right_for_a_moment_is_wrong_at_rest(db: str, orders: tuple[str, ...]):
    for order in orders:
        tell(db, order)

    assert (await audit(db, at_rest=False), bool(await audit(db, at_rest=True))) == ([], True)


async def test_an_answer_that_was_not_fetched_is_no_leftover(db: str):
    tell(db, f"insert into inbox (id, execution, signal, sent_at, answer) values ('x', {ENDED}, '', 0, 'done')")

    assert await audit(db) == []


async def test_what_time_alone_has_changed_since_the_last_event_passes(db: str):
    tell(db, f"update live set wake_at = null where execution = {named('retries')}")
    tell(db, f"insert into queue (id, workspace, state, priority, is_new, enqueued_at, not_before, attempts) "
             f"values ({named('retries')}, 'default', 'PENDING', 5, 0, 0, 0, 0)")  # fmt: skip

    assert await audit(db) == []


# On a store that several workers share


@pytest.mark.parametrize(
    ("order", "complaint"),
    [
        ("delete from queue", "queue: it needs a slot"),
        ("delete from event_wait", "event wait of e: the log has it"),
        ("delete from execution where state = 'FAILED'", "log: it has rows and does not exist"),
        ("delete from blob_reference", "the store does not know"),
    ],
)
async def test_a_shared_store_passes_and_its_lies_are_told(database: str, order: str, complaint: str):
    await make(database)
    reader = await PostgresReader.open(database)

    before = await found_by(Audit(reader, at_rest=True, load_blob=blobs_of(reader).get, limits={"default": 1}))
    await postgres.ask(database, order)
    after = await found_by(Audit(reader, load_blob=blobs_of(reader).get))
    await reader.close()

    assert before == []
    assert [each for each in after if complaint in each.message]


class Removing(SqliteReader):
    """Reads a store from which every execution is removed as soon as its rows are asked for."""

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        if name == "audited_rows":
            for table in (*TABLES, "execution"):
                column = "id" if table in ("queue", "execution") else "execution"
                tell(self.path, f"delete from {table} where {column} = ?", *arguments)
        return await super().fetch(name, *arguments)


async def test_an_execution_that_is_removed_meanwhile_is_passed_over(db: str):
    reader = await Removing.open(db)
    walk = Audit(reader)

    seen: list[Any] = [each async for each in walk.executions()]
    left = await walk.together()
    await reader.close()

    assert (seen, left) == ([], [])


# What executions share


@pytest.fixture
async def shared(tmp_path: Path) -> str:
    """A store on which three executions shared two slots."""
    world = World(str(tmp_path / "ropewalk.db"))
    await world.open(default_slots=2)
    try:
        await at_most(20, share(world))
    finally:
        await world.close()
    return world.db


async def share(world: World) -> None:
    version = await world.save(flow(node("a", "gate")))
    started = [await world.service.start(version) for _ in range(3)]
    await world.outside.gate().arrived(2)
    world.outside.gate().open()
    for execution in started:
        await world.ended(execution)


@pytest.mark.parametrize(
    ("limit", "invariants"),
    [(2, []), (1, ["I-27"]), ([(0, 2)], []), ([(0, 2), (1, 1)], ["I-27"]), ([(0, 1), (1, None)], [])],
)
async def test_slots_are_swept_against_the_limit_in_force(shared: str, limit: Any, invariants: list[str]):
    assert [each.invariant for each in await audit(shared, limits={"default": limit})] == invariants


async def test_the_sweep_tells_how_many_slots_were_held_at_most(shared: str):
    reader = await SqliteReader.open(shared)
    walk = Audit(reader, limits={"default": 2})

    seen = [each.id async for each in walk.executions()]
    await reader.close()

    assert (len(seen), walk.most_slots()) == (3, {"default": 2})
