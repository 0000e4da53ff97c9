"""What becomes of items of a map that fail: `onItemFailure`, `deadLetters`, and the mending of what was tolerated."""

import pytest

from ropewalk.core.errors import InvalidTransition
from ropewalk.core.events import Event, ItemFailed, ItemsGivenUp, Parent
from ropewalk.core.execution import Execution
from ropewalk.core.execution.view import inputs_of, items_of
from ropewalk.core.plan import Plan
from ropewalk.core.signals import (
    Cancel,
    ChildEnded,
    ChildReopened,
    Due,
    Evaluated,
    Expanded,
    Fix,
    GiveUp,
    Requeue,
    Retry,
    Signal,
    Start,
    Suspended,
)
from ropewalk.core.state import ExecutionState, GaveUp, NodeState
from ropewalk.core.waits import ChildWait
from tests.core.executions import (
    FAILED,
    NOON,
    SUCCESS,
    WRONG,
    accepted,
    bad,
    each,
    mapped,
    names,
    ok,
    refolded,
    runs,
    states,
    tell,
    workflow,
)

ERROR = {"type": "TRANSIENT", "message": "boom", "attempts": 1}
SEEN = {"output": "{{ nodes.m.output }}", "errors": "{{ nodes.m.errors }}"}
KEPT = {"failureTolerance": 2, "deadLetters": "always"}


def letters(events: list[Event]) -> list[int]:
    """The items that became dead letters, in the order they did."""
    found: list[int] = []
    for event in events:
        if isinstance(event, ItemFailed) and event.gave_up is not None:
            found.append(event.item)
        elif isinstance(event, ItemsGivenUp):
            found += event.items
    return found


def tolerant(*after_it: str, **fields: object) -> Execution:
    """A map of three whose middle item failed and was tolerated; its followers have started."""
    nodes = [each("m", **{**KEPT, **fields}), *({"id": node, "with": SEEN} for node in after_it)]
    plan = workflow(nodes, *(f"m->{node}" for node in after_it), output="{{ [nodes.m.output, nodes.m.errors] }}")
    execution = mapped(plan, 3)
    tell(execution, ok("m", "a", item=0), bad("m", item=1), ok("m", "c", item=2))
    execution.take_commands()
    return execution


# onItemFailure


def test_a_map_that_continues_tries_every_item_and_then_fails():
    execution = mapped(workflow([each("m", concurrency=1, onItemFailure="continue")]), 3)

    tell(execution, bad("m", item=0))
    assert runs(execution) == ["m[1]"]
    events = tell(execution, bad("m", item=1), ok("m", item=2))

    assert names(events)[-2:] == ["NodeFailed", "ExecutionFailed"]
    assert events[-2].error.message == "2 of 3 items failed, 0 tolerated; the first: boom"


def test_a_map_that_stops_is_what_is_said_by_default():
    execution = mapped(workflow([each("m", concurrency=1, onItemFailure="stop")]), 3)

    tell(execution, bad("m", item=0))

    assert (execution.state, runs(execution)) == (FAILED, [])


def test_each_failure_of_a_map_that_continues_beyond_its_tolerance_is_a_dead_letter():
    execution = mapped(workflow([each("m", failureTolerance=1, onItemFailure="continue")]), 4)

    events = tell(execution, bad("m", item=3), bad("m", item=0), bad("m", item=1), ok("m", item=2))

    assert letters(events) == [0, 3, 1]


def test_a_map_that_continues_within_its_tolerance_makes_no_dead_letter():
    execution = mapped(workflow([each("m", failureTolerance=1, onItemFailure="continue")]), 2)

    events = tell(execution, bad("m", item=0), ok("m", item=1))

    assert (letters(events), execution.state) == ([], SUCCESS)


def test_an_item_is_requeued_while_its_map_continues():
    execution = mapped(workflow([each("m", concurrency=1, onItemFailure="continue")]), 2)
    tell(execution, bad("m", item=0), Requeue("m", "ann", 0))

    tell(execution, ok("m", item=1))
    tell(execution, ok("m", "mended", item=0, attempt=2))

    assert (execution.state, execution.outputs[0]) == (SUCCESS, ["mended", None])


def test_fifty_of_two_thousand_are_mended_in_the_same_execution():
    execution = mapped(workflow([each("m", onItemFailure="continue")]), 2_000)
    bad_ones = list(range(7, 2_000, 40))
    assert len(bad_ones) == 50

    reports = [bad("m", item=item) if item in bad_ones else ok("m", item, item=item) for item in range(2_000)]
    events = tell(execution, *reports)
    assert execution.state is FAILED
    assert letters(events) == bad_ones
    tell(execution, *(Requeue("m", "ann", item) for item in bad_ones[:25]))
    tell(execution, *(Fix("m", "ann", item, item=item) for item in bad_ones[25:]), Start())
    tell(execution, *(ok("m", item, item=item, attempt=2) for item in bad_ones[:25]))
    # An output of so many is evaluated beside the loop.
    tell(execution, Evaluated(execution.seq, list(range(2_000))))

    assert (execution.state, execution.outputs[0]) == (SUCCESS, list(range(2_000)))


def test_a_map_that_continues_starts_nothing_when_its_execution_stops():
    nodes = [each("m", concurrency=1, onItemFailure="continue"), {"id": "a", "retry": {"maxAttempts": 1}}]
    execution = mapped(workflow(nodes, onFailure="stop"), 3)
    execution.take_commands()

    tell(execution, bad("a", WRONG), bad("m", item=0))

    assert (execution.state, runs(execution)) == (FAILED, [])


# deadLetters


def test_a_tolerated_failure_is_a_dead_letter_where_all_are_kept():
    events = tell(mapped(workflow([each("m", **KEPT)]), 3), bad("m", item=1))

    assert events[0].gave_up is GaveUp.MAX_RETRIES
    assert names(events) == ["ItemFailed"]


def test_all_dead_letters_of_a_failed_map_are_made_once():
    execution = mapped(workflow([each("m", failureTolerance=1, deadLetters="always")]), 3)

    events = tell(execution, bad("m", item=1), bad("m", item=0), bad("m", item=2))

    assert letters(events) == [1, 0, 2]


def test_an_error_edge_leaves_the_dead_letters_to_a_map_that_succeeds():
    plan = workflow([each("m", failureTolerance=1, deadLetters="always"), {"id": "alert"}], "m->alert:error")
    succeeded, failed = mapped(plan, 2), mapped(plan, 2)

    assert letters(tell(succeeded, bad("m", item=0), ok("m", item=1))) == [0]
    assert letters(tell(failed, bad("m", item=0), bad("m", item=1))) == []


# Mending what was tolerated


def test_a_tolerated_item_is_requeued_while_its_execution_goes_on():
    execution = tolerant("b")

    tell(execution, Requeue("m", "ann", 1))
    assert runs(execution) == ["m[1]#2"]
    tell(execution, ok("b"))
    assert execution.state is ExecutionState.RUNNING
    events = tell(execution, ok("m", "b", item=1, attempt=2))

    assert events[-1].output == [["a", "b", "c"], []]


def test_a_tolerated_item_is_fixed_while_its_execution_goes_on():
    execution = tolerant("b")

    tell(execution, Fix("m", "ann", "fixed", item=1))
    events = tell(execution, ok("b"))

    assert events[-1].output == [["a", "fixed", "c"], []]


def test_requeue_of_a_tolerated_item_reopens_an_execution_that_succeeded():
    execution = tolerant()
    assert execution.state is SUCCESS

    events = tell(execution, Requeue("m", "ann", 1, {"x": 1}))
    assert names(events) == ["ExecutionReopened", "NodeRequeued"]
    tell(execution, Start())
    assert runs(execution) == ["m[1]#2"]
    assert states(execution) == {"m": NodeState.SUCCESS}
    events = tell(execution, ok("m", "b", item=1, attempt=2))

    assert names(events) == ["ItemSucceeded", "ExecutionSucceeded"]
    assert events[-1].output == [["a", "b", "c"], []]


def test_fix_of_a_tolerated_item_completes_an_execution_that_succeeded():
    execution = tolerant()

    events = tell(execution, Fix("m", "ann", "fixed", item=1), Start())

    assert events[-1].output == [["a", "fixed", "c"], []]


def test_successors_that_are_done_do_not_run_again():
    execution = tolerant("b")
    tell(execution, ok("b", "seen"))
    assert execution.state is SUCCESS

    tell(execution, Requeue("m", "ann", 1), Start(), ok("m", "b", item=1, attempt=2))

    assert runs(execution) == ["m[1]#2"]
    assert (execution.state, execution.outputs[1]) == (SUCCESS, "seen")


def test_a_mended_item_that_fails_again_is_a_dead_letter_again():
    execution = tolerant()
    tell(execution, Requeue("m", "ann", 1), Start())

    events = tell(execution, bad("m", item=1, attempt=2))

    assert (letters(events), execution.state) == ([1], SUCCESS)
    assert events[-1].output == [["a", None, "c"], [{**ERROR, "attempts": 2, "index": 1}]]


def test_many_tolerated_items_are_mended_at_once_within_the_concurrency():
    execution = mapped(workflow([each("m", concurrency=2, failureTolerance=3, deadLetters="always")]), 3)
    tell(execution, *(bad("m", item=item) for item in range(3)))
    execution.take_commands()

    tell(execution, *(Requeue("m", "ann", item) for item in range(3)), Start())
    assert runs(execution) == ["m[0]#2", "m[1]#2"]
    tell(execution, *(ok("m", item, item=item, attempt=2) for item in range(3)))

    assert (execution.state, execution.outputs[0]) == (SUCCESS, [0, 1, 2])


def test_a_mended_item_that_is_retried_keeps_its_execution_open():
    execution = tolerant(retry={"maxAttempts": 2, "jitter": 0})
    tell(execution, Due(), at=NOON + 1_000_000)
    tell(execution, bad("m", item=1, attempt=2), at=NOON + 1_000_000)
    tell(execution, Requeue("m", "ann", 1), Start(), at=NOON + 1_000_000)

    tell(execution, bad("m", item=1, attempt=3), at=NOON + 1_000_000)
    assert execution.state is ExecutionState.RUNNING
    tell(execution, Due(), at=NOON + 2_000_000)
    tell(execution, ok("m", "b", item=1, attempt=4), at=NOON + 2_000_000)

    assert (execution.state, execution.outputs[0]) == (SUCCESS, ["a", "b", "c"])


def test_mending_that_a_time_limit_cut_short_goes_on_after_a_retry():
    plan = workflow([each("m", **KEPT), {"id": "b"}], "m->b", timeout=60)
    execution = mapped(plan, 1)
    tell(execution, bad("m", item=0), Requeue("m", "ann", 0, {"x": 1}))
    tell(execution, Due(), at=NOON + 60_000_000)
    tell(execution, Due(), at=NOON + 80_000_000)
    assert execution.state is ExecutionState.TIMEOUT
    execution.take_commands()

    tell(execution, Retry("ann"), Start(), at=NOON + 80_000_000)
    assert runs(execution) == ["m[0]#3", "b#2"]
    tell(execution, ok("b", attempt=2), ok("m", "mended", attempt=3, item=0), at=NOON + 80_000_000)

    assert (execution.state, execution.outputs[0]) == (SUCCESS, ["mended"])


def test_an_execution_that_was_cancelled_is_final_for_its_tolerated_items_too():
    execution = tolerant("b")
    tell(execution, Cancel("ann"))
    tell(execution, Due(), at=NOON + 10_000_000)

    with pytest.raises(InvalidTransition, match="CANCELLED"):
        tell(execution, Requeue("m", "ann", 1))


def test_a_tolerated_item_without_a_dead_letter_cannot_be_requeued():
    with pytest.raises(InvalidTransition, match=r"cannot requeue m\[1\]: it has no dead letter"):
        tell(tolerant(deadLetters="beyondTolerance"), Requeue("m", "ann", 1))


def test_success_is_final_for_everything_but_tolerated_items():
    for signal in (Retry("ann"), Requeue("m", "ann", 0), Fix("m", "ann", item=0), GiveUp("m", "ann", 1)):
        with pytest.raises(InvalidTransition):
            tell(tolerant(), signal)


def test_a_child_whose_parent_has_its_result_is_final():
    execution = accepted(workflow([each("m", **KEPT)]), parent=Parent("above", "call", 1))
    tell(execution, Start(), Expanded("m", 1, 1), bad("m", item=0))
    assert execution.state is SUCCESS

    with pytest.raises(InvalidTransition, match="execution above, which called it, has its output"):
        tell(execution, Requeue("m", "ann", 0))


def test_a_mended_item_is_given_up_by_hand():
    execution = tolerant()
    tell(execution, Requeue("m", "ann", 1), Start())

    events = tell(execution, GiveUp("m", "ann", 1))

    assert events[0].gave_up is GaveUp.MANUAL
    assert execution.state is SUCCESS


def test_a_tolerated_item_waits_again_for_its_child_that_was_reopened():
    execution = mapped(workflow([each("m", **KEPT)]), 1)
    tell(execution, Suspended("m", 1, ChildWait("child", "w"), 0), ChildEnded("m", 1, FAILED, error="no", item=0))
    assert execution.state is SUCCESS

    tell(execution, ChildReopened("m", 1, "ann", 0), Start(), ChildEnded("m", 1, SUCCESS, "mended", item=0))

    assert (execution.state, execution.outputs[0]) == (SUCCESS, ["mended"])


def test_a_child_that_a_map_tolerates_without_keeping_its_failure_is_not_reopened():
    execution = mapped(workflow([each("m", failureTolerance=1), {"id": "b"}], "m->b"), 1)
    tell(execution, Suspended("m", 1, ChildWait("child", "w"), 0), ChildEnded("m", 1, FAILED, error="no", item=0))

    with pytest.raises(InvalidTransition, match="the failure of m was handled"):
        tell(execution, ChildReopened("m", 1, "ann", 0))


# What successors see


def test_a_node_is_given_what_stood_when_it_started():
    execution = tolerant("b")

    tell(execution, Fix("m", "ann", "fixed", item=1))

    seen = inputs_of(execution, execution.works[1])
    assert seen == {"output": ["a", None, "c"], "errors": [{**ERROR, "index": 1}]}


def test_what_a_node_was_given_does_not_change_under_it():
    execution = tolerant("b")
    seen = inputs_of(execution, execution.works[1])

    tell(execution, Fix("m", "ann", "fixed", item=1))

    assert seen["output"] == ["a", None, "c"]


def test_a_node_that_starts_after_the_mending_is_given_what_was_mended():
    plan = workflow([each("m", **KEPT), {"id": "b"}, {"id": "c", "with": SEEN}], "m->b", "b->c")
    execution = mapped(plan, 1)
    tell(execution, bad("m", item=0), Fix("m", "ann", "fixed", item=0), ok("b"))

    assert inputs_of(execution, execution.works[2]) == {"output": ["fixed"], "errors": []}


def test_the_items_of_a_map_over_failures_stay_when_these_are_mended():
    nodes = [each("m", **KEPT), {"id": "n", "forEach": "{{ nodes.m.errors }}", "concurrency": 1}]
    execution, folded = live_and_folded(
        workflow(nodes, "m->n"), Expanded("m", 1, 2), bad("m", item=1), bad("m", item=0), Expanded("n", 1, 2),
        Requeue("m", "ann", 1), bad("m", item=1, attempt=2), Fix("m", "ann", item=0),
    )  # fmt: skip

    for known in (execution, folded):
        assert [(error["index"], error["attempts"]) for error in items_of(known, 1)] == [(1, 1), (0, 1)]


def test_the_items_of_a_map_over_outputs_stay_when_these_are_completed():
    nodes = [each("m", **KEPT), {"id": "n", "forEach": "{{ nodes.m.output }}", "concurrency": 1}]
    execution, folded = live_and_folded(
        workflow(nodes, "m->n"), Expanded("m", 1, 2), bad("m", item=0), ok("m", "b", item=1), Expanded("n", 1, 2),
        Fix("m", "ann", "fixed", item=0),
    )  # fmt: skip

    for known in (execution, folded):
        assert items_of(known, 1) == [None, "b"]
        assert known.outputs[0] == ["fixed", "b"]


def live_and_folded(plan: Plan, *signals: Signal) -> tuple[Execution, Execution]:
    """An execution that was told these, and another that knows of it by the log."""
    execution = accepted(plan)
    assert execution.accepted is not None
    events = tell(execution, Start(), *signals)
    return execution, refolded(execution, [execution.accepted, *events])
