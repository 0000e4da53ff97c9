"""Edges, order, failures and ends: SPEC §3, 1 to 6."""

import pytest

from ropewalk.core.commands import Finish, StopRun
from ropewalk.core.duration import HOUR, SECOND
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import NodeFailed, NodesSkipped, RunFailed
from ropewalk.core.signals import Abandon, Due, Lost, Retry, Returned, Start
from ropewalk.core.state import ExecutionState, GaveUp, NodeState
from tests.core.executions import (
    BOOM,
    FAILED,
    NOON,
    SLOW,
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
    started,
    states,
    tell,
    workflow,
)

DIAMOND = workflow("a b c d", "a->b", "a->c", "b->d", "c->d")


def test_an_empty_workflow_succeeds_at_once():
    execution = accepted(workflow(""))

    assert names(execution.handle(Start(), NOON)) == ["ExecutionStarted", "ExecutionSucceeded"]


def test_roots_start_together_in_document_order():
    assert started(workflow("c a b")) == ["c", "a", "b"]


def test_what_follows_from_reports_that_came_together_is_decided_once():
    execution = after(workflow("a b c d e", "a->c", "b->d", "a->e", "b->e"))

    events = execution.handle_all([ok("a"), ok("b")], NOON)

    assert names(events) == ["NodeSucceeded", "NodeSucceeded", "NodesStarted"]
    assert runs(execution) == ["c", "d", "e"]


def test_reports_that_came_together_lead_where_they_lead_one_by_one():
    reports = [bad("b", error=WRONG), ok("c"), ok("c")]
    together, apart = after(DIAMOND, ok("a")), after(DIAMOND, ok("a"), *reports)

    together.handle_all(reports, NOON)

    assert states(together) == states(apart)
    assert together.state is apart.state is ExecutionState.FAILED


def test_a_node_starts_as_soon_as_its_own_predecessors_are_done():
    execution = after(workflow("a b c d", "a->c", "b->d"))

    tell(execution, ok("a"))

    assert runs(execution) == ["c"]


def test_a_join_waits_for_every_predecessor():
    execution = after(DIAMOND, ok("a"), ok("b"))
    assert runs(execution) == []

    tell(execution, ok("c"))

    assert runs(execution) == ["d"]


def test_successors_of_one_node_start_in_document_order():
    execution = after(workflow("a b c d", "a->d", "a->c", "a->b"))

    tell(execution, ok("a"))

    assert runs(execution) == ["b", "c", "d"]


def test_the_last_node_ends_the_execution_with_the_outputs_of_the_sinks():
    execution = after(DIAMOND, ok("a"), ok("b"), ok("c"))

    events = tell(execution, ok("d", {"x": 1}))

    assert names(events) == ["NodeSucceeded", "ExecutionSucceeded"]
    assert events[-1].output == {"d": {"x": 1}}
    assert commands(execution, Finish) == [Finish(SUCCESS)]


def test_the_output_expression_makes_the_output():
    execution = after(workflow("a b", "a->b", output="{{ nodes.a.output.x + 1 }}"), ok("a", {"x": 1}))

    assert tell(execution, ok("b"))[-1].output == 2


def test_an_output_expression_that_fails_fails_the_execution():
    execution = after(workflow("a", output="{{ nodes.a.output.x + 1 }}"))

    events = tell(execution, ok("a", {}))

    assert execution.state is FAILED
    assert "output" in events[-1].error


# Ports and skips


def test_only_edges_of_the_port_taken_are_live():
    execution = after(workflow("a yes no", "a->yes:true", "a->no:false"))

    tell(execution, ok("a", None, "true"))

    assert runs(execution) == ["yes"]
    assert states(execution)["no"] is NodeState.SKIPPED


def test_skips_spread_as_one_event_and_stop_at_a_join_with_a_live_edge():
    plan = workflow("a b c d e join", "a->b:no", "b->c", "c->d", "d->join", "a->e", "e->join")
    execution = after(plan)

    events = tell(execution, ok("a", None, "yes"))

    assert [event.nodes for event in events if isinstance(event, NodesSkipped)] == [("b", "c", "d")]
    tell(execution, ok("e"))
    assert states(execution)["join"] is NodeState.RUNNING


def test_a_join_of_dead_edges_only_is_skipped():
    execution = after(workflow("a b c join", "a->b:x", "a->c:y", "b->join", "c->join"), ok("a"))

    assert states(execution)["join"] is NodeState.SKIPPED
    assert execution.state is SUCCESS


def test_an_error_edge_is_dead_when_its_source_succeeds():
    execution = after(workflow("a alert", "a->alert:error"), ok("a", None, "error"))

    assert states(execution)["alert"] is NodeState.SKIPPED


# Failures


def test_a_transient_failure_is_tried_again_after_a_growing_delay():
    execution = after(workflow([{"id": "a", "retry": {"maxAttempts": 3, "delay": "1s", "jitter": 0}}]))

    first = tell(execution, bad("a"))
    assert first == [RunFailed(NOON, "a", 1, BOOM, NOON + SECOND)]
    tell(execution, Due(), at=NOON + SECOND)
    assert runs(execution) == ["a#2"]

    second = tell(execution, bad("a", attempt=2), at=NOON + SECOND)

    assert second[0].retry_at == NOON + 3 * SECOND


def test_nothing_is_tried_again_before_its_time():
    execution = after(workflow("a"), bad("a"))

    assert tell(execution, Due(), at=NOON + SECOND - 1) == []


def test_retry_after_wins_when_it_is_longer():
    error = RunError(ErrorType.TRANSIENT, "busy", retry_after=90.0)

    assert tell(after(workflow("a")), bad("a", error))[0].retry_at == NOON + 90 * SECOND


def test_a_permanent_failure_is_never_tried_again():
    events = tell(after(workflow("a")), bad("a", WRONG))

    assert names(events) == ["NodeFailed", "ExecutionFailed"]
    assert events[0].gave_up is GaveUp.PERMANENT_ERROR


def test_a_timeout_is_tried_again():
    assert isinstance(tell(after(workflow("a")), bad("a", SLOW))[0], RunFailed)


def test_an_open_circuit_gives_up_as_such():
    error = RunError(ErrorType.CIRCUIT_OPEN, "open for an hour")

    assert tell(after(workflow("a")), bad("a", error))[0].gave_up is GaveUp.CIRCUIT_BREAKER


def test_the_attempts_used_up_make_a_dead_letter_with_the_inputs():
    execution = after(workflow([once("a")]))

    event = tell(execution, bad("a"))[0]

    assert event == NodeFailed(NOON, "a", BOOM, 1, gave_up=GaveUp.MAX_RETRIES)


def test_an_error_edge_handles_a_failure_and_makes_no_dead_letter():
    execution = after(workflow([once("a"), {"id": "b"}, {"id": "alert"}], "a->b", "a->alert:error"))

    event = tell(execution, bad("a"))[0]

    assert (event.handled, event.gave_up) == (True, None)
    assert runs(execution) == ["alert"]
    assert states(execution)["b"] is NodeState.SKIPPED
    tell(execution, ok("alert"))
    assert execution.state is SUCCESS


def test_what_is_behind_an_unhandled_failure_is_blocked_and_the_rest_goes_on():
    execution = after(workflow([once("a"), {"id": "b"}, {"id": "c"}, {"id": "d"}], "a->b", "c->d"), bad("a"))

    tell(execution, ok("c"), ok("d"))

    assert execution.state is FAILED
    assert states(execution) == {
        "a": NodeState.FAILED,
        "b": NodeState.BLOCKED,
        "c": NodeState.SUCCESS,
        "d": NodeState.SUCCESS,
    }


def test_stop_lets_running_nodes_finish_and_starts_nothing_more():
    plan = workflow([once("a"), {"id": "b"}, {"id": "c"}], "b->c", onFailure="stop")
    execution = after(plan, bad("a"))
    assert execution.state is ExecutionState.RUNNING

    tell(execution, ok("b"))

    assert runs(execution) == []
    assert execution.state is FAILED
    assert states(execution)["c"] is NodeState.CANCELLED
    assert states(execution)["b"] is NodeState.SUCCESS


def test_stop_starts_no_retry_either():
    execution = after(workflow([once("a"), {"id": "b"}], onFailure="stop"), bad("a"))

    event = tell(execution, bad("b"))[0]

    assert (event.retry_at, execution.state, states(execution)["b"]) == (None, FAILED, NodeState.CANCELLED)


def test_the_failure_message_names_the_node_and_the_reason():
    events = tell(after(workflow([once("a"), once("b")])), bad("a"), bad("b", WRONG))

    assert events[-1].error == "a: boom (and 1 more)"


# Late and lost


@pytest.mark.parametrize("late", [ok("a"), bad("a"), Lost("a", 1), Returned("a", 1)])
def test_a_late_report_changes_nothing(late):
    execution = after(workflow("a b", "a->b"), ok("a"))

    assert execution.handle(late, NOON) == []


@pytest.mark.parametrize("report", [ok("a", attempt=2), ok("nobody"), ok("a", item=3), ok("b")])
def test_a_report_about_what_is_not_under_way_changes_nothing(report):
    execution = after(workflow("a b", "a->b"))

    assert execution.handle(report, NOON) == []


def test_the_first_lost_attempt_is_repeated_at_once_and_later_ones_after_a_delay():
    execution = after(workflow("a"))

    tell(execution, Lost("a", 1))
    assert runs(execution) == ["a#2"]

    assert tell(execution, Lost("a", 2))[0].retry_at > NOON


def test_a_node_that_kills_its_workers_becomes_a_dead_letter():
    execution = after(workflow([{"id": "a", "retry": {"maxAttempts": 2}}]), Lost("a", 1))

    event = tell(execution, Lost("a", 2))[0]

    assert (event.gave_up, event.error.message) == (GaveUp.MAX_RETRIES, "worker lost")


def test_an_attempt_handed_back_starts_again_under_its_number_and_uses_none_up():
    execution = after(workflow([once("a")]))

    tell(execution, Returned("a", 1))

    assert runs(execution) == ["a"]
    assert tell(execution, bad("a"))[0].gave_up is GaveUp.MAX_RETRIES


def test_time_never_goes_back_in_a_log():
    execution = after(workflow("a b"), ok("a"), at=NOON + HOUR)

    assert tell(execution, ok("b"), at=NOON)[0].at == NOON + HOUR


# Limits


def test_max_parallel_holds_back_what_is_ready_and_starts_it_in_order():
    execution = accepted(workflow("a b c", maxParallel=2))

    tell(execution, Start())
    assert (runs(execution), states(execution)["c"]) == (["a", "b"], NodeState.READY)
    tell(execution, ok("b"))

    assert runs(execution) == ["c"]


def test_no_more_starts_than_the_worker_has_hands_for():
    execution = accepted(workflow("a b c"))
    execution.room = 1

    tell(execution, Start())
    assert (runs(execution), states(execution)["b"]) == (["a"], NodeState.READY)
    execution.room = 2
    tell(execution, Due())

    assert runs(execution) == ["b", "c"]


def test_an_execution_that_cannot_be_dispatched_fails_and_can_be_retried():
    execution = accepted(workflow("a"))

    tell(execution, Abandon("no such version"))
    assert (execution.state, states(execution)["a"]) == (FAILED, NodeState.CANCELLED)

    tell(execution, Retry("ann"), Start())

    assert runs(execution) == ["a"]


def test_nothing_is_told_to_stop_unless_it_must():
    execution = after(workflow([once("a"), {"id": "b"}], onFailure="stop"))

    tell(execution, bad("a"))

    assert commands(execution, StopRun) == []
