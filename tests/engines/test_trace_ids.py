"""The trace that is kept with an execution and its runs: the one its log tells, whatever becomes of them."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ropewalk.core.events import RunWaiting
from ropewalk.service import reading, runners
from ropewalk.service.reading.runs import Wanted, page_of_runs
from ropewalk.service.verbs import NewStart
from ropewalk.store import executions
from tests.engines.worlds import ONCE, World, act, at_most, flow, node

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
CHAIN = flow(act("a"), act("b"), edges="a->b")
FLAKY = flow(act("a"), act("b", fails=1, retry=ONCE), edges="a->b")

Story = Callable[[World, str | None], Awaitable[None]]


async def started_alone(world: World, trace: str | None) -> None:
    await world.run(CHAIN, trace=trace)


async def started_with_others(world: World, trace: str | None) -> None:
    version = await world.save(CHAIN)
    for execution in await world.service.start_batch([NewStart(version), NewStart(version)], trace=trace):
        await world.ended(execution)


async def with_a_map_and_attempts(world: World, trace: str | None) -> None:
    await world.run(flow(act("a", fails=1), act("each", forEach=[1, 2]), edges="a->each"), trace=trace)


async def with_a_child(world: World, trace: str | None) -> None:
    await world.save(flow(act("a"), name="child"))
    await world.run(flow(node("call", "subworkflow", workflow="child")), trace=trace)


async def retried(world: World, trace: str | None) -> None:
    ended = await world.run(FLAKY, trace=trace)
    await world.service.retry(ended.execution)
    await world.ended(ended.execution)


async def requeued(world: World, trace: str | None) -> None:
    ended = await world.run(FLAKY, trace=trace)
    await world.requeue(ended.execution)
    await world.ended(ended.execution)


async def run_again_in_part(world: World, trace: str | None) -> None:
    ended = await world.run(CHAIN, trace=trace)
    await world.ended(await world.service.rerun(ended.execution, "b"))


async def paused_and_resumed(world: World, trace: str | None) -> None:
    execution = await world.start(flow(node("a", "gate"), act("b"), edges="a->b"), trace=trace)
    await world.outside.gate().arrived()
    await world.service.pause(execution)
    world.outside.gate().open()
    await world.service.resume(execution)
    await world.ended(execution)


async def carried_out_by_a_runner(world: World, trace: str | None) -> None:
    engine = world.service.engine
    engine.leasing.is_open = True
    execution = await world.start(flow(node("a") | {"pool": "paint"}), trace=trace)
    seeker = runners.seeker("default", "paint", "ann", "test", 1)
    [leased] = await engine.leasing.lease(seeker, 10, asyncio.get_running_loop().create_future())
    await runners.complete(engine, leased.lease, "painted", [])
    await world.ended(execution)


async def taken_up_after_a_crash(world: World, trace: str | None) -> None:
    execution = await world.start(flow(act("a"), node("b", "gate"), edges="a->b"), trace=trace)
    await world.outside.gate().arrived()
    await world.crash()
    world.outside.gate().open()
    await world.open()
    await world.ended(execution)


STORIES: list[Story] = [
    started_alone, started_with_others, with_a_map_and_attempts, with_a_child, retried, requeued, run_again_in_part,
    paused_and_resumed, carried_out_by_a_runner, taken_up_after_a_crash,
]  # fmt: skip


@pytest.mark.parametrize("trace", [None, TRACEPARENT], ids=["its own", "continued"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
async def test_every_row_has_the_trace_its_log_tells(place: World, story: Story, trace: str | None):
    await at_most(40, story(place, trace))

    kept = await executions.listed(place.service.store, "default")
    for execution in kept:
        told = (await reading.recorded(place.service.store, execution.id)).trace_id
        of_runs = [run["traceId"] for run in await page_of_runs(place.service.store, execution, Wanted())]
        assert set(of_runs) == {execution.trace_id} == {told}
    assert kept[-1].trace_id == (TRACE if trace else kept[-1].id.replace("-", ""))


async def test_what_waits_has_its_trace_before_it_is_over(place: World):
    execution = await place.start(flow(node("ask", "approval", title="Really?")), trace=TRACEPARENT)
    await at_most(20, place.until(execution, RunWaiting))

    [run] = await reading.list_runs(place.service.store, execution)
    assert (run["state"], run["traceId"]) == ("WAITING", TRACE)
