"""Durable waits, signals and slots: SPEC §3, 10 to 12."""

import pytest

from ropewalk.core.commands import NeedSlot, RunNode, WakeAt
from ropewalk.core.duration import HOUR, MINUTE, SECOND
from ropewalk.core.errors import InvalidTransition
from ropewalk.core.events import RunStarted, SignalReceived, SlotReleased, SlotTaken
from ropewalk.core.signals import (
    ChildEnded,
    Decide,
    Due,
    GiveUp,
    Lost,
    Matched,
    Pause,
    Released,
    Returned,
    Signal,
    Start,
    Suspended,
    Tell,
)
from ropewalk.core.state import GaveUp, NodeState
from ropewalk.core.waits import (
    Approval,
    BreakerWait,
    ChildWait,
    EventWait,
    RateLimitWait,
    SignalWait,
    Timer,
    TypeWait,
    Wait,
)
from tests.core.executions import (
    NOON,
    SUCCESS,
    accepted,
    after,
    bad,
    commands,
    names,
    ok,
    once,
    refolded,
    runs,
    states,
    tell,
    waiting,
    workflow,
)

CHAIN = workflow("a b", "a->b")


def test_a_timer_ends_its_node_when_it_is_due():
    execution = waiting(CHAIN, Timer(NOON + 5 * SECOND))

    assert tell(execution, Due(), at=NOON + 5 * SECOND - 1) == []
    tell(execution, Due(), at=NOON + 5 * SECOND)

    assert runs(execution) == ["b"]


def test_a_wait_says_when_to_wake_it():
    execution = accepted(CHAIN)
    tell(execution, Start(), Suspended("a", 1, Timer(NOON + HOUR)))

    assert commands(execution, WakeAt) == [WakeAt(NOON + HOUR)]


def test_a_timer_fires_after_any_restart():
    plan = CHAIN
    execution = accepted(plan)
    log = [execution.accepted, *tell(execution, Start(), Suspended("a", 1, Timer(NOON + HOUR)))]

    copy = refolded(execution, log)

    assert copy.outstanding() == [WakeAt(NOON + HOUR)]
    tell(copy, Due(), Start(), at=NOON + HOUR)
    assert runs(copy) == ["b"]


# Approvals


@pytest.mark.parametrize(("approved", "next_node"), [(True, "yes"), (False, "no")])
def test_an_approval_takes_the_port_of_the_answer(approved, next_node):
    plan = workflow("a yes no", "a->yes:approved", "a->no:rejected")
    execution = waiting(plan, Approval("Refund?"))

    tell(execution, Decide("a", approved, "ann"), Start())

    assert runs(execution) == [next_node]
    assert execution.outputs[0] == {"approved": approved, "by": "ann", "payload": None}


def test_the_first_answer_wins():
    execution = waiting(CHAIN, Approval("Refund?"))
    tell(execution, Decide("a", True, "ann"))

    with pytest.raises(InvalidTransition, match="waits for no approval"):
        execution.handle(Decide("a", False, "bob"), NOON)


def test_an_expired_wait_takes_the_port_expired_if_an_edge_names_it():
    plan = workflow([{"id": "a", "timeout": "2d"}, {"id": "late"}], "a->late:expired")
    execution = waiting(plan, Approval("Refund?"))

    tell(execution, Due(), Start(), at=NOON + 48 * HOUR)

    assert runs(execution) == ["late"]


@pytest.mark.parametrize(("moment", "next_nodes"), [(30 * MINUTE, []), (HOUR, []), (2 * HOUR, ["late"])])
def test_a_wait_for_a_moment_expires_only_if_its_time_limit_comes_first(moment: int, next_nodes: list[str]):
    plan = workflow([{"id": "a", "timeout": "1h"}, {"id": "late"}], "a->late:expired")
    execution = waiting(plan, Timer(NOON + moment))

    # No worker was there when it was due.
    tell(execution, Due(), Start(), at=NOON + 5 * HOUR)

    assert runs(execution) == next_nodes


@pytest.mark.parametrize(
    ("wait", "answer"),
    [
        (SignalWait("go"), Tell("go")),
        (EventWait("order.paid"), Matched("a", 1, subject="order.paid")),
        (ChildWait("c1", "refund"), ChildEnded("a", 1, SUCCESS)),
        (Timer(NOON + SECOND), Due()),
    ],
    ids=["signal", "event", "child", "timer"],
)
def test_a_wait_that_was_answered_takes_the_port_arrived(wait: Wait, answer: Signal):
    plan = workflow([{"id": "a", "timeout": "2d"}, {"id": "on"}, {"id": "late"}], "a->on:arrived", "a->late:expired")
    execution = waiting(plan, wait)

    tell(execution, answer, Start(), at=NOON + SECOND)

    assert runs(execution) == ["on"]
    assert states(execution)["late"] is NodeState.SKIPPED


def test_an_expired_wait_without_such_an_edge_fails_and_is_not_retried():
    execution = waiting(workflow([{"id": "a", "timeout": "1m"}]), Approval("Refund?"))

    event = tell(execution, Due(), at=NOON + MINUTE)[0]

    assert (event.error.type, event.gave_up) == ("TIMEOUT", GaveUp.MAX_RETRIES)


def test_a_wait_has_no_time_limit_by_default():
    assert waiting(CHAIN, Approval("Refund?")).wake_at is None


# Signals and events


def test_a_signal_told_before_the_wait_is_kept_for_it():
    execution = after(CHAIN, Tell("paid", 1), Tell("paid", 2))

    tell(execution, Suspended("a", 1, SignalWait("paid")))

    assert execution.outputs[0] == 1
    assert list(execution.signals["paid"]) == [2]


def test_a_signal_is_used_by_the_wait_that_has_been_there_longest():
    execution = after(workflow("a b"), Suspended("b", 1, SignalWait("go")), Suspended("a", 1, SignalWait("go")))

    tell(execution, Tell("go", "x"))

    assert states(execution) == {"a": NodeState.RUNNING, "b": NodeState.SUCCESS}


def test_at_most_a_thousand_signals_are_kept():
    execution = after(CHAIN, *[Tell("x", n) for n in range(1_000)])

    with pytest.raises(InvalidTransition, match="1000 signals"):
        execution.handle(Tell("x"), NOON)


def test_what_is_told_under_a_key_is_told_once_also_after_a_fold_and_after_the_end():
    execution = after(workflow("a"), Tell("go", 1, once="key"))

    assert execution.handle(Tell("go", 2, once="key"), NOON) == []
    assert [type(each) for each in execution.handle(Tell("go", 2, once="other"), NOON)] == [SignalReceived]
    tell(execution, ok("a"))
    assert execution.is_ended
    assert execution.handle(Tell("go", 3, once="other"), NOON) == []


def test_a_thousand_keys_are_remembered_the_latest():
    execution = after(workflow("a"))
    for n in range(1_001):
        tell(execution, Tell("go", once=str(n)))
        execution.signals.clear()

    assert list(execution.told_once)[::999] == ["1", "1000"]


def test_an_ended_execution_takes_no_signal():
    with pytest.raises(InvalidTransition):
        after(workflow("a"), ok("a")).handle(Tell("x"), NOON)


def test_an_event_ends_the_wait_it_matches_and_no_other():
    execution = waiting(CHAIN, EventWait("order.paid"))

    assert tell(execution, Matched("a", 2, {}), Matched("b", 1, {})) == []
    tell(execution, Matched("a", 1, {"id": 7}))

    assert execution.outputs[0] == {"id": 7}


def test_the_output_of_a_wait_for_an_event_names_its_subject():
    execution = waiting(CHAIN, EventWait("order.*"))

    tell(execution, Matched("a", 1, {"id": 7}, subject="order.paid"))

    assert execution.outputs[0] == {"subject": "order.paid", "payload": {"id": 7}}


# Breakers


def test_a_run_held_by_a_breaker_goes_on_as_the_same_attempt():
    execution = waiting(workflow([once("a")]), BreakerWait("http shop", NOON + 30 * SECOND))

    tell(execution, Due(), Start(), at=NOON + 30 * SECOND)

    assert runs(execution) == ["a"]
    assert tell(execution, bad("a"))[0].gave_up is GaveUp.MAX_RETRIES


def test_a_breaker_that_closes_lets_the_run_go_at_once():
    execution = waiting(workflow("a"), BreakerWait("http shop", NOON + 30 * SECOND))

    tell(execution, Released("a", 1), Start(), at=NOON + SECOND)

    assert runs(execution) == ["a"]


@pytest.mark.parametrize("signal", [Released("a", 1), Due()], ids=["closed", "time is up"])
def test_every_fold_of_the_log_knows_that_a_breaker_holds_the_run_no_longer(signal):
    execution = accepted(workflow("a"))
    held = Suspended("a", 1, BreakerWait("http shop", NOON + MINUTE))
    log = [execution.accepted, *tell(execution, Start(), held), *tell(execution, signal, at=NOON + MINUTE)]

    copy = refolded(execution, log)

    assert copy.outstanding() == [NeedSlot()]
    assert tell(copy, Start(), at=NOON + MINUTE)[-1] == RunStarted(NOON + MINUTE, "a", 1)


def test_a_run_that_is_not_held_is_not_released():
    execution = waiting(workflow("a"), Timer(NOON + 30 * SECOND))

    assert tell(execution, Released("a", 1)) == []


# Types that no worker knows


def test_a_run_whose_type_was_not_known_goes_on_as_the_same_attempt_however_long_that_took():
    execution = waiting(workflow([once("a")]), TypeWait("rare", NOON + 30 * SECOND))

    tell(execution, Due(), Start(), at=NOON + 2 * HOUR)

    assert runs(execution) == ["a"]
    assert execution.work("a", None).held_since is None
    assert tell(execution, bad("a"))[0].gave_up is GaveUp.MAX_RETRIES


# Rate limits


SLOT = RateLimitWait("shop", NOON + 29 * SECOND, NOON + 30 * SECOND, ("shop",))


def test_a_run_that_waits_for_a_rate_limit_goes_on_as_the_same_attempt_and_holds_its_slot():
    execution = waiting(workflow([once("a")]), SLOT)
    is_parked = execution.is_parked

    tell(execution, Due(), Start(), at=NOON + 29 * SECOND)

    assert is_parked
    assert runs(execution) == ["a"]
    assert execution.work("a", None).reserved == SLOT
    assert tell(execution, bad("a"))[0].gave_up is GaveUp.MAX_RETRIES


@pytest.mark.parametrize("end", [bad("a"), Returned("a", 1), Lost("a", 1)], ids=["failed", "handed back", "lost"])
def test_a_slot_is_used_by_one_attempt_alone(end):
    execution = waiting(workflow("a"), SLOT)

    tell(execution, Due(), Start(), end, at=NOON + 29 * SECOND)

    assert execution.work("a", None).reserved is None


def test_a_run_that_is_held_by_a_breaker_after_its_slot_holds_it_no_longer():
    execution = waiting(workflow("a"), SLOT)

    tell(execution, Due(), Start(), Suspended("a", 1, BreakerWait("http shop", NOON + MINUTE)), at=NOON + 29 * SECOND)

    assert execution.work("a", None).reserved is None


# Slots and parking


def test_a_slot_that_came_too_late_is_asked_for_again_when_one_is_needed():
    execution = waiting(workflow("a b c", "b->c"), BreakerWait("http shop", NOON + MINUTE))
    tell(execution, Suspended("b", 1, Approval("?")))
    tell(execution, Due(), at=NOON + MINUTE)
    assert commands(execution, NeedSlot)

    tell(execution, GiveUp("a", "ann"), Start(), Decide("b", True, "ann"), at=NOON + MINUTE)

    assert commands(execution, NeedSlot)


def test_an_execution_that_only_waits_gives_its_slot_back_and_asks_for_one_when_woken():
    execution = waiting(CHAIN, Approval("?"))
    assert execution.is_parked

    tell(execution, Decide("a", True, "ann"), at=NOON + HOUR)
    assert commands(execution, NeedSlot) == [NeedSlot()]
    assert states(execution)["b"] is NodeState.READY

    events = tell(execution, Start(), at=NOON + HOUR)
    assert names(events) == ["SlotTaken", "NodesStarted"]


@pytest.mark.parametrize(("seconds", "is_parked"), [(10, False), (11, True)])
def test_a_timer_that_is_near_keeps_the_slot(seconds, is_parked):
    execution = waiting(CHAIN, Timer(NOON + seconds * SECOND))

    assert execution.is_parked is is_parked


def test_a_slot_is_kept_while_anything_runs():
    execution = after(workflow("a b"))

    assert not any(isinstance(event, SlotReleased) for event in tell(execution, Suspended("a", 1, Approval("?"))))
    assert any(isinstance(event, SlotReleased) for event in tell(execution, ok("b")))


def test_a_paused_execution_keeps_its_slot_until_its_last_node_ends():
    execution = after(CHAIN, Pause("ann"))
    assert execution.has_slot

    assert names(tell(execution, ok("a"))) == ["NodeSucceeded", "SlotReleased"]


def test_a_slot_that_is_not_needed_is_not_taken():
    execution = waiting(CHAIN, Approval("?"))

    assert execution.handle(Start(), NOON) == []


def test_ending_needs_no_slot():
    execution = waiting(workflow("a"), Approval("?"))

    tell(execution, Decide("a", True, "ann"))

    assert execution.state is SUCCESS


def test_a_slot_is_asked_for_once():
    execution = after(workflow("a b", "a->b"), Suspended("a", 1, Approval("?")))
    tell(execution, Decide("a", True, "ann"), Due(), Due())

    assert commands(execution, NeedSlot) == [NeedSlot()]
    assert NeedSlot() in execution.outstanding()


def test_outstanding_names_every_attempt_under_way():
    execution = after(workflow("a b c", "a->c"), bad("b"))

    assert execution.outstanding() == [RunNode("a", 1), WakeAt(NOON + SECOND)]


def test_the_slot_is_taken_again_for_a_retry_after_a_long_backoff():
    execution = after(workflow([{"id": "a", "retry": {"delay": "1m", "jitter": 0}}]), bad("a"))
    assert execution.is_parked

    events = tell(execution, Due(), Start(), at=NOON + MINUTE)

    assert isinstance(events[0], SlotTaken)
    assert runs(execution) == ["a#2"]
