"""A text that not every store could keep is the same on all of them: in the log, in the rows, and to readers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ropewalk.core.duration import HOUR
from ropewalk.core.events import ExecutionAccepted, ExecutionFailed, RunWaiting
from ropewalk.core.waits import Approval, EventWait, SignalWait
from ropewalk.nodes.base import Inputs, NodeContext, NodeFailure, NodeType, Output, Wait
from ropewalk.service import reading
from ropewalk.service.breakers import list_breakers
from ropewalk.service.queue import queue_item
from ropewalk.store import executions, log
from tests.engines.worlds import ONCE, World, flow, judged_world, node
from tests.store.samples import meddle

ODD = "a\0b\ud800c"
PLAIN = "a�b�c"


class Odd(NodeType):
    """Says what no store could keep."""

    name = "odd"

    class Parameters(Inputs):
        way: str

    def target(self, parameters: Parameters) -> str | None:
        return f"odd {ODD}" if parameters.way == "calls" else None

    async def run(self, parameters: Parameters, context: NodeContext) -> Output | Wait:
        context.log(ODD, field=ODD)
        match parameters.way:
            case "asks":
                return Approval(ODD, {"x": "a\0b"})
            case "hears":
                return EventWait(f"order.{ODD}")
            case "listens":
                return SignalWait(ODD)
            case "raises":
                raise ValueError(ODD) from KeyError(ODD)
            case _:
                raise NodeFailure.transient(ODD, detail=ODD)


@pytest.fixture(params=["file", "server"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "ropewalk.db") if request.param == "file" else request.getfixturevalue("database")


@pytest.fixture
async def world(db: str) -> AsyncIterator[World]:
    """A world on a store of each kind; `check` finds nothing wrong with it afterwards."""
    async with judged_world(db, Odd()) as world:
        yield world


@pytest.mark.parametrize("way", ["fails", "raises", "calls"])
async def test_an_error_is_told_alike_by_log_rows_and_letters(world: World, way: str):
    ended = await world.run(flow(node("odd", "odd", way=way, retry=ONCE)))

    store, (run,) = world.service.store, await world.runs(ended.execution)
    (letter,) = await world.letters(ended.execution)
    (failed,) = await world.events(ended.execution, ExecutionFailed)
    (listed,) = await reading.list_executions(store, "default", executions.ANY)
    assert PLAIN in run["error"]
    assert run["error"] == letter["reason"]
    assert run["error"] in failed.error
    assert failed.error == listed["error"]


async def test_an_error_is_told_alike_however_many_fail_at_once(world: World):
    each = node("odd", "odd", way="fails", retry=ONCE, forEach=list(range(100)), concurrency=100, failureTolerance=100)

    ended = await world.run(flow(each))

    errors = {run["error"] for run in await world.runs(ended.execution) if run["item"] is not None}
    assert errors == {PLAIN}


async def test_a_breaker_has_the_target_that_its_runs_wait_for(world: World):
    await world.run(flow(node("odd", "odd", way="calls", retry=ONCE)))
    await world.service.engine.commit.settled()

    (breaker,) = await list_breakers(world.service.store, "default")
    await world.service.engine.breakers.load()
    assert breaker["target"] == f"odd {PLAIN}"


@pytest.mark.parametrize(
    ("way", "wait"),
    [
        ("asks", Approval(PLAIN, {"x": "a\0b"})),
        ("hears", EventWait(f"order.{PLAIN}")),
        ("listens", SignalWait(PLAIN)),
    ],
)
async def test_a_wait_is_recorded_alike(world: World, way: str, wait: Wait):
    execution = await world.start(flow(node("odd", "odd", way=way)))
    await world.until(execution, RunWaiting)
    await world.restart()

    (waiting,) = await world.events(execution, RunWaiting)
    assert waiting.wait == wait
    await world.service.cancel(execution)
    await world.ended(execution)


async def test_a_key_of_an_odd_input_is_kept_alike(world: World):
    document = flow(node("a"), concurrencyKey="{{ 'a\\u0000b' }}")

    ended = await world.run(document)

    (accepted,) = await world.events(ended.execution, ExecutionAccepted)
    assert accepted.concurrency_key == "a�b"


async def test_who_did_something_is_told_alike(world: World):
    await world.start(flow(node("a")), actor=f"user:{ODD}")
    await world.service.engine.commit.settled()

    rows = await world.service.store.fetch("list_audit", "default", "z", None, None, None, 50)
    assert [row[3] for row in rows if row[4] == "start"] == [f"user:{PLAIN}"]


async def test_why_something_was_not_dispatched_is_told_alike(world: World):
    store = world.service.store
    execution = await world.start(flow(node("ask", "approval", title="x")))
    await world.until(execution, RunWaiting)
    later = store.now() + HOUR
    async with store.transaction() as tx:
        await tx.execute("insert_queue", execution, "default", "PENDING", 5, 1, store.now(), later)
        await tx.execute("return_queue", "PENDING", later, 1, ODD, execution)

    item = await queue_item(store, "default", execution)

    assert item["error"] == PLAIN
    await meddle(store, f"delete from queue where id = '{execution}'")
    await world.service.cancel(execution)
    await world.ended(execution)


async def test_the_environment_is_recorded_alike(world: World):
    await world.close()
    world.env = {"REGION": ODD}
    await world.open()

    ended = await world.run(flow(node("a", "set", values={"x": "{{ env.REGION }}"})))

    assert ended.output == {"a": {"x": PLAIN}}


async def test_a_log_that_has_odd_texts_from_earlier_is_at_one_with_its_rows(world: World):
    ended = await world.run(flow(node("odd", "odd", way="fails", retry=ONCE)))
    store = world.service.store

    for seq, entry in await log.entries(store, ended.execution):
        # Such entries are from before there were seals.
        unsealed = entry.rpartition(b',"sum":')[0] + b"}"
        earlier = unsealed.replace(PLAIN.encode(), b"a\\u0000b\xef\xbf\xbdc").hex()
        value = f"decode('{earlier}', 'hex')" if store.is_shared else f"x'{earlier}'"
        await meddle(store, f"update log set entry = {value} where execution = '{ended.execution}' and seq = {seq}")

    (failed,) = await world.events(ended.execution, ExecutionFailed)
    assert "a\0b�c" in failed.error
