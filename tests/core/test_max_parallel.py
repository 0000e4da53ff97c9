"""What counts for `maxParallel`: SPEC §3, 2."""

import pytest

from ropewalk.core.duration import HOUR
from ropewalk.core.signals import ChildEnded, Due, Returned, Signal, Start, Suspended, Tell
from ropewalk.core.waits import ChildWait, SignalWait
from tests.core.executions import NOON, SUCCESS, accepted, after, bad, names, ok, runs, tell, workflow


@pytest.mark.parametrize(
    ("report", "answer"),
    [
        (bad("a"), Due()),
        (Suspended("a", 1, SignalWait("go")), Tell("go")),
        (Suspended("a", 1, ChildWait("c1", "refund")), ChildEnded("a", 1, SUCCESS)),
        (Returned("a", 1), Due()),
    ],
    ids=["backoff", "wait", "child", "handed back"],
)
def test_what_has_begun_keeps_its_place_of_max_parallel_until_its_outcome_is_final(report: Signal, answer: Signal):
    execution = accepted(workflow("a b", maxParallel=1))
    tell(execution, Start(), report)
    assert [each for each in runs(execution) if each == "b"] == []

    tell(execution, answer, Start(), at=NOON + HOUR)
    tell(execution, ok("a"), ok("a", attempt=2), at=NOON + HOUR)

    assert "b" in runs(execution)


def test_an_attempt_that_has_a_place_goes_on_however_many_wait_for_one():
    execution = accepted(workflow("a b c", maxParallel=2))
    tell(execution, Start(), bad("a"))
    assert runs(execution) == ["a", "b"]

    tell(execution, Due(), at=NOON + HOUR)

    assert runs(execution) == ["a#2"]


def test_who_waits_for_a_place_of_max_parallel_alone_holds_no_slot():
    execution = after(workflow("a b", maxParallel=1))

    events = tell(execution, Suspended("a", 1, ChildWait("c1", "refund")))

    assert names(events) == ["RunWaiting", "SlotReleased"]
    assert not execution.needs_slot
    assert names(tell(execution, ChildEnded("a", 1, SUCCESS))) == ["NodeSucceeded"]
    assert execution.needs_slot
