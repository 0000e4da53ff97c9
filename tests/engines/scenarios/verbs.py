"""What people may ask: SPEC §3, 13 to 15."""

import asyncio

import pytest

from ropewalk.core.errors import Conflict, InvalidTransition, NotFound
from ropewalk.core.events import (
    CancelRequested,
    ExecutionReopened,
    NodeFailed,
    NodesCarriedOver,
    NodeSucceeded,
    RunWaiting,
    SlotReleased,
)
from ropewalk.core.state import ExecutionState, Resolution
from ropewalk.store import live
from tests.engines.worlds import ONCE, World, act, flow, node

ASK = node("ask", "approval", title="Really?")
HELD = flow(node("a", "gate", value=1), act("b", "{{ nodes.a.output }}"), edges="a->b")
BROKEN = flow(act("a", "{{ input }}"), act("b", fails=1, retry=ONCE), act("c", "end"), edges="a->b b->c")


async def a_pause_lets_what_runs_finish_and_starts_nothing(world: World) -> None:
    execution = await world.start(HELD)
    await world.outside.gate().arrived()

    assert await world.service.pause(execution, by="ann", reason="lunch")
    world.outside.gate().open()
    await world.until(execution, SlotReleased)

    assert (await world.details(execution))["state"] == "PAUSED"
    assert await world.states(execution) == "SUCCESS READY"
    assert await world.service.resume(execution)
    assert (await world.ended(execution)).output == {"b": 1}


async def a_timer_due_in_a_pause_is_recorded_and_its_successors_start_after_it(world: World) -> None:
    document = flow(node("d", "delay", **{"for": "30ms"}), act("b", 1), edges="d->b")
    execution = await world.start(document)
    await world.until(execution, RunWaiting)
    assert await world.service.pause(execution)

    await world.until(execution, NodeSucceeded, "d")

    assert world.outside.saw(execution, "b") == 0
    assert await world.service.resume(execution)
    assert (await world.ended(execution)).output == {"b": 1}


async def an_execution_paused_in_the_queue_does_not_start(world: World) -> None:
    await world.restart(default_slots=1)
    first, second = await world.start(HELD), await world.start(HELD)
    await world.outside.gate().arrived()

    assert await world.service.pause(second)
    world.outside.gate().open()
    await world.ended(first)

    assert (await world.details(second))["state"] == "PAUSED"
    assert world.outside.saw(second, "a") == 0
    assert await world.service.resume(second)
    assert (await world.ended(second)).state is ExecutionState.SUCCESS


async def cancelling_stops_what_runs_and_ends_as_cancelled(world: World) -> None:
    execution = await world.start(HELD)
    await world.outside.gate().arrived()

    assert await world.service.cancel(execution, by="ann", reason="wrong order")
    ended = await world.ended(execution)

    (requested,) = await world.events(execution, CancelRequested)
    assert ended.state is ExecutionState.CANCELLED
    assert (requested.by, requested.reason) == ("ann", "wrong order")
    assert await world.states(execution) == "CANCELLED CANCELLED"
    assert world.outside.gate().inside == 0


async def a_result_that_comes_within_the_grace_is_recorded_and_nothing_follows_it(world: World) -> None:
    document = flow(node("a", "stubborn", value="late"), act("b"), edges="a->b")
    execution = await world.start(document)
    await world.outside.gate().arrived()
    await world.service.cancel(execution)
    world.outside.gate().open()

    ended = await world.ended(execution)

    (succeeded,) = await world.events(execution, NodeSucceeded)
    assert ended.state is ExecutionState.CANCELLED
    assert succeeded.output == "late"
    assert await world.states(execution) == "SUCCESS CANCELLED"


async def an_execution_in_the_queue_can_be_cancelled(world: World) -> None:
    await world.restart(default_slots=1)
    first, second = await world.start(HELD), await world.start(HELD)

    assert await world.service.cancel(second)

    assert (await world.ended(second)).state is ExecutionState.CANCELLED
    world.outside.gate().open()
    assert (await world.ended(first)).state is ExecutionState.SUCCESS


async def a_parked_execution_can_be_cancelled_without_a_slot(world: World) -> None:
    await world.restart(default_slots=1)
    waiting = await world.start(flow(ASK))
    await world.until(waiting, SlotReleased)
    busy = await world.start(HELD)

    assert await world.service.cancel(waiting)

    assert (await world.ended(waiting)).state is ExecutionState.CANCELLED
    world.outside.gate().open()
    assert (await world.ended(busy)).state is ExecutionState.SUCCESS


async def a_verb_whose_effect_holds_already_changes_nothing(world: World) -> None:
    execution = await world.start(HELD)
    await world.outside.gate().arrived()

    assert not await world.service.resume(execution)
    assert await world.service.pause(execution)
    assert not await world.service.pause(execution)
    assert await world.service.cancel(execution)
    await world.ended(execution)
    assert not await world.service.cancel(execution)


async def a_verb_at_the_wrong_time_is_refused_and_changes_nothing(world: World) -> None:
    ended = await world.run(flow(act("a")))
    before = await world.events(ended.execution)

    for verb in (world.service.pause, world.service.resume, world.service.cancel, world.service.retry):
        with pytest.raises(InvalidTransition):
            await verb(ended.execution)

    assert await world.events(ended.execution) == before


async def verbs_about_what_does_not_exist_say_so(world: World) -> None:
    nobody = "00000000-0000-7000-8000-000000000000"
    ended = await world.run(flow(act("a", fails=9, retry=ONCE)))

    for verb in (world.service.cancel, world.service.retry, world.service.replay, world.service.ended):
        with pytest.raises(NotFound):
            await verb(nobody)
    with pytest.raises(NotFound):
        await world.service.requeue(nobody)
    with pytest.raises(NotFound):
        await world.service.rerun(ended.execution, "nowhere")


async def a_retry_runs_what_failed_and_what_was_behind_it(world: World) -> None:
    ended = await world.run(BROKEN, 5)
    assert ended.state is ExecutionState.FAILED

    assert await world.service.retry(ended.execution, by="ann")
    again = await world.ended(ended.execution)

    assert again.output == {"c": "end"}
    assert world.outside.order(ended.execution) == ["a", "b", "b", "c"]
    assert [run["attempt"] for run in await world.runs(ended.execution, "b")] == [1, 2]
    assert [letter["reviewedBy"] for letter in await world.letters(ended.execution, Resolution.REQUEUED)] == ["ann"]
    details = await world.details(ended.execution)
    assert (details["error"], details["state"]) == (None, "SUCCESS")


async def a_retry_gives_a_fresh_budget(world: World) -> None:
    ended = await world.run(flow(act("a", "at last", fails=5)))

    await world.service.retry(ended.execution)

    assert (await world.ended(ended.execution)).output == {"a": "at last"}
    assert [run["attempt"] for run in await world.runs(ended.execution)] == [1, 2, 3, 4, 5, 6]


async def a_retry_keeps_the_priority(world: World) -> None:
    ended = await world.run(flow(act("a", fails=1, retry=ONCE), ASK, edges="a->ask"), priority=8)

    await world.service.retry(ended.execution)
    await world.until(ended.execution, RunWaiting, "ask")

    reopened = await live.get(world.service.store, ended.execution)
    assert reopened is not None
    assert reopened.priority == 8


async def a_retry_after_a_stop_runs_what_was_cancelled_too(world: World) -> None:
    broken = act("a", fails=1, retry=ONCE)
    document = flow(node("g", "gate"), broken, ASK, act("c"), edges="g->a ask->c", onFailure="stop")
    execution = await world.start(document)
    await world.until(execution, RunWaiting, "ask")
    world.outside.gate().open()
    assert (await world.ended(execution)).state is ExecutionState.FAILED

    await world.service.retry(execution)
    await world.until(execution, RunWaiting, "ask", count=2)
    await world.service.decide(execution, "ask", approved=True)

    assert (await world.ended(execution)).state is ExecutionState.SUCCESS
    assert await world.states(execution) == "SUCCESS SUCCESS SUCCESS SUCCESS"


async def a_requeued_dead_letter_runs_with_the_inputs_a_person_changed(world: World) -> None:
    document = flow(act("a", "{{ input }}", fails=9, retry=ONCE), act("b", "{{ nodes.a.output }}"), edges="a->b")
    ended = await world.run(document, "wrong")

    await world.requeue(ended.execution, {"value": "right", "fails": 0})
    ended = await world.ended(ended.execution)

    (letter,) = await world.letters(ended.execution, Resolution.REQUEUED)
    assert ended.output == {"b": "right"}
    assert letter["inputs"] == {"value": "wrong", "fails": 9}


async def only_the_requeued_of_two_failures_runs_again(world: World) -> None:
    ended = await world.run(flow(act("a", fails=1, retry=ONCE), act("b", fails=1, retry=ONCE)))
    first, _ = await world.letters(ended.execution)

    await world.service.requeue(first["id"])
    ended = await world.ended(ended.execution)

    assert (ended.state, ended.error) == (ExecutionState.FAILED, "b: no luck")
    assert await world.states(ended.execution) == "SUCCESS FAILED"


async def a_fix_gives_the_output_that_was_missing(world: World) -> None:
    document = flow(act("a", fails=9, retry=ONCE), act("b", "{{ nodes.a.output.n + 1 }}"), edges="a->b")
    ended = await world.run(document)
    (letter,) = await world.letters(ended.execution)

    await world.service.fix(letter["id"], {"n": 1}, by="ann")
    ended = await world.ended(ended.execution)

    (fixed,) = await world.letters(ended.execution, Resolution.FIXED)
    assert ended.output == {"b": 2}
    assert (fixed["id"], fixed["reviewedBy"]) == (letter["id"], "ann")
    assert world.outside.saw(ended.execution, "a") == 1


async def requeue_and_fix_act_in_place_while_the_execution_runs(world: World) -> None:
    document = flow(act("a", fails=1, retry=ONCE), act("b", fails=9, retry=ONCE), node("c", "gate"))
    execution = await world.start(document)
    await world.until(execution, NodeFailed, count=2)
    first, second = await world.letters(execution)

    await world.service.requeue(first["id"])
    await world.service.fix(second["id"], "given")
    world.outside.gate().open()

    assert (await world.ended(execution)).output == {"a": None, "b": "given", "c": None}
    assert await world.events(execution, ExecutionReopened) == []


async def a_dead_letter_is_resolved_once(world: World) -> None:
    ended = await world.run(flow(act("a", fails=9, retry=ONCE)))
    (letter,) = await world.letters(ended.execution)

    await world.service.discard(letter["id"], by="ann", notes="too old")

    for verb in (world.service.discard, world.service.requeue):
        with pytest.raises(Conflict):
            await verb(letter["id"])
    (kept,) = await world.letters(ended.execution, Resolution.DISCARDED)
    assert (kept["reviewedBy"], kept["notes"]) == ("ann", "too old")
    assert (await world.ended(ended.execution)).state is ExecutionState.FAILED


async def of_two_who_requeue_at_once_one_does_it(world: World) -> None:
    ended = await world.run(flow(act("a", fails=1, retry=ONCE)))
    (letter,) = await world.letters(ended.execution)

    told = await asyncio.gather(*(world.service.requeue(letter["id"]) for _ in range(3)), return_exceptions=True)
    await world.ended(ended.execution)

    # Whoever comes when it is done already is told who did it.
    assert sum(isinstance(each, InvalidTransition | Conflict) for each in told) == 2
    assert told.count(ended.execution) == 1
    assert world.outside.saw(ended.execution, "a") == 2


async def a_rerun_keeps_every_result_but_those_from_the_node_on(world: World) -> None:
    document = flow(act("a", "{{ input }}"), act("b", "{{ nodes.a.output }}"), act("c"), edges="a->b b->c")
    first = await world.run(document, 5)

    second = await world.service.rerun(first.execution, "b")
    ended = await world.ended(second)

    (carried,) = await world.events(second, NodesCarriedOver)
    assert ended.state is ExecutionState.SUCCESS
    assert carried.outputs == {"a": 5}
    assert world.outside.order(second) == ["b", "c"]


async def a_rerun_on_another_version_keeps_only_what_is_the_same_there(world: World) -> None:
    first = await world.run(flow(act("a", 1), act("b", 2), act("c", "{{ nodes.a.output + nodes.b.output }}"),
                                 edges="a->c b->c"))  # fmt: skip
    changed = await world.save(flow(act("a", 1), act("b", 20), act("c", "{{ nodes.a.output + nodes.b.output }}"),
                                    edges="a->c b->c"))  # fmt: skip

    second = await world.service.rerun(first.execution, "c", version=changed.version)
    ended = await world.ended(second)

    assert ended.output == {"c": 21}
    assert world.outside.order(second) == ["b", "c"]


async def a_replay_is_a_new_execution_of_the_same_version_and_input(world: World) -> None:
    first = await world.run(flow(act("a", "{{ input }}")), {"n": 1})
    await world.save(flow(act("a", "changed")))

    second = await world.service.replay(first.execution)
    ended = await world.ended(second)

    assert second != first.execution
    assert ended.output == first.output == {"a": {"n": 1}}


async def what_has_not_ended_is_neither_replayed_nor_rerun(world: World) -> None:
    execution = await world.start(HELD)

    with pytest.raises(InvalidTransition):
        await world.service.replay(execution)
    with pytest.raises(InvalidTransition):
        await world.service.rerun(execution, "b")

    world.outside.gate().open()
    assert (await world.ended(execution)).state is ExecutionState.SUCCESS
