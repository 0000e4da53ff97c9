"""Executions that others wait for: SPEC §3, 9."""

import pytest

from ropewalk.core.acceptance import Version
from ropewalk.core.commands import CancelChild, Finish, PauseChild, ReopenChild, ResumeChild, StartChild
from ropewalk.core.duration import MINUTE
from ropewalk.core.errors import InvalidTransition
from ropewalk.core.events import ExecutionAccepted, ExecutionReopened, Parent
from ropewalk.core.kinship import child_request, never_began, reopening_of_child
from ropewalk.core.signals import (
    Abandon,
    Cancel,
    ChildEnded,
    ChildReopened,
    Due,
    Pause,
    Resume,
    Retry,
    Signal,
    Start,
    Suspended,
)
from ropewalk.core.state import ExecutionState, NodeState
from ropewalk.core.waits import ChildWait
from tests.core.executions import (
    FAILED,
    NOON,
    SUCCESS,
    accepted,
    after,
    bad,
    commands,
    each,
    mapped,
    names,
    ok,
    once,
    runs,
    states,
    tell,
    waiting,
    workflow,
)

CHAIN = workflow("a b", "a->b")
CHILD = ChildWait("c1", "refund", {"order": 7})


def test_a_child_is_started_once_the_wait_is_recorded():
    execution = accepted(CHAIN)

    tell(execution, Start(), Suspended("a", 1, CHILD))

    assert commands(execution, StartChild) == [StartChild("a", 1, CHILD)]
    assert StartChild("a", 1, CHILD) in execution.outstanding()


def test_the_output_of_the_child_is_the_output_of_the_node():
    execution = waiting(CHAIN, CHILD)

    tell(execution, ChildEnded("a", 1, SUCCESS, {"x": 1}))

    assert execution.outputs[0] == {"x": 1}


RETRIED = workflow([{"id": "a", "retry": {"maxAttempts": 2, "delay": "5s", "jitter": 1}}, {"id": "b"}], "a->b")


@pytest.mark.parametrize("state", [FAILED, ExecutionState.TIMEOUT])
def test_a_failed_child_is_followed_by_another_if_its_node_says_retry(state: ExecutionState):
    execution = waiting(RETRIED, CHILD)

    event = tell(execution, ChildEnded("a", 1, state, error="pay: boom", jitter=0.5))[0]

    assert (event.retry_at, event.child) == (NOON + 7_500_000, state)
    tell(execution, Due(), Start(), at=event.retry_at)
    assert runs(execution) == ["a#2"]
    tell(execution, Suspended("a", 2, ChildWait("c2", "refund")), at=event.retry_at)
    assert [each.wait.child for each in commands(execution, StartChild)] == ["c2"]


def test_a_node_whose_children_used_up_its_attempts_fails_without_a_dead_letter():
    execution = waiting(RETRIED, CHILD)
    tell(execution, ChildEnded("a", 1, FAILED))
    tell(execution, Due(), Start(), Suspended("a", 2, ChildWait("c2", "refund")), at=NOON + MINUTE)

    event = tell(execution, ChildEnded("a", 2, FAILED), at=NOON + MINUTE)[0]

    assert (event.gave_up, event.child, execution.state) == (None, FAILED, FAILED)
    tell(execution, Retry("ann"), Start(), at=NOON + MINUTE)
    assert commands(execution, ReopenChild) == [ReopenChild("c2")]


def test_a_child_that_was_cancelled_is_not_replaced():
    execution = waiting(RETRIED, CHILD)

    tell(execution, ChildEnded("a", 1, ExecutionState.CANCELLED))

    assert execution.state is FAILED


def test_a_failed_item_is_followed_by_another_child_too():
    plan = workflow([{"id": "a", "forEach": "{{ input }}", "retry": {"maxAttempts": 2, "jitter": 0}}])
    execution = mapped(plan, 1)
    tell(execution, Suspended("a", 1, CHILD, item=0), ChildEnded("a", 1, FAILED, item=0))
    runs(execution)

    tell(execution, Due(), Start(), at=NOON + MINUTE)

    assert runs(execution) == ["a[0]#2"]


def test_a_child_that_another_follows_cannot_be_reopened():
    execution = waiting(RETRIED, CHILD)
    tell(execution, ChildEnded("a", 1, FAILED))

    with pytest.raises(InvalidTransition, match="does not depend on that child any more"):
        tell(execution, ChildReopened("a", 1, "ann"))


def test_a_failed_child_fails_the_node_without_retry_or_dead_letter():
    execution = waiting(CHAIN, CHILD)

    event = tell(execution, ChildEnded("a", 1, FAILED, error="pay: boom"))[0]

    assert (event.gave_up, event.handled, execution.state) == (None, False, FAILED)
    assert "pay: boom" in event.error.message


def test_a_child_reopened_by_someone_reopens_its_parent():
    execution = waiting(CHAIN, CHILD)
    tell(execution, ChildEnded("a", 1, FAILED))

    events = tell(execution, ChildReopened("a", 1, "ann"))

    assert names(events) == ["ExecutionReopened", "ChildResumed"]
    tell(execution, Start(), ChildEnded("a", 1, SUCCESS, 1), Start())
    assert runs(execution) == ["b"]


def test_a_child_whose_failure_was_handled_cannot_be_reopened():
    execution = waiting(workflow("a b", "a->b:error"), CHILD)
    tell(execution, ChildEnded("a", 1, FAILED))

    with pytest.raises(InvalidTransition, match="handled"):
        execution.handle(ChildReopened("a", 1, "ann"), NOON)


def test_retrying_the_parent_reopens_the_child():
    execution = waiting(CHAIN, CHILD)
    tell(execution, ChildEnded("a", 1, FAILED))

    tell(execution, Retry("ann"), Start())

    assert commands(execution, ReopenChild) == [ReopenChild("c1")]
    tell(execution, ChildEnded("a", 1, SUCCESS))
    assert states(execution)["a"] is NodeState.SUCCESS


def test_retrying_the_parent_of_a_cancelled_child_starts_another():
    execution = waiting(CHAIN, CHILD)
    tell(execution, ChildEnded("a", 1, ExecutionState.CANCELLED))

    tell(execution, Retry("ann"), Start())

    assert runs(execution) == ["a#2"]


def test_children_in_a_map_are_reopened_with_their_parent():
    execution = mapped(workflow([each("m")]), 2)
    tell(execution, Suspended("m", 1, CHILD, item=0), ok("m", item=1), ChildEnded("m", 1, FAILED, item=0))
    assert execution.state is FAILED

    tell(execution, Retry("ann"), Start(), ChildEnded("m", 1, SUCCESS, "done", item=0))

    assert (execution.state, execution.outputs[0]) == (SUCCESS, ["done", None])


def test_a_child_in_a_map_reopened_by_someone_is_waited_for_again():
    execution = mapped(workflow([each("m")]), 1)
    tell(execution, Suspended("m", 1, CHILD, item=0), ChildEnded("m", 1, FAILED, item=0))

    tell(execution, ChildReopened("m", 1, "ann", item=0), Start(), ChildEnded("m", 1, SUCCESS, "x", item=0))

    assert (execution.state, execution.outputs[0]) == (SUCCESS, ["x"])


def test_children_are_paused_resumed_and_cancelled_with_their_parent():
    execution = waiting(CHAIN, CHILD)

    tell(execution, Pause("ann"))
    assert commands(execution, PauseChild) == [PauseChild("c1")]
    tell(execution, Resume("ann"))
    assert commands(execution, ResumeChild) == [ResumeChild("c1")]
    tell(execution, Cancel("ann"))
    assert commands(execution, CancelChild) == [CancelChild("c1")]

    tell(execution, ChildEnded("a", 1, ExecutionState.CANCELLED))
    assert execution.state is ExecutionState.CANCELLED


def test_a_child_that_is_not_waited_for_any_more_is_called_off():
    plan = workflow([{"id": "a", "timeout": "1m"}, {"id": "b"}], "a->b:expired")
    execution = waiting(plan, CHILD)

    tell(execution, Due(), at=NOON + MINUTE)

    assert commands(execution, CancelChild) == [CancelChild("c1")]


@pytest.mark.parametrize("ending", [[bad("f")], [ok("f"), Due()]], ids=["stop", "time limit"])
@pytest.mark.parametrize("edge", ["c->d", "c->d:error"])
def test_a_child_called_off_with_its_parent_has_not_failed(ending: list[Signal], edge: str):
    plan = workflow([once("f"), {"id": "c"}, {"id": "d"}], edge, onFailure="stop", timeout="1m")
    execution = after(plan, Suspended("c", 1, CHILD))
    tell(execution, *ending, at=NOON + MINUTE)

    tell(execution, ChildEnded("c", 1, ExecutionState.CANCELLED), at=NOON + MINUTE)

    assert states(execution)["c"] is NodeState.CANCELLED
    tell(execution, Retry("ann"), Start(), at=NOON + MINUTE)
    assert "c#2" in runs(execution)


# What its family ought to know follows from the log alone


def test_a_paused_parent_has_its_child_paused_and_a_resumed_one_has_it_resumed():
    execution = waiting(CHAIN, CHILD)

    tell(execution, Pause("ann"))
    paused = execution.outstanding()
    tell(execution, Resume("ann"))

    assert PauseChild("c1") in paused
    assert ResumeChild("c1") in execution.outstanding()


def test_a_parent_that_is_ending_has_its_child_cancelled_also_when_it_is_over():
    execution = waiting(CHAIN, CHILD)

    tell(execution, Cancel("ann"))
    ending = execution.outstanding()
    tell(execution, Due(), at=NOON + MINUTE)

    assert CancelChild("c1") in ending
    assert {CancelChild("c1"), Finish(ExecutionState.CANCELLED)} <= {*execution.outstanding()}


def test_a_child_is_reopened_once_for_each_end_that_its_parent_knows():
    execution = waiting(CHAIN, CHILD)
    tell(execution, ChildEnded("a", 1, FAILED, opening=0))

    tell(execution, Retry("ann"), Start())

    assert ReopenChild("c1", 0) in execution.outstanding()
    assert not tell(execution, ChildEnded("a", 1, FAILED, opening=0))
    assert tell(execution, ChildEnded("a", 1, FAILED, opening=1))


def test_an_end_that_stands_is_taken_though_it_is_known():
    execution = waiting(CHAIN, CHILD)
    tell(execution, ChildEnded("a", 1, FAILED, opening=0))
    tell(execution, Retry("ann"), Start())

    assert tell(execution, ChildEnded("a", 1, FAILED, opening=0, stands=True))


def test_a_retry_for_an_end_of_long_ago_changes_nothing():
    execution = after(workflow([once("a")]), bad("a"))
    tell(execution, Retry("parent", 0), Start(), bad("a", attempt=2))

    assert not tell(execution, Retry("parent", 0))
    assert execution.take_commands()[-1] == Finish(FAILED)
    assert tell(execution, Retry("parent", 1))


def test_a_child_that_was_cancelled_is_not_waited_for_again():
    execution = waiting(CHAIN, CHILD)
    tell(execution, ChildEnded("a", 1, ExecutionState.CANCELLED, opening=0))

    with pytest.raises(InvalidTransition, match="final"):
        tell(execution, ChildReopened("a", 1, "ann"))


def test_the_request_of_a_child_goes_on_from_its_parent():
    of = ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash", env={"A": "b"}, priority=7, trace="t", rules=2)
    version = Version("w2", 3, "hash", CHAIN)

    request = child_request(of, StartChild("a", 2, CHILD, 4), version)

    assert (request.execution, request.input, request.version) == ("c1", {"order": 7}, version)
    assert (request.env, request.priority, request.trace) == ({"A": "b"}, 7, "t")
    assert request.parent == Parent("e1", "a", 2, 4, ("e1",))


def test_a_child_nested_too_deep_is_refused():
    above = tuple(f"e{number}" for number in range(15))
    of = ExecutionAccepted(NOON, "e15", "default", "test", 1, "hash", parent=Parent("e14", "a", 1, None, above))

    with pytest.raises(InvalidTransition, match="more than 16 deep"):
        child_request(of, StartChild("a", 1, CHILD), Version("w2", 1, "hash", CHAIN))


def test_a_child_that_is_reopened_says_so_to_its_parent():
    of = ExecutionAccepted(NOON, "c1", "default", "test", 1, "hash", parent=Parent("e1", "a", 2, 4))
    reopened = ExecutionReopened(NOON, "ann", "retry")

    assert reopening_of_child(of, [reopened]) == ("e1", ChildReopened("a", 2, "ann", 4))
    assert reopening_of_child(of, []) is None
    assert reopening_of_child(ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash"), [reopened]) is None


def test_a_child_that_could_not_be_started_is_started_when_its_node_is_retried():
    execution = waiting(CHAIN, CHILD)
    tell(execution, never_began(StartChild("a", 1, CHILD), FAILED, "there is no workflow 'refund'"))

    tell(execution, Retry("ann"))

    told = [each for each in execution.take_commands() if isinstance(each, StartChild | ReopenChild)]
    assert told[-2:] == [StartChild("a", 1, CHILD), ReopenChild("c1")]


def test_a_parent_that_ends_has_a_child_that_was_never_started_end_too():
    execution = waiting(CHAIN, CHILD)

    tell(execution, Cancel("ann"))

    assert execution.outstanding()[:2] == [StartChild("a", 1, CHILD), CancelChild("c1")]


def test_a_parent_whose_dispatch_is_given_up_calls_off_the_child_it_waits_for():
    """Its dispatch is given up while it waits for a slot again, reopened by that child."""
    parent = waiting(workflow([once("a")]), CHILD)
    tell(parent, ChildEnded("a", 1, ExecutionState.FAILED, error="boom"), ChildReopened("a", 1, "ann"))
    parent.take_commands()

    tell(parent, Abandon("no worker can begin it"))

    assert parent.state is ExecutionState.FAILED
    assert CancelChild("c1") in parent.take_commands()
