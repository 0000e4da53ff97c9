"""Durable waits, time limits, slots and keys: SPEC §3, 10 to 12."""

import asyncio
import random
import string

import pytest

from ropewalk.core.duration import MILLISECOND, SECOND
from ropewalk.core.errors import InvalidInput, InvalidTransition
from ropewalk.core.events import (
    ExecutionStarted,
    NodesStarted,
    NodeSucceeded,
    RunWaiting,
    SlotReleased,
)
from ropewalk.core.instant import rfc3339
from ropewalk.core.state import ExecutionState
from tests.engines.worlds import World, act, flow, node

ASK = node("ask", "approval", title="Really?")
LISTEN = node("listen", "wait", signal="go")


async def a_delay_takes_its_time(world: World) -> None:
    ended = await world.run(flow(node("d", "delay", **{"for": "30ms"}), act("after", 1), edges="d->after"))

    (waiting,) = await world.events(ended.execution, RunWaiting)
    (first, _) = await world.events(ended.execution, NodeSucceeded)
    (started, _) = await world.events(ended.execution, NodesStarted)
    assert ended.output == {"after": 1}
    assert first.at >= waiting.due >= started.at + 30 * MILLISECOND


async def a_wait_until_a_moment_ends_then(world: World) -> None:
    moment = rfc3339(world.service.store.now() + 40 * MILLISECOND)

    ended = await world.run(flow(node("w", "wait", until=moment)))

    (succeeded,) = await world.events(ended.execution, NodeSucceeded)
    assert rfc3339(succeeded.at) >= moment


async def a_wait_until_a_moment_that_has_passed_ends_at_once(world: World) -> None:
    assert (await world.run(flow(node("w", "wait", until=1)))).state is ExecutionState.SUCCESS


async def an_approval_goes_on_through_the_port_of_the_answer(world: World) -> None:
    document = flow(ASK, act("yes"), act("no"), edges="ask->yes:approved ask->no:rejected")
    first, second = await world.start(document), await world.start(document)
    for execution in (first, second):
        await world.until(execution, RunWaiting)

    await world.service.decide(first, "ask", approved=True, by="ann", payload="fine")
    await world.service.decide(second, "ask", approved=False)

    assert (await world.ended(first)).state is ExecutionState.SUCCESS
    assert await world.states(first) == "SUCCESS SUCCESS SKIPPED"
    assert (await world.ended(second)).state is ExecutionState.SUCCESS
    assert await world.states(second) == "SUCCESS SKIPPED SUCCESS"
    (decided, _) = await world.events(first, NodeSucceeded)
    assert decided.output == {"approved": True, "by": "ann", "payload": "fine"}


async def the_first_decision_wins(world: World) -> None:
    execution = await world.start(flow(ASK, LISTEN))
    await world.until(execution, RunWaiting, "listen")
    await world.service.decide(execution, "ask", approved=True)

    with pytest.raises(InvalidTransition):
        await world.service.decide(execution, "ask", approved=False)

    await world.service.signal(execution, "go")
    assert (await world.ended(execution)).output["ask"]["approved"] is True


async def signals_are_kept_until_a_wait_uses_them_one_each_in_order(world: World) -> None:
    document = flow(ASK, LISTEN, node("again", "wait", signal="go"), edges="ask->listen listen->again")
    execution = await world.start(document)
    await world.until(execution, RunWaiting, "ask")
    for payload in ("first", "second", "third"):
        assert await world.service.signal(execution, "go", payload)

    await world.service.decide(execution, "ask", approved=True)
    ended = await world.ended(execution)

    outputs = [event.output for event in await world.events(execution, NodeSucceeded)]
    assert outputs[1:] == ["first", "second"]
    assert ended.state is ExecutionState.SUCCESS


async def a_signal_of_another_name_is_no_answer(world: World) -> None:
    execution = await world.start(flow(LISTEN))
    await world.until(execution, RunWaiting)

    await world.service.signal(execution, "stay")
    await world.service.signal(execution, "go", {"n": 1})

    assert (await world.ended(execution)).output == {"listen": {"n": 1}}


async def a_signal_to_what_is_over_is_refused(world: World) -> None:
    ended = await world.run(flow(act("a")))

    with pytest.raises(InvalidTransition):
        await world.service.signal(ended.execution, "go")


async def a_thousand_signals_are_kept_and_no_more(world: World) -> None:
    execution = await world.start(flow(ASK))
    await world.until(execution, RunWaiting)
    await asyncio.gather(*(world.service.signal(execution, "go", number) for number in range(1000)))

    with pytest.raises(InvalidTransition):
        await world.service.signal(execution, "go")

    assert await world.service.cancel(execution)


async def an_expired_wait_fails_as_timeout_and_is_not_tried_again(world: World) -> None:
    ended = await world.run(flow({**ASK, "timeout": "20ms"}))

    (letter,) = await world.letters(ended.execution)
    assert ended.state is ExecutionState.FAILED
    assert (letter["errorType"], letter["attempt"]) == ("TIMEOUT", 1)


async def an_expired_wait_takes_its_port_if_an_edge_names_it(world: World) -> None:
    document = flow({**ASK, "timeout": "20ms"}, act("late", "nobody"), edges="ask->late:expired")

    assert (await world.run(document)).output == {"late": "nobody"}


async def a_wait_that_was_answered_with_null_is_told_from_one_that_expired(world: World) -> None:
    hear = node("hear", "wait", signal="go", timeout="20ms")
    edges = "hear->heard:arrived hear->late:expired"
    waits = flow(hear, act("heard", "yes"), act("late", "no"), edges=edges)
    told = await world.start(flow({**hear, "timeout": "1h"}, *waits["nodes"][1:], edges=edges))
    await world.service.signal(told, "go", None)

    assert (await world.ended(told)).output == {"heard": "yes"}
    assert (await world.run(waits)).output == {"late": "no"}


async def an_execution_that_takes_too_long_times_out(world: World) -> None:
    execution = await world.start(flow(node("a", "gate"), act("b"), edges="a->b", timeout="30ms"))

    ended = await world.ended(execution)

    assert (ended.state, ended.error) == (ExecutionState.TIMEOUT, "the execution did not end in its time limit")
    assert await world.states(execution) == "CANCELLED CANCELLED"
    assert world.outside.gate().inside == 0


async def a_parked_execution_times_out_as_well(world: World) -> None:
    ended = await world.run(flow(ASK, timeout="30ms"))

    assert ended.state is ExecutionState.TIMEOUT
    assert await world.states(ended.execution) == "CANCELLED"


async def an_execution_that_timed_out_can_be_retried_with_a_fresh_limit(world: World) -> None:
    execution = await world.start(flow(act("a"), node("b", "gate", value=1), edges="a->b", timeout="60ms"))
    assert (await world.ended(execution)).state is ExecutionState.TIMEOUT
    world.outside.gate().open()

    assert await world.service.retry(execution)
    ended = await world.ended(execution)

    first, second = await world.events(execution, ExecutionStarted)
    assert ended.output == {"b": 1}
    assert second.deadline - second.at == first.deadline - first.at == 60 * MILLISECOND
    assert world.outside.saw(execution, "a") == 1


async def a_pause_stops_the_clock_of_the_time_limit(world: World) -> None:
    document = flow(node("a", "gate"), act("b"), edges="a->b", timeout="10s")
    execution = await world.start(document)
    await world.outside.gate().arrived()
    await world.service.pause(execution)
    await world.service.resume(execution)
    world.outside.gate().open()

    ended = await world.ended(execution)

    events = await world.events(execution)
    paused, resumed = [event for event in events if type(event).__name__ in ("ExecutionPaused", "ExecutionResumed")]
    (started,) = await world.events(execution, ExecutionStarted)
    assert ended.state is ExecutionState.SUCCESS
    assert resumed.deadline - resumed.at == started.deadline - paused.at
    assert resumed.deadline >= started.at + 10 * SECOND


async def who_only_waits_gives_its_slot_to_others(world: World) -> None:
    await world.restart(default_slots=1)
    waiting = await world.start(flow(ASK, act("after", "both"), edges="ask->after"))
    await world.until(waiting, SlotReleased)

    other = await world.run(flow(act("a", 1), name="other"))
    await world.service.decide(waiting, "ask", approved=True)

    assert other.output == {"a": 1}
    assert (await world.ended(waiting)).output == {"after": "both"}


async def no_more_executions_run_than_there_are_slots(world: World) -> None:
    await world.restart(default_slots=2)
    document = flow(node("a", "gate"))
    started = [await world.start(document) for _ in range(7)]
    gate = world.outside.gate()
    await gate.arrived(2)

    waiting = [(await world.details(execution))["waitingFor"] for execution in started]
    gate.open()

    assert waiting == [None, None] + ["capacity"] * 5
    assert [(await world.ended(execution)).state for execution in started] == [ExecutionState.SUCCESS] * 7
    assert gate.most == 2


async def those_who_wait_for_a_slot_start_by_priority_then_age(world: World) -> None:
    await world.restart(default_slots=1)
    document = flow(node("a", "gate", gate="{{ input }}"), name="ordered")
    first = await world.start(document, "first")
    await world.outside.gate("first").arrived()
    names = {"low": 1, "usual": 5, "usual too": 5, "high": 9}
    started = {name: await world.start(document, name, priority=priority) for name, priority in names.items()}
    for gate in ("first", *names):
        world.outside.gate(gate).open()

    for execution in (first, *started.values()):
        await world.ended(execution)

    order = [effect.execution for effect in world.outside.effects]
    assert order == [first, started["high"], started["usual"], started["usual too"], started["low"]]


async def newcomers_do_not_overtake_those_who_wait(world: World) -> None:
    await world.restart(default_slots=1)
    document = flow(node("a", "gate", gate="{{ input }}"))
    first, second = await world.start(document, "first"), await world.start(document, "second")
    await world.outside.gate("first").arrived()
    for gate in ("first", "second", "third"):
        world.outside.gate(gate).open()

    await world.ended(first)
    third = await world.start(document, "third")
    for execution in (second, third):
        await world.ended(execution)

    assert [effect.execution for effect in world.outside.effects] == [first, second, third]


async def executions_of_one_key_start_in_the_order_they_came(world: World) -> None:
    document = flow(node("a", "gate", gate="{{ input }}"), concurrencyKey="k")
    first, second = await world.start(document, "first"), await world.start(document, "second")
    await world.outside.gate("first").arrived()
    for gate in ("first", "second", "third"):
        world.outside.gate(gate).open()

    await world.ended(first)
    third = await world.start(document, "third")
    for execution in (second, third):
        await world.ended(execution)

    assert [effect.execution for effect in world.outside.effects] == [first, second, third]


async def executions_of_one_key_run_one_after_the_other(world: World) -> None:
    document = flow(node("a", "gate", gate="{{ input.key }}"), concurrencyKey="{{ input.key }}")
    first, second, other = [await world.start(document, {"key": key}) for key in ("x", "x", "y")]
    await world.outside.gate("x").arrived()
    await world.outside.gate("y").arrived()

    assert world.outside.saw(second, "a") == 0
    world.outside.gate("x").open()
    world.outside.gate("y").open()
    assert [(await world.ended(each)).state for each in (first, second, other)] == [ExecutionState.SUCCESS] * 3
    assert world.outside.gate("x").most == 1


async def a_key_too_long_for_any_store_is_refused_and_keeps_nobody_waiting(world: World) -> None:
    document = flow(act("a", 1), concurrencyKey="{{ input }}")
    # Without a pattern: what can be compressed takes less room than it is long.
    key = "é" + "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=998))

    with pytest.raises(InvalidInput, match="concurrencyKey: has 1,001 bytes, at most 1,000 are allowed"):
        await world.start(document, key + "x")

    assert (await world.run(document, key)).state is ExecutionState.SUCCESS
    assert (await world.run(document, "short")).state is ExecutionState.SUCCESS


async def a_key_is_held_while_its_execution_waits_and_over_a_restart(world: World) -> None:
    document = flow(ASK, concurrencyKey="{{ input }}")
    first, second = await world.start(document, "k"), await world.start(document, "k")
    await world.until(first, SlotReleased)

    await world.restart()
    await world.service.decide(first, "ask", approved=True)
    await world.until(second, RunWaiting)

    (started,) = await world.events(second, ExecutionStarted)
    assert started.at >= (await world.events(first))[-1].at
    await world.service.decide(second, "ask", approved=True)
    assert (await world.ended(second)).state is ExecutionState.SUCCESS
