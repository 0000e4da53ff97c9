"""The native engine keeps in memory only what is under way; what every engine must do is in `test_scenarios.py`."""

import asyncio
from collections.abc import Awaitable

import pytest

from ropewalk.core.errors import InvalidTransition
from ropewalk.core.events import ExecutionStarted, RunFailed, RunWaiting, SignalReceived, SlotReleased
from ropewalk.core.execution import settling
from ropewalk.core.signals import Pause, Resume, Signal, Tell
from ropewalk.core.state import ExecutionState
from ropewalk.store.access import Batch
from ropewalk.store.errors import StoreUnavailable
from ropewalk.store.explain import key_holders
from tests.engines.scenarios import SCENARIOS, Scenario
from tests.engines.worlds import World, act, at_most, flow, node

ASK = node("ask", "approval", title="Really?")
TURNS = 40
"""Of the loop; an opening takes fewer."""
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)


@every_scenario
async def test_a_scenario_holds_when_every_wait_is_parked(
    world: World, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(settling, "PARK_AFTER", 0)

    await at_most(20, scenario(world))


@pytest.mark.parametrize("largest", [1, 3])
async def test_executions_go_on_while_others_are_being_written(world: World, largest: int):
    world.service.engine.commit.limit(largest)
    version = await world.save(flow(*(act(name, name) for name in "abcd"), edges="a->b a->c b->d c->d"))

    started = await at_most(20, asyncio.gather(*(world.service.start(version) for _ in range(20))))
    ended = await at_most(20, asyncio.gather(*(world.ended(each) for each in started)))

    assert [each.output for each in ended] == [{"d": "d"}] * 20
    assert world.service.engine.memory.lives == {}


async def test_a_crowd_is_written_before_the_last_of_it_is_accepted(place: World, monkeypatch: pytest.MonkeyPatch):
    engine = place.service.engine
    version = await place.save(flow(act("a")))
    await at_most(20, place.run(flow(act("a"))))
    engine.commit.limit(5)
    write, accepted = engine.store.write, []

    def counted(batch: Batch) -> Awaitable[None]:
        accepted.append(len(engine.memory.lives))
        return write(batch)

    monkeypatch.setattr(engine.store, "write", counted)
    started = await at_most(20, asyncio.gather(*(place.service.start(version) for _ in range(12))))
    ended = await at_most(20, asyncio.gather(*(place.ended(each) for each in started)))

    assert accepted[0] == 5
    assert {each.state for each in ended} == {ExecutionState.SUCCESS}


async def test_the_usual_commits_were_rehearsed(shared_world: World):
    writer = shared_world.service.engine.store._writer
    rehearsed = set(writer._prepared)

    await at_most(20, shared_world.run(flow(act("a"), act("b"), edges="a->b")))

    assert set(writer._prepared) == rehearsed


async def test_nothing_is_written_on_top_of_a_commit_that_failed(world: World, monkeypatch: pytest.MonkeyPatch):
    engine, gate = world.service.engine, world.outside.gate
    engine.commit.limit(1)
    execution = await world.start(flow(node("a", "gate", gate="a"), node("b", "gate", gate="b")))
    await at_most(20, asyncio.gather(gate("a").arrived(), gate("b").arrived()))

    async def refused(batch: object) -> None:
        """Not before the next commit about the same execution is ready."""
        monkeypatch.undo()
        gate("b").open()
        while engine.commit._ready is None:
            await asyncio.sleep(0)
        raise StoreUnavailable("not now")

    monkeypatch.setattr(engine.store, "write", refused)
    gate("a").open()

    assert (await at_most(20, world.ended(execution))).state is ExecutionState.SUCCESS
    assert await world.events(execution, RunFailed) == []
    assert [world.outside.saw(execution, name) for name in "ab"] == [1, 1]


async def test_nothing_begins_of_what_is_taken_up_again_since_its_next_commit_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    engine, gate = world.service.engine, world.outside.gate
    engine.commit.limit(1)
    document = flow(node("a", "gate", gate="a"), node("b", "gate", gate="b"), act("c", 1), edges="a->c")
    execution = await world.start(document)
    await at_most(20, asyncio.gather(gate("a").arrived(), gate("b").arrived()))
    write = engine.store.write

    async def refused(batch: Batch) -> None:
        monkeypatch.undo()
        raise StoreUnavailable("not now")

    async def written(batch: Batch) -> None:
        """Not before the next commit about the same execution is ready, which fails at once."""
        gate("b").open()
        while engine.commit._ready is None:
            await asyncio.sleep(0)
        await write(batch)
        monkeypatch.setattr(engine.store, "write", refused)

    monkeypatch.setattr(engine.store, "write", written)
    gate("a").open()

    assert (await at_most(20, world.ended(execution))).state is ExecutionState.SUCCESS
    assert [world.outside.saw(execution, name) for name in "abc"] == [1, 1, 1]


async def test_what_was_let_go_of_after_its_claim_does_not_begin(shared_world: World, monkeypatch: pytest.MonkeyPatch):
    await shared_world.restart(claims=False)
    engine, may = shared_world.service.engine, asyncio.Event()
    execution = await shared_world.start(flow(act("a", 1)))
    await engine.claims._claim()
    write = engine.store.write

    async def late(batch: Batch) -> None:
        monkeypatch.undo()
        await may.wait()
        await write(batch)

    monkeypatch.setattr(engine.store, "write", late)
    # There is nothing to do for it, so it is let go of: its slot is free again, and it is back in the queue.
    telling = asyncio.create_task(engine.tell(execution, Resume("ann"), "ann"))
    while execution not in engine.memory._leaving:
        await asyncio.sleep(0)
    beginning = asyncio.create_task(engine.claims._dispatch_owed())
    while execution not in engine.memory._loading:
        await asyncio.sleep(0)
    may.set()
    await at_most(20, asyncio.gather(telling, beginning))
    await engine.commit.settled()
    begun = await shared_world.events(execution, ExecutionStarted)
    await engine.claims.claim()

    assert begun == []
    assert (await at_most(20, shared_world.ended(execution))).state is ExecutionState.SUCCESS


@pytest.mark.parametrize("request_", [Pause("ann"), Resume("ann")], ids=["pause", "resume"])
async def test_what_was_let_go_of_after_its_claim_holds_no_key(shared_world: World, request_: Signal):
    await shared_world.restart(claims=False)
    engine = shared_world.service.engine
    execution = await shared_world.start(flow(act("a", 1), concurrencyKey="{{ input }}"), "key")
    await engine.claims._claim()
    await engine.tell(execution, request_, "ann")

    assert await key_holders(engine.store, "default", "key") == []


async def test_whoever_waits_for_what_was_said_does_not_wait_for_what_comes_after(world: World):
    world.service.engine.commit.limit(1)
    version = await world.save(flow(node("a", "gate", value=1)))
    first = asyncio.ensure_future(world.service.start(version))
    others = [asyncio.ensure_future(world.service.start(version)) for _ in range(20)]

    await at_most(20, first)

    assert not others[-1].done()
    await at_most(20, asyncio.gather(*others))
    world.outside.gate().open()


async def test_what_only_waits_and_what_has_ended_is_not_in_memory(world: World):
    waiting = await world.start(flow(ASK))
    await world.until(waiting, SlotReleased)
    await world.run(flow(act("a"), name="other"))

    assert world.service.engine.memory.lives == {}
    assert await world.service.cancel(waiting)


async def test_those_who_ask_in_vain_leave_nothing_in_memory(world: World):
    await world.save(flow(act("a", fails=9), name="child"))
    ended = await world.run(flow(node("call", "subworkflow", workflow="child"), act("b"), edges="call->b:error"))
    (child,) = await world.children(ended.execution)

    for execution in (ended.execution, child):
        with pytest.raises(InvalidTransition):
            await world.service.retry(execution)

    assert world.service.engine.memory.lives == {}


async def test_many_executions_side_by_side_share_commits(world: World):
    version = await world.save(flow(act("a"), act("b"), act("c"), edges="a->b b->c"))
    before = world.service.engine.commit.commits

    started = await asyncio.gather(*(world.service.start(version, number) for number in range(100)))
    ends = await asyncio.gather(*map(world.ended, started))

    assert [ended.state for ended in ends] == [ExecutionState.SUCCESS] * 100
    assert world.service.engine.commit.commits - before < 100


async def test_what_was_under_way_goes_on_together_after_a_crash(world: World):
    version = await world.save(flow(node("a", "gate", value=1)))
    started = [await world.service.start(version) for _ in range(50)]
    gate = world.outside.gate()
    await gate.arrived(50)

    await world.crash()
    await world.open()
    commits = world.service.engine.commit.commits
    await gate.arrived(50)
    gate.open()
    ends = await asyncio.gather(*map(world.ended, started))

    assert commits < 5
    assert [ended.state for ended in ends] == [ExecutionState.SUCCESS] * 50


async def test_a_stopped_engine_tells_those_who_wait_that_it_goes_on_later(world: World):
    execution = await world.start(flow(ASK))
    await world.until(execution, RunWaiting)
    waiting = asyncio.ensure_future(world.ended(execution))
    await asyncio.wait([waiting], timeout=0.01)

    await world.restart()

    assert "goes on later" in str(waiting.exception())
    assert await world.service.cancel(execution)


async def test_one_that_is_dropped_once_more_does_not_silence_the_one_taken_up_since(world: World):
    execution = await world.start(flow(ASK))
    await world.until(execution, SlotReleased)
    engine = world.service.engine
    dropped = await engine.memory.load(execution)
    engine.deciding.drop(dropped)
    fresh = await engine.memory.load(execution)
    engine.deciding.signal(fresh, Tell("news"))
    engine.deciding.drop(dropped)
    await engine.commit.settled()

    assert not fresh.is_dirty
    assert len(await world.events(execution, SignalReceived)) == 1
    assert await world.service.cancel(execution)


async def test_a_node_type_that_is_not_known_here_is_said_once(world: World, caplog: pytest.LogCaptureFixture):
    version = await world.save(flow(act("a")))
    world.types.forgotten = ("act",)
    for execution in [await world.service.start(version) for _ in range(2)]:
        await world.until(execution, RunWaiting)
        await world.service.cancel(execution)

    told = [each.getMessage() for each in caplog.records if "node type" in each.getMessage()]

    remedy = "name it with --nodes, or in the nodes of ropewalk.open"
    assert told == [f"the node type 'act' is not known here; its runs wait for a worker that knows it: {remedy}"]


async def test_an_opening_that_is_broken_off_leaves_nobody_at_work(world: World):
    started = [await world.start(flow(node("a", "gate"), act("b", 1), edges="a->b")) for _ in range(3)]
    await world.close()
    before = asyncio.all_tasks()
    left: dict[int, set[asyncio.Task[object]]] = {}
    for turns in range(TURNS):
        opening = asyncio.create_task(world.open())
        for _ in range(turns):
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await world.close()
        left[turns] = asyncio.all_tasks() - before
    await world.open()
    world.outside.gate().open()
    ended = [await at_most(20, world.ended(each)) for each in started]

    assert {turns: tasks for turns, tasks in left.items() if tasks} == {}
    assert [each.state for each in ended] == [ExecutionState.SUCCESS] * 3
