"""How executions are closed, by `compensate` and `finally`: SPEC §2, errors by kind."""

from itertools import pairwise
from typing import Any

import pytest

from ropewalk.core.errors import InvalidTransition
from ropewalk.core.events import ExecutionReopened, NodeSucceeded, OutcomeDecided, RunWaiting
from ropewalk.core.state import ExecutionState, Resolution
from tests.engines.scenarios.children import begun_child
from tests.engines.worlds import ONCE, World, act, flow, node

LARGE = 200_000
ASK = node("ask", "approval", title="Really?")


def undoing(id: str, **given: Any) -> dict[str, Any]:  # noqa: A002 (the document's word)
    """A node that hands on its name, and what undoes it, which is told what the node gave."""
    return {**act(id, id), "compensate": _without_id(act("", f"{{{{ nodes.{id}.output }}}}", **given))}


def _without_id(node: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name != "id"}


def saga(*nodes: dict[str, Any], last: tuple[dict[str, Any], ...] = (), **top: Any) -> dict[str, Any]:
    """Nodes that follow each other."""
    ids = [each["id"] for each in nodes]
    edges = " ".join(f"{one}->{other}" for one, other in pairwise(ids))
    return flow(*nodes, edges=edges, **top, **{"finally": list(last)})


async def output_of(world: World, execution: str, node: str) -> Any:
    """What the node gave."""
    (event,) = [each for each in await world.events(execution, NodeSucceeded) if each.node == node]
    return event.output


BROKEN = act("broken", fails=9, retry=ONCE)
SEEN = act("seen", "{{ [execution.outcome, execution.failed[0].node, nodes.a.output] }}")


async def what_was_done_is_undone_in_reverse_order_when_the_execution_fails(world: World) -> None:
    ended = await world.run(saga(undoing("a"), undoing("b"), act("c"), BROKEN, act("d"), last=(SEEN,)))

    assert ended.state is ExecutionState.FAILED
    assert world.outside.order(ended.execution) == ["a", "b", "c", "broken", "b.compensate", "a.compensate", "seen"]
    assert await world.states(ended.execution) == "SUCCESS SUCCESS SUCCESS FAILED BLOCKED SUCCESS SUCCESS SUCCESS"
    (decided,) = await world.events(ended.execution, OutcomeDecided)
    assert (decided.outcome, decided.undone) == ("FAILED", ("b", "a"))
    assert await output_of(world, ended.execution, "seen") == ["FAILED", "broken", "a"]


async def after_a_success_nothing_is_undone_and_what_comes_last_changes_no_output(world: World) -> None:
    ended = await world.run(saga(undoing("a"), last=(act("first", 1), act("second", "{{ nodes.first.output }}"))))

    assert ended.output == {"a": "a"}
    assert world.outside.order(ended.execution) == ["a", "first", "second"]
    assert await world.states(ended.execution) == "SUCCESS SUCCESS SUCCESS SKIPPED"


async def what_comes_last_may_fail_and_the_outcome_stands(world: World) -> None:
    ended = await world.run(saga(act("a", 1), last=(act("x", fails=9, retry=ONCE), act("y"))))

    (letter,) = await world.letters(ended.execution)
    assert (ended.state, ended.output) == (ExecutionState.SUCCESS, {"a": 1})
    assert (letter["node"], letter["failureType"]) == ("x", "MAX_RETRIES")
    assert world.outside.order(ended.execution) == ["a", "x", "y"]


async def what_cannot_be_undone_is_a_dead_letter_and_the_rest_is_undone(world: World) -> None:
    ended = await world.run(saga(undoing("a"), undoing("b", fails=9, kind="PERMANENT"), BROKEN))

    letters = await world.letters(ended.execution)
    assert {letter["node"] for letter in letters} == {"broken", "b.compensate"}
    assert world.outside.order(ended.execution)[-2:] == ["b.compensate", "a.compensate"]


async def what_undoes_is_tried_again_like_any_node(world: World) -> None:
    soon = {"maxAttempts": 3, "delay": "1ms", "jitter": 0}
    ended = await world.run(saga(undoing("a", fails=2, retry=soon), undoing("b"), BROKEN))

    runs = await world.runs(ended.execution, "a.compensate")
    assert [run["state"] for run in runs] == ["FAILED", "FAILED", "SUCCESS"]
    assert ended.state is ExecutionState.FAILED


async def a_cancelled_execution_that_was_parked_takes_a_slot_to_be_closed(world: World) -> None:
    await world.restart(default_slots=1)
    execution = await world.start(saga(undoing("a"), ASK, last=(SEEN,)))
    await world.until(execution, RunWaiting)

    assert await world.service.cancel(execution)
    ended = await world.ended(execution)

    assert ended.state is ExecutionState.CANCELLED
    assert world.outside.order(execution) == ["a", "ask", "a.compensate", "seen"]
    assert await output_of(world, execution, "seen") == ["CANCELLED", None, "a"]


async def a_paused_execution_that_is_cancelled_is_closed(world: World) -> None:
    execution = await world.start(saga(undoing("a"), ASK))
    await world.until(execution, RunWaiting)
    await world.service.pause(execution)

    assert await world.service.cancel(execution)

    assert (await world.ended(execution)).state is ExecutionState.CANCELLED
    assert world.outside.saw(execution, "a.compensate") == 1


async def an_execution_that_has_timed_out_is_closed(world: World) -> None:
    ended = await world.run(saga(undoing("a"), ASK, last=(SEEN,), timeout="200ms"))

    assert ended.state is ExecutionState.TIMEOUT
    assert await output_of(world, ended.execution, "seen") == ["TIMEOUT", None, "a"]
    assert world.outside.saw(ended.execution, "a.compensate") == 1


async def an_execution_that_never_began_is_not_closed(world: World) -> None:
    await world.restart(default_slots=1)
    first = await world.start(flow(node("held", "gate")))
    await world.outside.gate().arrived()
    second = await world.start(saga(undoing("a"), last=(act("x"),)))

    assert await world.service.cancel(second)
    assert (await world.ended(second)).state is ExecutionState.CANCELLED

    assert world.outside.order(second) == []
    world.outside.gate().open()
    await world.ended(first)


async def a_crash_while_it_is_closed_repeats_nothing_that_was_done(world: World) -> None:
    held = {**act("b", "b"), "compensate": {"type": "gate"}}
    execution = await world.start(saga(undoing("a"), held, undoing("c"), BROKEN, last=(act("x"),)))
    await world.outside.gate().arrived()

    await world.crash()
    world.outside.gate().open()
    await world.open()

    assert (await world.ended(execution)).state is ExecutionState.FAILED
    seen = {each: world.outside.saw(execution, each) for each in ("c.compensate", "b.compensate", "a.compensate", "x")}
    assert seen == {"c.compensate": 1, "b.compensate": 2, "a.compensate": 1, "x": 1}


async def what_was_undone_is_not_reopened_and_a_rerun_does_it_again(world: World) -> None:
    document = saga(act("free", 1), undoing("a"), act("broken", fails=1, retry=ONCE))
    ended = await world.run(document)

    with pytest.raises(InvalidTransition, match="has undone a"):
        await world.service.retry(ended.execution)
    with pytest.raises(InvalidTransition, match="has undone a"):
        await world.requeue(ended.execution)
    again = await world.ended(await world.service.rerun(ended.execution, "broken"))

    assert world.outside.order(again.execution)[:2] == ["a", "broken"]


async def without_anything_undone_it_is_reopened_and_closed_once_more(world: World) -> None:
    last = act("x", "{{ execution.outcome }}", fails=1, retry=ONCE)
    ended = await world.run(saga(act("a", fails=1, retry=ONCE), last=(last,)))
    assert len(await world.letters(ended.execution)) == 2

    assert await world.service.retry(ended.execution)
    again = await world.ended(ended.execution)

    assert (ended.state, again.state) == (ExecutionState.FAILED, ExecutionState.SUCCESS)
    assert len(await world.events(ended.execution, ExecutionReopened)) == 1
    assert [run["attempt"] for run in await world.runs(ended.execution, "x")] == [1, 2]
    assert await output_of(world, ended.execution, "x") == "SUCCESS"
    assert len(await world.letters(ended.execution, Resolution.REQUEUED)) == 2


async def while_it_is_closed_it_is_neither_paused_nor_cancelled_nor_retried(world: World) -> None:
    execution = await world.start(saga(BROKEN, last=(node("held", "gate"),)))
    await world.outside.gate().arrived()

    for verb in (world.service.pause, world.service.cancel, world.service.retry):
        with pytest.raises(InvalidTransition, match=r"closed with the outcome FAILED|cannot retry"):
            await verb(execution)

    world.outside.gate().open()
    assert (await world.ended(execution)).state is ExecutionState.FAILED


async def a_child_that_its_parent_calls_off_undoes_what_it_did(world: World) -> None:
    await world.save({**saga(undoing("a"), ASK), "name": "child"})
    execution = await world.start(flow(node("call", "subworkflow", workflow="child")))
    child = await begun_child(world, execution)
    await world.until(child, RunWaiting, "ask")

    assert await world.service.cancel(execution)

    assert (await world.ended(child)).state is ExecutionState.CANCELLED
    assert (await world.ended(execution)).state is ExecutionState.CANCELLED
    assert world.outside.order(child) == ["a", "ask", "a.compensate"]


async def large_values_are_undone_and_handed_on_as_ever(world: World) -> None:
    large = {**act("a", "x" * LARGE), "compensate": _without_id(act("", "{{ length(nodes.a.output) }}"))}

    failed = await world.run(saga(large, BROKEN, last=(act("x", "{{ length(nodes.a.output) }}"),)))
    ended = await world.run(saga(large, last=(act("x"),)))

    assert await output_of(world, failed.execution, "a.compensate") == LARGE
    assert await output_of(world, failed.execution, "x") == LARGE
    assert (await world.details(ended.execution))["output"] == {"a": "x" * LARGE}


async def a_parent_that_is_retried_calls_another_child_where_the_first_has_undone_its_work(world: World) -> None:
    await world.save({**saga(undoing("a"), act("broken", fails=1, retry=ONCE)), "name": "child"})
    first = await world.run(flow(node("call", "subworkflow", workflow="child")))

    assert await world.service.retry(first.execution)
    again = await world.ended(first.execution)

    assert first.state is ExecutionState.FAILED
    assert len(await world.children(first.execution)) == 2
    assert again.state is ExecutionState.FAILED
