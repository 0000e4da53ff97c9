"""Children that are tried again or not needed, what takes a place, what a failure stops, who may use a key: SPEC §3."""

import asyncio

from ropewalk.core.events import ExecutionStarted, NodeSucceeded, RunWaiting, SlotReleased
from ropewalk.core.state import ExecutionState
from tests.engines.worlds import ONCE, QUICK, Json, World, act, flow, node

CHILD = flow(act("inner", "{{ input }}"), name="child", output="{{ nodes.inner.output }}")
UNLUCKY = flow(act("inner", fails=9, retry=ONCE), name="child")


def call(id: str = "call", /, **given: object) -> Json:  # noqa: A002 (the document's word)
    return node(id, "subworkflow", **{"workflow": "child", **given})


# Children


async def a_failed_child_is_followed_by_another_if_its_node_says_retry(world: World) -> None:
    await world.save(UNLUCKY)

    ended = await world.run(flow(call(retry=QUICK)))

    children = await world.children(ended.execution)
    assert ended.state is ExecutionState.FAILED
    assert len(children) == 3
    assert [run["state"] for run in await world.runs(ended.execution)] == ["FAILED"] * 3
    assert await world.letters(ended.execution) == []


async def a_child_that_ends_well_is_the_last_one(world: World) -> None:
    await world.save(flow(node("inner", "gate"), act("after", fails=1, retry=ONCE), edges="inner->after", name="child"))
    execution = await world.start(flow(call(retry=QUICK), act("after", "{{ nodes.call.output }}"), edges="call->after"))
    await world.outside.gate().arrived()
    await world.save(flow(act("inner", "well"), name="child", output="{{ nodes.inner.output }}"))

    world.outside.gate().open()

    assert (await world.ended(execution)).output == {"after": "well"}
    assert len(await world.children(execution)) == 2


async def the_retry_of_a_child_goes_on_after_a_restart(world: World) -> None:
    await world.save(flow(node("inner", "gate"), act("after", fails=1, retry=ONCE), edges="inner->after", name="child"))
    retry = {"maxAttempts": 2, "delay": "300ms", "jitter": 0}
    execution = await world.start(flow(call(retry=retry)))
    await world.outside.gate().arrived()
    world.outside.gate().open()
    await world.until(execution, SlotReleased)
    await world.crash()
    await world.open()

    assert (await world.ended(execution)).state is ExecutionState.FAILED
    assert len(await world.children(execution)) == 2


async def the_cached_result_of_a_child_starts_no_child(world: World) -> None:
    await world.save(CHILD)
    document = flow(
        call(input="{{ input }}", cache={"ttl": "1h"}), act("after", "{{ nodes.call.output }}"),
        edges="call->after:arrived",
    )  # fmt: skip
    first = await world.run(document, "a")
    await world.restart()

    second, other = await world.run(document, "a"), await world.run(document, "b")

    assert [each.output for each in (first, second, other)] == [{"after": "a"}, {"after": "a"}, {"after": "b"}]
    assert [len(await world.children(each.execution)) for each in (first, second, other)] == [1, 0, 1]


async def the_end_of_a_failed_child_is_not_cached(world: World) -> None:
    await world.save(UNLUCKY)
    document = flow(call(retry=ONCE, cache={"ttl": "1h"}))

    ended = [await world.run(document), await world.run(document)]

    assert [len(await world.children(each.execution)) for each in ended] == [1, 1]


# Places


async def a_node_that_waits_keeps_its_place_of_max_parallel(world: World) -> None:
    await world.save(CHILD)
    listen = node("listen", "wait", signal="go")
    execution = await world.start(flow(listen, call(input=1), act("last", 2), maxParallel=1))
    await world.until(execution, RunWaiting, "listen")
    assert await world.states(execution) == "RUNNING READY READY"

    await world.service.signal(execution, "go")

    ended = await world.ended(execution)
    waited, called, last = await world.events(execution, NodeSucceeded)
    assert ended.output == {"listen": None, "call": 1, "last": 2}
    assert (waited.node, called.node, last.node) == ("listen", "call", "last")


async def who_waits_for_a_place_keeps_no_slot_from_its_own_child(world: World) -> None:
    await world.restart(default_slots=1)
    await world.save(CHILD)

    ended = await world.run(flow(call(input=1), act("after", 2), maxParallel=1))

    assert ended.output == {"call": 1, "after": 2}


# Failures


async def cancel_on_failure_stops_running_nodes_too(world: World) -> None:
    document = flow(
        node("slow", "gate", gate="never"), node("first", "gate"), act("bad", fails=9, retry=ONCE),
        edges="first->bad", onFailure="cancel",
    )  # fmt: skip
    execution = await world.start(document)
    await world.outside.gate("never").arrived()
    world.outside.gate().open()

    ended = await world.ended(execution)

    assert ended.state is ExecutionState.FAILED
    assert await world.states(execution) == "CANCELLED SUCCESS FAILED"


async def stop_on_failure_lets_running_nodes_finish(world: World) -> None:
    document = flow(
        node("slow", "gate", gate="later"), node("first", "gate"), act("bad", fails=9, retry=ONCE),
        act("after"), edges="first->bad slow->after", onFailure="stop",
    )  # fmt: skip
    execution = await world.start(document)
    await world.outside.gate("later").arrived()
    world.outside.gate().open()
    await world.until(execution, NodeSucceeded, "first")
    world.outside.gate("later").open()

    ended = await world.ended(execution)

    assert ended.state is ExecutionState.FAILED
    assert await world.states(execution) == "SUCCESS SUCCESS FAILED CANCELLED"


async def cancel_on_failure_calls_off_children_and_waits(world: World) -> None:
    await world.save(flow(node("inner", "gate", gate="never"), name="child"))
    document = flow(
        call(), node("listen", "wait", signal="go"), node("first", "gate"), act("bad", fails=9, retry=ONCE),
        edges="first->bad", onFailure="cancel",
    )  # fmt: skip
    execution = await world.start(document)
    await world.outside.gate("never").arrived()
    await world.until(execution, RunWaiting, "listen")
    world.outside.gate().open()

    ended = await world.ended(execution)

    (child,) = await world.children(execution)
    assert ended.state is ExecutionState.FAILED
    assert await world.states(execution) == "CANCELLED CANCELLED SUCCESS FAILED"
    assert (await world.ended(child)).state is ExecutionState.CANCELLED


# Keys


async def siblings_use_their_parents_key_one_at_a_time(world: World) -> None:
    gated = flow(node("inner", "gate"), name="child", concurrencyKey="k")
    await world.save(gated)
    execution = await world.start(flow(call(forEach=[1, 2, 3]), concurrencyKey="k"))
    await world.outside.gate().arrived()
    while len(await world.children(execution)) < 3:
        await asyncio.sleep(0)  # those who start them have to have a turn
    begun = [len(await world.events(child, ExecutionStarted)) for child in await world.children(execution)]

    world.outside.gate().open()

    assert sorted(begun) == [0, 0, 1]
    assert (await world.ended(execution)).state is ExecutionState.SUCCESS


async def grandchildren_that_use_the_key_too_keep_nobody_waiting_for_ever(world: World) -> None:
    await world.restart(default_slots=1)
    await world.save(flow(act("leaf", 1), name="leaf", concurrencyKey="k"))
    leaves = node("leaves", "subworkflow", workflow="leaf", forEach=[1, 2])
    await world.save(flow(leaves, name="child", concurrencyKey="k"))
    top = flow(call(forEach=[1, 2, 3]), concurrencyKey="k")

    first, second = await world.start(top), await world.start(top)

    assert [(await world.ended(each)).state for each in (first, second)] == [ExecutionState.SUCCESS] * 2


async def a_sibling_that_waits_keeps_the_key_over_a_restart(world: World) -> None:
    await world.save(flow(node("listen", "wait", signal="go"), name="child", concurrencyKey="k"))
    execution = await world.start(flow(call("one"), call("two"), concurrencyKey="k"))
    while len(children := await world.children(execution)) < 2:
        await asyncio.sleep(0)  # those who start them have to have a turn
    while not any(begun := [await world.events(child, RunWaiting) for child in children]):
        await asyncio.sleep(0)
    (holder, other) = children if begun[0] else reversed(children)
    await world.crash()
    await world.open()
    await world.service.signal(other, "go")
    assert await world.events(other, ExecutionStarted) == []

    await world.service.signal(holder, "go")

    assert (await world.ended(execution)).state is ExecutionState.SUCCESS
