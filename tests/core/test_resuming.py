"""How an execution goes on after its log was folded."""

from ropewalk.core.execution import Execution
from ropewalk.core.execution.resuming import first_signals, handed_back, lost, under_way
from ropewalk.core.signals import Due, Expanded, Failed, Lost, Returned, Start, Succeeded
from tests.core.executions import BOOM, NOON, accepted, runs, tell, workflow

RETRIED = workflow([{"id": "a", "retry": {"maxAttempts": 2, "delay": "1s", "jitter": 0}}])


def folded(execution: Execution, *events: object) -> Execution:
    again = Execution(execution.plan)
    again.apply([execution.accepted, *events])
    return again


def test_the_attempts_under_way_are_those_a_lost_worker_has_lost():
    plan = workflow([{"id": "a"}, {"id": "m", "forEach": "{{ input }}"}, {"id": "z"}], "a->z")
    execution = accepted(plan)

    tell(execution, Start(), Expanded("m", 1, 2), Succeeded("m", 1, item=0))

    assert under_way(execution) == [("a", None, 1), ("m", 1, 1)]
    assert lost(("m", 1, 1), 0.5) == Lost("m", 1, 1, 0.5)
    assert handed_back(("m", 1, 1)) == Returned("m", 1, 1)


def test_a_retry_that_became_due_meanwhile_has_its_turn_before_the_slot_is_given():
    execution = accepted(RETRIED)
    events = tell(execution, Start(), Failed("a", 1, BOOM))
    again = folded(execution, *events)

    told = []
    for signal in first_signals(again, has_slot=True):
        told.append(signal)
        again.handle(signal, NOON + 5_000_000)

    assert told == [Due()]
    assert runs(again) == ["a#2"]


def test_one_that_was_given_a_slot_and_has_not_begun_begins_after_what_its_attempts_reported():
    execution = accepted(RETRIED)

    assert list(first_signals(execution, [Returned("a", 1)], has_slot=True)) == [Returned("a", 1), Due(), Start()]
    assert list(first_signals(execution, has_slot=False)) == [Due()]
