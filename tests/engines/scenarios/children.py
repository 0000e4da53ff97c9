"""Sub-workflows: SPEC §3.9, and what a parent's verbs mean for its children."""

import asyncio

import pytest

from ropewalk.core.errors import InvalidTransition
from ropewalk.core.events import ChildResumed, ExecutionPaused, RunWaiting
from ropewalk.core.state import ExecutionState
from tests.engines.worlds import ONCE, Json, World, act, flow, node

CHILD = flow(act("inner", "{{ input.n + 1 }}"), name="child", output="{{ nodes.inner.output }}")
FRAGILE = flow(act("inner", "mended", fails=1, retry=ONCE), name="child", output="{{ nodes.inner.output }}")
HELD = flow(node("inner", "gate", value="free"), act("after"), name="child", edges="inner->after")


def parent(**given: object) -> Json:
    document: Json = {"workflow": "child", **given}
    return flow(node("call", "subworkflow", **document), act("after", "{{ nodes.call.output }}"), edges="call->after")


async def held_child(world: World, execution: str) -> str:
    """The child, once it is under way."""
    await world.outside.gate().arrived()
    (waiting,) = await world.events(execution, RunWaiting)
    return str(waiting.wait.child)


async def begun_child(world: World, execution: str) -> str:
    """The child, once there is one."""
    while not (found := await world.children(execution)):
        await asyncio.sleep(0)  # whoever starts it has to have a turn
    return found[0]


async def the_output_of_a_child_is_the_output_of_its_node(world: World) -> None:
    await world.save(CHILD)

    ended = await world.run(parent(input={"n": 41}))

    (child,) = await world.children(ended.execution)
    assert ended.output == {"after": 42}
    assert (await world.details(child))["parentExecutionId"] == ended.execution


async def a_map_may_have_a_child_for_each_item(world: World) -> None:
    await world.save(CHILD)
    each = node("call", "subworkflow", workflow="child", input={"n": "{{ item }}"}, forEach=[1, 2, 3], concurrency=2)

    ended = await world.run(flow(each))

    assert ended.output == {"call": [2, 3, 4]}
    assert len(await world.children(ended.execution)) == 3


async def a_named_version_of_a_child_is_the_one_that_runs(world: World) -> None:
    await world.save(CHILD)
    await world.save(flow(act("inner", "new"), name="child"))

    old, new = await world.run(parent(input={"n": 1}, version=1)), await world.run(parent(input={"n": 1}))

    assert old.output == {"after": 2}
    assert new.output == {"after": {"inner": "new"}}


async def a_failed_child_fails_its_node_without_retry_and_without_a_dead_letter_there(world: World) -> None:
    await world.save(flow(act("inner", fails=9), name="child"))

    ended = await world.run(parent())

    (child,) = await world.children(ended.execution)
    assert ended.state is ExecutionState.FAILED
    assert await world.states(ended.execution) == "FAILED BLOCKED"
    assert await world.letters(ended.execution) == []
    assert len(await world.letters(child)) == 1


async def a_child_that_does_not_exist_fails_its_node(world: World) -> None:
    ended = await world.run(parent(workflow="nowhere"))

    assert ended.state is ExecutionState.FAILED
    assert ended.error is not None
    assert "nowhere" in ended.error


async def an_input_the_child_refuses_fails_its_node(world: World) -> None:
    await world.save(flow(act("inner"), name="child", input={"type": "object", "required": ["n"]}))

    ended = await world.run(parent(input={}))

    assert ended.state is ExecutionState.FAILED
    assert await world.children(ended.execution) == []


async def a_reopened_child_takes_its_parent_along(world: World) -> None:
    await world.save(FRAGILE)
    ended = await world.run(parent())
    (child,) = await world.children(ended.execution)

    assert await world.service.retry(child)
    ended = await world.ended(ended.execution)

    assert ended.output == {"after": "mended"}
    assert len(await world.events(ended.execution, ChildResumed)) == 1


async def a_requeued_dead_letter_of_a_child_takes_its_parent_along(world: World) -> None:
    await world.save(FRAGILE)
    ended = await world.run(parent())
    (child,) = await world.children(ended.execution)

    await world.requeue(child)

    assert (await world.ended(ended.execution)).output == {"after": "mended"}


async def retrying_the_parent_reopens_the_child(world: World) -> None:
    await world.save(FRAGILE)
    ended = await world.run(parent())

    assert await world.service.retry(ended.execution)
    ended = await world.ended(ended.execution)

    assert ended.output == {"after": "mended"}
    assert len(await world.children(ended.execution)) == 1


async def a_child_whose_failure_was_handled_is_not_reopened(world: World) -> None:
    await world.save(FRAGILE)
    document = flow(node("call", "subworkflow", workflow="child"), act("alert"), edges="call->alert:error")
    ended = await world.run(document)
    (child,) = await world.children(ended.execution)

    with pytest.raises(InvalidTransition):
        await world.service.retry(child)

    assert (await world.ended(child)).state is ExecutionState.FAILED
    assert ended.state is ExecutionState.SUCCESS


async def cancelling_a_parent_cancels_its_child(world: World) -> None:
    await world.save(HELD)
    execution = await world.start(parent())
    child = await held_child(world, execution)

    assert await world.service.cancel(execution)

    assert (await world.ended(execution)).state is ExecutionState.CANCELLED
    assert (await world.ended(child)).state is ExecutionState.CANCELLED


async def a_child_is_paused_and_resumed_by_its_parent(world: World) -> None:
    await world.save(HELD)
    execution = await world.start(parent())
    child = await held_child(world, execution)

    assert await world.service.pause(execution)
    await world.until(child, ExecutionPaused)
    world.outside.gate().open()
    assert await world.service.resume(execution)

    assert (await world.ended(execution)).output == {"after": {"after": None}}


async def a_child_paused_by_its_parent_is_resumed_by_nothing_else(world: World) -> None:
    await world.save(HELD)
    execution = await world.start(parent())
    child = await held_child(world, execution)
    assert await world.service.pause(child, by="ann")
    assert await world.service.pause(execution)
    await world.until(child, ExecutionPaused, count=2)

    with pytest.raises(InvalidTransition, match=f"its parent, execution {execution}, has paused it"):
        await world.service.resume(child, by="ann")

    world.outside.gate().open()
    assert await world.service.resume(execution)
    assert (await world.ended(execution)).output == {"after": {"after": None}}


async def a_child_called_for_in_a_pause_is_paused_too(world: World) -> None:
    await world.save(HELD)
    execution = await world.start(flow(node("call", "summon", gate="door")))
    await world.outside.gate("door").arrived()
    assert await world.service.pause(execution)
    world.outside.gate("door").open()
    await world.until(await begun_child(world, execution), ExecutionPaused)
    world.outside.gate().open()
    assert await world.service.resume(execution)

    assert (await world.ended(execution)).output == {"call": {"after": None}}


async def a_parent_that_waits_holds_no_slot_so_one_is_enough_for_both(world: World) -> None:
    await world.restart(default_slots=1)
    await world.save(CHILD)
    await world.save(parent(input={"n": 1}) | {"name": "middle"})
    top = flow(node("top", "subworkflow", workflow="middle"))

    ended = await world.run(top)

    assert ended.output == {"top": {"after": 2}}


async def a_child_may_use_the_key_its_parent_holds(world: World) -> None:
    await world.save({**CHILD, "concurrencyKey": "one"})

    ended = await world.run({**parent(input={"n": 1}), "concurrencyKey": "one"})

    assert ended.output == {"after": 2}


async def workflows_that_call_themselves_without_end_fail_at_a_depth(world: World) -> None:
    document = flow(node("again", "subworkflow", workflow="test"))

    ended = await world.run(document)

    assert ended.state is ExecutionState.FAILED
    assert ended.error is not None
    assert "deep" in ended.error


async def a_child_in_the_queue_may_have_its_parents_key(world: World) -> None:
    await world.save(flow(act("inner", 1), name="child", concurrencyKey="k"))
    parent = flow(
        node("hold", "gate"),
        node("call", "subworkflow", workflow="child"),
        edges="hold->call",
        name="parent",
        concurrencyKey="k",
    )
    first = await world.start(parent)
    await world.outside.gate().arrived()
    second = await world.start(parent)

    world.outside.gate().open()

    assert (await world.ended(first)).state is ExecutionState.SUCCESS
    assert (await world.ended(second)).state is ExecutionState.SUCCESS
