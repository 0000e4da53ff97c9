"""What a stop, a crash and a restart leave as it was: SPEC §3.6 and §5."""

import asyncio

from ropewalk.core.duration import MILLISECOND
from ropewalk.core.events import (
    NodeSucceeded,
    RunFailed,
    RunReturned,
    RunStarted,
    RunWaiting,
    SlotReleased,
)
from ropewalk.core.state import ExecutionState
from tests.engines.judging import kept_executions
from tests.engines.worlds import ONCE, World, act, flow, node

ASK = node("ask", "approval", title="Really?")
HELD = flow(act("a", 1), node("b", "gate", value=2), act("c", "{{ nodes.b.output }}"), edges="a->b b->c")
LARGE = 200_000


async def after_a_crash_what_was_done_is_not_repeated_and_the_rest_is_done(world: World) -> None:
    execution = await world.start(HELD)
    await world.outside.gate().arrived()

    await world.crash()
    world.outside.gate().open()
    await world.open()

    assert (await world.ended(execution)).output == {"c": 2}
    assert [world.outside.saw(execution, each) for each in "abc"] == [1, 2, 1]


async def an_attempt_lost_with_its_worker_counts_and_is_repeated_at_once(world: World) -> None:
    document = flow(node("a", "gate", retry={"maxAttempts": 2, "delay": "1h"}))
    execution = await world.start(document)
    await world.outside.gate().arrived()
    await world.crash()
    world.outside.gate().open()
    await world.open()

    ended = await world.ended(execution)

    (lost,) = await world.events(execution, RunFailed)
    assert ended.state is ExecutionState.SUCCESS
    assert (lost.error.message, lost.lost, lost.retry_at) == ("worker lost", True, lost.at)
    assert [run["attempt"] for run in await world.runs(execution)] == [1, 2]


async def a_node_that_kills_its_worker_every_time_becomes_a_dead_letter(world: World) -> None:
    execution = await world.start(flow(node("a", "gate")))
    for _ in range(3):
        await world.outside.gate().arrived()
        await world.crash()
        await world.open()

    ended = await world.ended(execution)

    (letter,) = await world.letters(execution)
    assert (ended.state, letter["reason"], letter["attempt"]) == (ExecutionState.FAILED, "worker lost", 3)


async def an_attempt_whose_type_nobody_knows_waits_quietly_and_uses_up_nothing(world: World) -> None:
    document = flow(act("a", retry=ONCE))
    version = await world.save(document)
    world.types.forgotten = ("act",)
    execution = await world.service.start(version)
    await world.until(execution, RunWaiting)
    for _ in range(5):
        await world.run(flow(node("b", "noop"), name="other"))

    waits = await world.events(execution, RunWaiting)
    (run,) = await world.runs(execution)

    assert [each.wait.type for each in waits] == ["act"]
    assert (run["state"], run["attempt"]) == ("WAITING", 1)
    assert await world.letters(execution) == []


async def a_graceful_stop_uses_up_no_attempt(world: World) -> None:
    execution = await world.start(flow(node("a", "gate", value=1, retry=ONCE)))
    await world.outside.gate().arrived()

    await world.restart()
    await world.outside.gate().arrived()
    world.outside.gate().open()

    assert (await world.ended(execution)).output == {"a": 1}
    assert len(await world.events(execution, RunReturned)) == 1
    assert [run["attempt"] for run in await world.runs(execution)] == [1]


async def a_graceful_stop_lets_nodes_finish_and_the_next_engine_goes_on(world: World) -> None:
    execution = await world.start(HELD)
    await world.outside.gate().arrived()
    closing = asyncio.create_task(world.close())
    await asyncio.wait([closing], timeout=0.01)
    world.outside.gate().open()

    await closing
    await world.open()

    assert (await world.ended(execution)).output == {"c": 2}
    assert [world.outside.saw(execution, each) for each in "abc"] == [1, 1, 1]


async def what_was_accepted_and_not_started_survives_a_crash(world: World) -> None:
    await world.restart(default_slots=1)
    started = [await world.start(HELD) for _ in range(3)]
    await world.outside.gate().arrived()

    await world.crash()
    world.outside.gate().open()
    await world.open()

    assert [(await world.ended(each)).state for each in started] == [ExecutionState.SUCCESS] * 3
    assert world.outside.gate().most == 1


async def an_approval_can_be_given_after_a_crash(world: World) -> None:
    execution = await world.start(flow(ASK, act("after", 1), edges="ask->after"))
    await world.until(execution, SlotReleased)

    await world.crash()
    await world.open()
    await world.service.decide(execution, "ask", approved=True)

    assert (await world.ended(execution)).output == {"after": 1}


async def a_delay_that_ran_out_while_nobody_was_there_fires_at_the_next_start(world: World) -> None:
    document = flow(node("d", "delay", **{"for": "40ms"}), act("after", 1), edges="d->after")
    execution = await world.start(document)
    waiting = await world.until(execution, RunWaiting)
    await world.crash()
    await world.open()

    ended = await world.ended(execution)

    (fired, _) = await world.events(execution, NodeSucceeded)
    assert ended.output == {"after": 1}
    assert fired.at >= waiting.due
    assert world.outside.saw(execution, "d") == 1


async def a_retry_that_is_due_later_survives_a_crash(world: World) -> None:
    document = flow(act("a", 1, fails=1, retry={"delay": "60ms", "jitter": 0}))
    execution = await world.start(document)
    failed = await world.until(execution, RunFailed)
    await world.crash()
    await world.open()

    ended = await world.ended(execution)

    (again,) = await world.events(execution, RunStarted)
    assert ended.output == {"a": 1}
    assert again.at >= failed.retry_at == failed.at + 60 * MILLISECOND


async def a_map_goes_on_where_it_was(world: World) -> None:
    document = flow(node("each", "gate", gate="{{ item }}", value="{{ item }}", forEach="{{ input }}", concurrency=1))
    execution = await world.start(document, ["x", "y", "z"])
    world.outside.gate("x").open()
    await world.outside.gate("y").arrived()

    await world.crash()
    world.outside.gate("y").open()
    world.outside.gate("z").open()
    await world.open()

    assert (await world.ended(execution)).output == {"each": ["x", "y", "z"]}
    assert [world.outside.saw(execution, "each", item) for item in range(3)] == [1, 2, 1]


async def a_paused_execution_stays_paused_over_a_crash(world: World) -> None:
    execution = await world.start(HELD)
    await world.outside.gate().arrived()
    await world.service.pause(execution)

    await world.crash()
    world.outside.gate().open()
    await world.open()

    assert (await world.details(execution))["state"] == "PAUSED"
    assert await world.service.resume(execution)
    assert (await world.ended(execution)).output == {"c": 2}


async def an_execution_that_was_being_cancelled_ends_cancelled_after_a_crash(world: World) -> None:
    execution = await world.start(flow(node("a", "stubborn"), act("b"), edges="a->b"))
    await world.outside.gate().arrived()
    await world.service.cancel(execution)

    await world.crash()
    await world.open()

    assert (await world.ended(execution)).state is ExecutionState.CANCELLED
    assert world.outside.saw(execution, "b") == 0
    world.outside.gate().open()


async def signals_told_before_a_crash_are_kept(world: World) -> None:
    execution = await world.start(flow(ASK, node("listen", "wait", signal="go"), edges="ask->listen"))
    await world.until(execution, RunWaiting)
    await world.service.signal(execution, "go", "early")

    await world.crash()
    await world.open()
    await world.service.decide(execution, "ask", approved=True)

    assert (await world.ended(execution)).output == {"listen": "early"}


async def a_parent_and_its_child_go_on_after_a_crash(world: World) -> None:
    await world.save(flow(node("inner", "gate", value="free"), name="child", output="{{ nodes.inner.output }}"))
    execution = await world.start(flow(node("call", "subworkflow", workflow="child")))
    await world.outside.gate().arrived()

    await world.crash()
    world.outside.gate().open()
    await world.open()

    assert (await world.ended(execution)).output == {"call": "free"}
    assert len(await world.children(execution)) == 1


async def a_child_is_started_although_its_parent_crashed_before_that(world: World) -> None:
    await world.save(flow(act("inner", 1), name="child"))
    execution = await world.start(flow(node("call", "subworkflow", workflow="child")))
    await world.until(execution, RunWaiting)

    await world.crash()
    assert await kept_executions(world.db) == [execution]
    await world.open()

    assert (await world.ended(execution)).output == {"call": {"inner": 1}}
    assert len(await world.children(execution)) == 1


async def a_large_output_is_kept_apart_and_used_by_what_follows(world: World) -> None:
    document = flow(
        act("a", "{{ input }}"), node("b", "gate"), act("c", "{{ length(nodes.a.output) }}"), edges="a->b b->c"
    )
    execution = await world.start(document, "x" * LARGE)
    await world.outside.gate().arrived()

    await world.crash()
    world.outside.gate().open()
    await world.open()

    first = (await world.events(execution, NodeSucceeded))[0]
    assert (await world.ended(execution)).output == {"c": LARGE}
    assert first.output is None
    assert first.blob.size == LARGE + 2


async def the_large_output_of_an_execution_is_read_whole(world: World) -> None:
    ended = await world.run(flow(act("a", "{{ input }}")), "x" * LARGE)

    assert ended.blob is not None
    assert (await world.details(ended.execution))["output"] == {"a": "x" * LARGE}


async def a_reopened_execution_goes_on_after_a_crash(world: World) -> None:
    document = flow(act("a", fails=1, retry=ONCE), node("b", "gate", value=1), edges="a->b")
    ended = await world.run(document)
    await world.service.retry(ended.execution)
    await world.outside.gate().arrived()

    await world.crash()
    world.outside.gate().open()
    await world.open()

    assert (await world.ended(ended.execution)).output == {"b": 1}
    assert world.outside.saw(ended.execution, "a") == 2


async def a_log_can_be_followed_from_any_place_to_its_end(world: World) -> None:
    ended = await world.run(flow(act("a", fails=1, retry=ONCE)))
    await world.service.retry(ended.execution)
    await world.ended(ended.execution)
    every = await world.events(ended.execution)

    followed = [each async for each in world.service.engine.watching.follow(ended.execution)]
    rest = [each async for each in world.service.engine.watching.follow(ended.execution, 3)]

    assert followed == list(enumerate(every, 1))
    assert rest == followed[3:]
