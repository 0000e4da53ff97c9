"""What people may ask, and reopening: SPEC §3, 11, 13 to 15."""

import pytest

from ropewalk.core.commands import StopRun
from ropewalk.core.duration import HOUR, MINUTE, SECOND
from ropewalk.core.errors import InvalidTransition, NotFound
from ropewalk.core.events import NodeRequeued
from ropewalk.core.execution.view import inputs_of
from ropewalk.core.signals import (
    BY_PARENT,
    Abandon,
    Cancel,
    Due,
    Fix,
    GiveUp,
    Pause,
    Requeue,
    Resume,
    Retry,
    Start,
    Suspended,
)
from ropewalk.core.state import ExecutionState, GaveUp, NodeState
from ropewalk.core.waits import Approval, Timer
from tests.core.executions import (
    CANCELLED,
    FAILED,
    NOON,
    SUCCESS,
    WRONG,
    accepted,
    after,
    bad,
    commands,
    names,
    ok,
    once,
    runs,
    states,
    tell,
    workflow,
)

CHAIN = workflow("a b", "a->b")
PAUSED, RUNNING, PENDING, TIMEOUT = (
    ExecutionState.PAUSED,
    ExecutionState.RUNNING,
    ExecutionState.PENDING,
    ExecutionState.TIMEOUT,
)


# Pause and resume


def test_a_paused_execution_records_results_and_starts_nothing():
    execution = after(CHAIN, Pause("ann"))

    tell(execution, ok("a"))

    assert (runs(execution), states(execution)) == ([], {"a": NodeState.SUCCESS, "b": NodeState.READY})


def test_resume_starts_what_became_ready_meanwhile():
    execution = after(CHAIN, Pause("ann"), ok("a"))

    tell(execution, Resume("ann"), Start())

    assert runs(execution) == ["b"]


def test_a_timer_due_in_the_pause_fires_once():
    execution = after(CHAIN, Suspended("a", 1, Timer(NOON + MINUTE)), Pause("ann"))

    assert names(tell(execution, Due(), at=NOON + HOUR)) == ["NodeSucceeded"]
    tell(execution, Resume("ann"), Start(), Due(), at=NOON + HOUR)

    assert runs(execution) == ["b"]


def test_a_retry_due_in_the_pause_starts_after_it():
    execution = after(workflow("a"), bad("a"), Pause("ann"))

    tell(execution, Due(), at=NOON + HOUR)
    assert runs(execution) == []
    tell(execution, Resume("ann"), Start(), at=NOON + HOUR)

    assert runs(execution) == ["a#2"]


def test_a_retry_due_in_the_pause_starts_after_its_time_though_the_clock_goes_back():
    execution = after(workflow("a"), bad("a"), Pause("ann"))
    tell(execution, Due(), at=NOON + HOUR)

    events = tell(execution, Resume("ann"), Start(), at=NOON)

    assert {event.at for event in events} == {NOON + HOUR}


def test_an_execution_paused_before_its_start_goes_back_to_pending():
    execution = accepted(CHAIN)

    tell(execution, Pause("ann"))
    assert (execution.state, execution.handle(Start(), NOON)) == (PAUSED, [])
    tell(execution, Resume("ann"))

    assert execution.state is PENDING
    tell(execution, Start())
    assert runs(execution) == ["a"]


def test_the_pause_of_a_parent_outweighs_that_of_a_person_and_keeps_the_time_that_was_left():
    plan = workflow([{"id": "a"}], timeout="10m")
    execution = after(plan)
    tell(execution, Pause("ann"), at=NOON + MINUTE)

    (paused,) = tell(execution, Pause(BY_PARENT), at=NOON + 2 * MINUTE)
    assert tell(execution, Pause("ann"), Pause(BY_PARENT), at=NOON + 3 * MINUTE) == []
    (resumed,) = tell(execution, Resume(BY_PARENT), at=NOON + 4 * MINUTE)

    assert (paused.by, resumed.deadline) == (BY_PARENT, NOON + 13 * MINUTE)


def test_a_paused_execution_ends_only_after_resume():
    execution = after(workflow("a"), Pause("ann"), ok("a"))
    assert execution.state is PAUSED

    tell(execution, Resume("ann"))

    assert execution.state is SUCCESS


@pytest.mark.parametrize(
    ("plan", "signals", "verb"),
    [
        (CHAIN, [Pause("x")], Pause("y")),
        (CHAIN, [], Resume("y")),
        (CHAIN, [Cancel("x")], Cancel("y")),
        (workflow("a"), [Cancel("x"), ok("a")], Cancel("y")),
    ],
)
def test_a_verb_whose_effect_holds_already_changes_nothing(plan, signals, verb):
    assert after(plan, *signals).handle(verb, NOON) == []


@pytest.mark.parametrize(
    ("signals", "verb"),
    [
        ([ok("a")], Pause("x")),
        ([ok("a")], Resume("x")),
        ([ok("a")], Cancel("x")),
        ([ok("a")], Retry("x")),
        ([], Retry("x")),
        ([], Requeue("a", "x")),
        ([], Fix("a", "x")),
        ([ok("a")], GiveUp("a", "x")),
        ([], Abandon("x")),
        ([Cancel("x")], Pause("x")),
        ([Cancel("x")], Resume("x")),
        ([Cancel("x")], GiveUp("a", "x")),
    ],
)
def test_a_verb_at_the_wrong_time_is_refused_and_changes_nothing(signals, verb):
    execution = after(workflow("a"), *signals)
    before = (execution.seq, execution.state)

    with pytest.raises(InvalidTransition):
        execution.handle(verb, NOON)
    assert (execution.seq, execution.state) == before


@pytest.mark.parametrize("verb", [Requeue("z", "x"), Fix("z", "x"), GiveUp("z", "x")])
def test_a_verb_about_an_unknown_node_is_not_found(verb):
    with pytest.raises(NotFound):
        after(CHAIN).handle(verb, NOON)


# Cancel


def test_cancel_tells_running_nodes_to_stop_and_waits_for_them():
    execution = after(CHAIN)

    tell(execution, Cancel("ann", "wrong order"))
    assert commands(execution, StopRun) == [StopRun("a", 1)]
    assert execution.state is RUNNING
    tell(execution, ok("a"))

    assert (execution.state, states(execution)) == (CANCELLED, {"a": NodeState.SUCCESS, "b": NodeState.CANCELLED})


def test_cancel_ends_after_the_grace_though_nodes_still_run():
    execution = after(CHAIN, Cancel("ann"))

    assert tell(execution, Due(), at=NOON + 10 * SECOND - 1) == []
    tell(execution, Due(), at=NOON + 10 * SECOND)

    assert execution.state is CANCELLED
    assert execution.handle(ok("a"), NOON + 11 * SECOND) == []


def test_a_failure_within_the_grace_makes_no_dead_letter():
    execution = after(workflow("a"), Cancel("ann"))

    events = tell(execution, bad("a", WRONG))

    assert names(events) == ["RunFailed", "ExecutionCancelled"]


@pytest.mark.parametrize("signals", [[], [Pause("ann")]])
def test_cancel_of_what_never_started_ends_at_once(signals):
    execution = accepted(CHAIN)

    tell(execution, *signals, Cancel("ann"))

    assert execution.state is CANCELLED


def test_cancel_drops_waits_at_once():
    execution = after(CHAIN, Suspended("a", 1, Approval("?")))

    tell(execution, Cancel("ann"))

    assert (execution.state, states(execution)["a"]) == (CANCELLED, NodeState.CANCELLED)


def test_cancel_may_overtake_a_stop():
    execution = after(workflow([once("a"), {"id": "b"}], onFailure="stop"), bad("a"))

    tell(execution, Cancel("ann"), ok("b"))

    assert execution.state is CANCELLED


# Time limits


def test_an_execution_times_out_with_the_same_grace():
    execution = after(workflow("a b", "a->b", timeout="1m"))

    tell(execution, Due(), at=NOON + MINUTE)
    assert commands(execution, StopRun) == [StopRun("a", 1)]
    tell(execution, Due(), at=NOON + MINUTE + 10 * SECOND)

    assert (execution.state, states(execution)["b"]) == (TIMEOUT, NodeState.CANCELLED)


def test_the_time_limit_does_not_run_in_the_queue():
    execution = accepted(workflow("a", timeout="1m"))

    tell(execution, Due(), at=NOON + HOUR)
    tell(execution, Start(), at=NOON + HOUR)

    assert execution.deadline == NOON + HOUR + MINUTE


def test_the_time_limit_stands_still_in_a_pause():
    execution = after(workflow("a", timeout="1m"))

    tell(execution, Pause("ann"), at=NOON + 20 * SECOND)
    assert execution.wake_at is None
    tell(execution, Resume("ann"), at=NOON + HOUR)

    assert execution.deadline == NOON + HOUR + 40 * SECOND


def test_a_timed_out_execution_can_be_retried_with_a_fresh_limit():
    execution = after(workflow("a", timeout="1m"))
    tell(execution, Due(), at=NOON + MINUTE)
    tell(execution, Due(), at=NOON + 2 * MINUTE)
    execution.take_commands()

    tell(execution, Retry("ann"), Start(), at=NOON + HOUR)

    assert runs(execution) == ["a#2"]
    assert execution.deadline == NOON + HOUR + MINUTE


def test_a_time_limit_that_passes_during_a_stop_ends_it():
    execution = after(workflow([once("a"), {"id": "b"}], onFailure="stop", timeout="1m"), bad("a"))

    tell(execution, Due(), at=NOON + MINUTE)
    tell(execution, Due(), at=NOON + MINUTE + 10 * SECOND)

    assert execution.state is TIMEOUT


@pytest.mark.parametrize("edge", ["a->b", "a->b:error"])
def test_a_last_attempt_that_the_time_limit_stopped_has_not_failed(edge: str):
    execution = after(workflow([once("a"), {"id": "b"}], edge, timeout="1m"))
    tell(execution, Due(), at=NOON + MINUTE)

    tell(execution, bad("a"), at=NOON + MINUTE)

    assert (execution.state, states(execution)["a"]) == (TIMEOUT, NodeState.CANCELLED)
    tell(execution, Retry("ann"), Start(), at=NOON + HOUR)
    assert runs(execution) == ["a#2"]


# Reopening


def test_retry_repeats_unhandled_failures_and_keeps_the_rest():
    plan = workflow([once("a"), once("b"), {"id": "c"}, {"id": "d"}], "a->d", "b->c:error")
    execution = after(plan, bad("a"), bad("b"), ok("c"))
    assert execution.state is FAILED

    tell(execution, Retry("ann"))
    assert execution.state is PENDING
    tell(execution, Start())

    assert runs(execution) == ["a#2"]
    assert states(execution)["b"] is NodeState.FAILED


def test_attempt_numbers_go_on_and_the_budget_restarts():
    execution = after(
        workflow([{"id": "a", "retry": {"maxAttempts": 1}}]), bad("a"), Retry("ann"), Start(), bad("a", attempt=2)
    )
    assert execution.state is FAILED

    tell(execution, Retry("ann"), Start())

    assert runs(execution) == ["a#3"]


def test_requeue_repeats_its_node_only_and_applies_the_overrides():
    plan = workflow([once("a", **{"with": {"x": 1, "y": 2}}), once("b")])
    execution = after(plan, bad("a"), bad("b"))

    events = tell(execution, Requeue("a", "ann", overrides={"y": 3}), Start())
    assert NodeRequeued(NOON, "a", "ann", overrides={"y": 3}) in events
    assert inputs_of(execution, execution.works[0]) == {"x": 1, "y": 3}
    tell(execution, ok("a", attempt=2))

    assert execution.state is FAILED


def test_requeue_acts_in_place_while_the_execution_runs():
    execution = after(workflow([once("a"), {"id": "b"}]), bad("a"))

    tell(execution, Requeue("a", "ann"))

    assert (runs(execution), execution.state) == (["a#2"], RUNNING)


def test_two_dead_letters_can_be_requeued_one_after_the_other():
    execution = after(workflow([once("a"), once("b")]), bad("a"), bad("b"))

    tell(execution, Requeue("a", "ann"), Requeue("b", "ann"), Start())

    assert runs(execution) == ["a#2", "b#2"]


def test_a_dead_letter_is_requeued_once():
    execution = after(workflow([once("a")]), bad("a"), Requeue("a", "ann"))

    with pytest.raises(InvalidTransition, match="no dead letter"):
        execution.handle(Requeue("a", "bob"), NOON)


def test_fix_supplies_the_output_and_goes_on():
    execution = after(workflow([once("a"), {"id": "b"}], "a->b"), bad("a"))

    tell(execution, Fix("a", "ann", {"x": 1}), Start())

    assert (runs(execution), execution.outputs[0]) == (["b"], {"x": 1})


def test_fix_may_take_a_port():
    execution = after(workflow([once("a"), {"id": "b"}, {"id": "c"}], "a->b:yes", "a->c:no"), bad("a"))

    tell(execution, Fix("a", "ann", ports=("no",)), Start())

    assert runs(execution) == ["c"]


def test_a_reopening_also_starts_cancelled_nodes():
    plan = workflow([once("a"), {"id": "b"}, {"id": "c"}], "b->c", onFailure="stop")
    execution = after(plan, bad("a"), ok("b"))

    tell(execution, Retry("ann"), Start())

    assert sorted(runs(execution)) == ["a#2", "c"]


def test_a_dead_letter_of_a_stopped_execution_can_be_requeued():
    execution = after(workflow([once("a")], onFailure="stop"), bad("a"))

    tell(execution, Requeue("a", "ann"), Start())

    assert runs(execution) == ["a#2"]


@pytest.mark.parametrize("verb", [Requeue("a", "x"), Fix("a", "x"), Retry("x")])
def test_a_cancelled_execution_is_final(verb):
    execution = after(workflow([once("a"), {"id": "b"}]), bad("a"), Cancel("ann"), ok("b"))
    assert execution.state is CANCELLED

    with pytest.raises(InvalidTransition):
        execution.handle(verb, NOON)


def test_a_run_given_up_by_hand_becomes_a_dead_letter_even_with_an_error_edge():
    execution = after(workflow("a alert", "a->alert:error"))

    event = tell(execution, GiveUp("a", "ann", reason="hopeless"))[0]

    assert (event.gave_up, event.handled, event.error.message) == (GaveUp.MANUAL, False, "hopeless")
    assert commands(execution, StopRun) == [StopRun("a", 1)]


def test_a_retry_that_waits_can_be_given_up_by_hand():
    execution = after(workflow("a"), bad("a"))

    tell(execution, GiveUp("a", "ann"))

    assert execution.state is FAILED
