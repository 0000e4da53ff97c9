"""`onFailure: cancel`: SPEC §3, 3."""

from ropewalk.core.commands import StopRun
from ropewalk.core.duration import SECOND
from ropewalk.core.events import StopRequested
from ropewalk.core.signals import Due, Start
from ropewalk.core.state import NodeState
from tests.core.executions import (
    FAILED,
    NOON,
    accepted,
    after,
    bad,
    commands,
    ok,
    once,
    refolded,
    runs,
    states,
    tell,
    workflow,
)


def test_cancel_on_failure_tells_running_nodes_to_stop_and_grants_them_a_grace():
    plan = workflow([once("a"), {"id": "b"}, {"id": "c"}], "b->c", onFailure="cancel")
    execution = after(plan)

    event = tell(execution, bad("a"))[-1]

    assert event == StopRequested(NOON, "a", NOON + 10 * SECOND)
    assert commands(execution, StopRun) == [StopRun("b", 1)]
    tell(execution, bad("b"))
    assert (execution.state, states(execution)["b"]) == (FAILED, NodeState.CANCELLED)


def test_cancel_on_failure_records_what_ends_well_within_the_grace_and_starts_nothing_more():
    plan = workflow([once("a"), {"id": "b"}, {"id": "c"}], "b->c", onFailure="cancel")
    execution = after(plan, bad("a"))

    tell(execution, ok("b", 1), at=NOON + SECOND)

    assert runs(execution) == []
    assert (execution.state, states(execution)["b"]) == (FAILED, NodeState.SUCCESS)


def test_cancel_on_failure_ends_when_the_grace_is_used_up():
    execution = after(workflow([once("a"), {"id": "b"}], onFailure="cancel", timeout="5s"), bad("a"))
    assert execution.wake_at == NOON + 10 * SECOND

    tell(execution, Due(), at=NOON + 10 * SECOND)

    assert (execution.state, states(execution)["b"]) == (FAILED, NodeState.CANCELLED)


def test_cancel_on_failure_is_folded_as_it_was_decided():
    execution = accepted(workflow([once("a"), {"id": "b"}], onFailure="cancel"))
    log = [execution.accepted, *tell(execution, Start(), bad("a"))]

    copy = refolded(execution, log)

    assert copy.wake_at == execution.wake_at
    assert StopRun("b", 1) in copy.outstanding()
