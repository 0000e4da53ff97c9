"""Corners the simulator and the checker found; each was wrong once."""

import pytest

from ropewalk.core.commands import CancelChild, PauseChild
from ropewalk.core.duration import HOUR
from ropewalk.core.errors import InvalidTransition
from ropewalk.core.events import ItemFailed, ItemsGivenUp
from ropewalk.core.execution.view import inputs_of
from ropewalk.core.rerun import carry_over
from ropewalk.core.signals import (
    ChildEnded,
    Due,
    Expanded,
    GiveUp,
    Pause,
    Requeue,
    Resume,
    Retry,
    Start,
    Suspended,
)
from ropewalk.core.state import ExecutionState, NodeState
from ropewalk.core.waits import Approval, ChildWait
from tests.core.executions import (
    FAILED,
    NOON,
    SUCCESS,
    WRONG,
    accepted,
    after,
    bad,
    commands,
    each,
    mapped,
    names,
    ok,
    once,
    refolded,
    runs,
    states,
    tell,
    workflow,
)

CHILD = ChildWait("c1", "other")


def test_a_node_that_begins_to_wait_while_the_execution_stops_does_not_keep_it():
    execution = after(workflow([once("a"), {"id": "b"}], onFailure="stop"), bad("a"))

    tell(execution, Suspended("b", 1, Approval("?")))

    assert (execution.state, states(execution)["b"]) == (FAILED, NodeState.CANCELLED)


def test_a_retry_that_was_started_before_a_fold_is_not_started_again():
    execution = accepted(workflow("a b", maxParallel=1))
    log = [execution.accepted, *tell(execution, Start(), bad("a"))]
    log += tell(execution, Due(), at=NOON + HOUR)
    copy = refolded(execution, log)
    copy.take_commands()

    tell(copy, Due(), at=NOON + HOUR)

    assert runs(copy) == []


def test_a_stop_waits_for_the_end_of_a_pause():
    execution = after(workflow([once("a"), {"id": "b"}], onFailure="stop"), Pause("ann"))

    tell(execution, bad("a"), ok("b"))
    assert execution.state is ExecutionState.PAUSED
    tell(execution, Resume("ann"))

    assert execution.state is FAILED


def test_a_failure_of_an_earlier_opening_does_not_stop_a_later_one():
    execution = after(workflow([once("a"), once("b")], onFailure="stop"), bad("a"), bad("b"))

    tell(execution, Requeue("a", "ann"), Start())

    assert runs(execution) == ["a#2"]


def test_a_requeued_item_that_fails_again_is_a_dead_letter_again():
    execution = mapped(workflow([each("m")]), 1)
    tell(execution, bad("m", item=0), Requeue("m", "ann", 0), Start())

    events = tell(execution, bad("m", WRONG, attempt=2, item=0))

    assert isinstance(events[0], ItemFailed)
    assert events[0].gave_up is not None


def test_failures_counted_anew_still_become_dead_letters_in_the_end():
    execution = mapped(workflow([each("m", failureTolerance=1, concurrency=1)]), 3)
    tell(execution, bad("m", item=0), bad("m", item=1))
    assert execution.state is FAILED
    tell(execution, Requeue("m", "ann", 0), Start(), bad("m", attempt=2, item=0), bad("m", item=2))

    assert execution.state is FAILED
    assert all(execution.maps[0].works[item].gave_up for item in (0, 1, 2))


def test_a_child_that_begins_under_a_paused_parent_is_paused():
    execution = after(workflow("a"), Pause("ann"))

    tell(execution, Suspended("a", 1, CHILD))

    assert commands(execution, PauseChild) == [PauseChild("c1")]


def test_a_child_that_ended_is_not_called_off():
    execution = after(workflow("a b"), Suspended("a", 1, CHILD))

    tell(execution, ChildEnded("a", 1, FAILED))

    assert commands(execution, CancelChild) == []


def test_overrides_outlive_an_end_that_came_before_they_were_tried():
    plan = workflow([once("a", **{"with": {"x": 1}})], timeout="1m")
    execution = after(plan, bad("a"), Requeue("a", "ann", overrides={"x": 2}))
    tell(execution, Pause("ann"), Resume("ann"), Start())

    assert inputs_of(execution, execution.works[0]) == {"x": 2}


def test_a_map_that_is_only_ready_again_cannot_be_given_up():
    execution = after(workflow([each("m")]), Expanded("m", 1, 1), bad("m", WRONG, item=0), Retry("ann"))

    with pytest.raises(InvalidTransition):
        execution.handle(GiveUp("m", "ann"), NOON)


def test_a_rerun_from_a_skipped_node_skips_it_again():
    plan = workflow("a b c", "a->b:x", "b->c")
    old = after(plan, ok("a", None, "y"))
    new = accepted(plan)

    new.apply([carry_over(old, "b", plan, NOON)])
    events = tell(new, Start())

    assert names(events) == ["ExecutionStarted", "NodesSkipped", "ExecutionSucceeded"]


def test_an_item_given_up_by_hand_is_requeued_also_once_its_map_has_succeeded():
    execution = mapped(workflow([each("m", failureTolerance=1), {"id": "b"}]), 2)
    tell(execution, GiveUp("m", "ann", 0), ok("m", item=1))
    assert states(execution)["m"] is NodeState.SUCCESS

    tell(execution, Requeue("m", "ann", 0), ok("m", "mended", attempt=2, item=0))

    assert execution.outputs[0] == ["mended", None]


def test_a_tolerated_failure_before_the_last_is_given_up_with_it():
    execution = mapped(workflow([each("m", failureTolerance=1)]), 2)

    events = tell(execution, bad("m", item=0), bad("m", item=1))

    assert [event.items for event in events if isinstance(event, ItemsGivenUp)] == [(0,)]


def test_a_child_told_to_stop_may_still_succeed():
    execution = after(workflow("a"), Suspended("a", 1, CHILD))
    tell(execution, Pause("ann"), Resume("ann"))

    tell(execution, ChildEnded("a", 1, SUCCESS, 7))

    assert (execution.state, execution.outputs[0]) == (SUCCESS, 7)
