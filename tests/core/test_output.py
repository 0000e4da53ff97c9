"""An output that takes long is asked of the worker, and what has happened since is not overlooked."""

from typing import Any

import pytest

from ropewalk.core.commands import Command, EvaluateOutput, NeedSlot
from ropewalk.core.events import Blob, ExecutionAccepted, ExecutionFailed, ExecutionSucceeded, NodesCarriedOver
from ropewalk.core.execution import Execution
from ropewalk.core.execution.view import output_later
from ropewalk.core.plan import Plan
from ropewalk.core.signals import Cancel, Due, Evaluated, Expanded, Pause, Resume, Start, Succeeded
from ropewalk.core.state import ExecutionState
from tests.core.executions import NOON, ok, workflow

COSTLY = "{{ sum(map(input, x => x * 2)) }}"


def at_its_end(plan: Plan, make: Any = Execution) -> tuple[Execution, list[Command]]:
    execution = make(plan)
    execution.apply([ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash", input=[1] * 2_000)])
    execution.handle(Start(), NOON)
    execution.take_commands()
    execution.handle(ok("a"), NOON)
    return execution, execution.take_commands()


@pytest.mark.parametrize("make", [Execution, Execution.on_the_beaten_way])
@pytest.mark.parametrize("times", [1, 3])
def test_an_output_that_takes_long_is_asked_for_once_and_ends_the_execution(make: Any, times: int):
    plan = workflow("a", output=COSTLY)

    for _ in range(times):
        execution, commands = at_its_end(plan, make)
        assert commands == [EvaluateOutput(execution.seq)]
        assert execution.handle(Due(), NOON) == execution.take_commands() == []
        events = execution.handle(Evaluated(execution.seq, output_later(execution)()), NOON)
        assert events == [ExecutionSucceeded(NOON, 4_000)]

    assert execution.state is ExecutionState.SUCCESS


def test_an_output_that_cannot_be_told_fails_the_execution():
    execution, _ = at_its_end(workflow("a", output=COSTLY))

    events = execution.handle(Evaluated(execution.seq, error="at 3: no"), NOON)

    assert events == [ExecutionFailed(NOON, "output: at 3: no")]


def test_what_has_happened_meanwhile_makes_it_be_asked_for_again():
    execution, (asked,) = at_its_end(workflow("a", output=COSTLY))
    execution.handle(Pause("me"), NOON)
    during = execution.handle(Evaluated(asked.seq, 1), NOON)
    execution.handle(Resume("me"), NOON)
    execution.handle(Start(), NOON)
    again = [command for command in execution.take_commands() if isinstance(command, EvaluateOutput)]
    late = execution.handle(Evaluated(asked.seq, 1), NOON)
    events = execution.handle(Evaluated(again[-1].seq, 2), NOON)

    assert during == late == []
    assert events == [ExecutionSucceeded(NOON, 2)]


def test_an_execution_without_a_slot_asks_for_one_before_its_output_is_evaluated():
    execution, _ = at_its_end(workflow("a", output=COSTLY))
    execution.handle(Pause("me"), NOON)
    execution.take_commands()

    execution.handle(Resume("me"), NOON)

    assert execution.needs_slot
    assert execution.take_commands() == [NeedSlot()]
    execution.handle(Start(), NOON)
    assert execution.take_commands() == [EvaluateOutput(execution.seq)]


def test_who_folds_the_log_asks_for_it_again():
    plan = workflow("a", output=COSTLY)
    log = [ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash", input=[1] * 2_000)]
    execution = Execution(plan)
    execution.apply(log)
    log += execution.handle(Start(), NOON) + execution.handle(ok("a"), NOON)
    folded = Execution(plan)
    folded.apply(log)

    folded.handle(Due(), NOON)

    assert folded.take_commands() == [EvaluateOutput(folded.seq)]


def test_a_cancel_does_not_wait_for_it():
    execution, (asked,) = at_its_end(workflow("a", output=COSTLY))

    execution.handle(Cancel("me"), NOON)

    assert execution.state is ExecutionState.CANCELLED
    assert execution.handle(Evaluated(asked.seq, 1), NOON) == []


BIG = Blob("f" * 64, 200_000)


@pytest.mark.parametrize("output", [None, "{{ nodes.a.output }}", "{{ length(nodes.a.output) }}"])
@pytest.mark.parametrize("make", [Execution, Execution.on_the_beaten_way])
def test_an_output_made_of_what_is_not_in_memory_is_asked_of_the_worker(make: Any, output: str | None):
    plan = workflow("a", **({} if output is None else {"output": output}))
    execution = make(plan)
    execution.apply([ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash")])
    execution.handle(Start(), NOON)
    execution.take_commands()

    execution.handle(Succeeded("a", 1, blob=BIG), NOON)

    assert execution.take_commands() == [EvaluateOutput(execution.seq)]
    execution.blobs[BIG.hash] = "xy"
    later = output_later(execution)
    execution.blobs.clear()
    assert later() == {None: {"a": "xy"}, "{{ nodes.a.output }}": "xy"}.get(output, 2)


def test_an_output_made_of_items_that_are_not_in_memory_is_asked_of_the_worker():
    execution = Execution(workflow([{"id": "m", "forEach": "{{ input }}"}]))
    execution.apply([ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash", input=[1, 2])])
    for signal in (Start(), Expanded("m", 1, 2), Succeeded("m", 1, "small", item=0)):
        execution.handle(signal, NOON)
    execution.take_commands()

    execution.handle(Succeeded("m", 1, item=1, blob=BIG), NOON)

    assert execution.take_commands() == [EvaluateOutput(execution.seq)]
    execution.blobs[BIG.hash] = "xy"
    assert output_later(execution)() == {"m": ["small", "xy"]}


def test_an_output_made_of_items_that_were_carried_over_is_asked_of_the_worker():
    execution = Execution(workflow([{"id": "m", "forEach": "{{ input }}"}, {"id": "b"}]))
    carried = NodesCarriedOver(NOON, "e0", {"m": ["small", BIG]}, large={"m": (1,)})
    execution.apply([ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash", input=[1, 2]), carried])
    execution.handle(Start(), NOON)
    execution.take_commands()

    execution.handle(Succeeded("b", 1), NOON)

    assert execution.take_commands() == [EvaluateOutput(execution.seq)]
