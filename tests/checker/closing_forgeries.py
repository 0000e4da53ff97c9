"""Forged histories about how an execution is closed."""

from msgspec.structs import replace

from ropewalk.checker import History
from ropewalk.core.duration import HOUR, SECOND
from ropewalk.core.events import (
    Event,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionReopened,
    ExecutionStarted,
    ExecutionSucceeded,
    NodesStarted,
    NodeSucceeded,
    OutcomeDecided,
)
from ropewalk.core.signals import Cancel, Due, Pause, Retry, Start, Suspended
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import Approval
from tests.checker.forgeries import Forgery, flow
from tests.checker.stories import change, drop, exchange, place, repeat, story, with_events
from tests.core.executions import NOON, bad, ok, once

UNDO = {"compensate": {"type": "noop", "retry": {"maxAttempts": 1}}}
LAST = {"finally": [once("x", type="noop", **{"with": {"told": "{{ execution.outcome }}"}}), once("y", type="noop")]}
SAGA = flow([{"id": "a", **UNDO}, {"id": "b", **UNDO}, once("c")], "a->b", "b->c", **LAST)
CLOSING = (ok("b.compensate"), ok("a.compensate"), ok("x"), ok("y"))

FAILED = story(SAGA, Start(), ok("a"), ok("b"), bad("c"), *CLOSING)
SUCCEEDED = story(SAGA, Start(), ok("a"), ok("b"), ok("c", 7), ok("x"), ok("y"))
PARKED = story(
    flow([{"id": "a", **UNDO}, {"id": "b"}], "a->b", **LAST), Start(), ok("a"), Suspended("b", 1, Approval("?")),
    SECOND, Pause("ann"), Cancel("ann"), Start(), ok("a.compensate"), ok("x"), ok("y"),
)  # fmt: skip
AGAIN = story(
    flow([once("a")], **LAST), Start(), bad("a"), ok("x"), bad("y"), Retry("ann"), Start(), ok("a", attempt=2),
    ok("x", attempt=2), ok("y", attempt=2),
)  # fmt: skip
LATE = story(SAGA, Start(), ok("a"), Cancel("ann"), 11 * SECOND, Due(), HOUR, Due())


def _exchanged(history: History, one: str, other: str) -> History:
    """Two of the nodes that close it in each other's place, though in the decision they are as they were."""
    names = {one: other, other: one}
    return with_events(history, (_renamed(event, names) for event in history.events))


def _renamed(event: Event, names: dict[str, str]) -> Event:
    if isinstance(event, NodesStarted):
        return replace(event, nodes=tuple(names.get(node, node) for node in event.nodes))
    return replace(event, node=names.get(event.node, event.node)) if isinstance(event, NodeSucceeded) else event


def _left(history: History, node: str) -> History:
    """The node does not run, and was not decided to."""
    kept = (event for event in history.events if node not in (getattr(event, "node", ""), *_started_by(event)))
    decided = history.events[place(history, OutcomeDecided)]
    assert isinstance(decided, OutcomeDecided)
    nodes = tuple(each for each in decided.nodes if each != node)
    return change(with_events(history, kept), OutcomeDecided, nodes=nodes)


def _started_by(event: Event) -> tuple[str, ...]:
    return event.nodes if isinstance(event, NodesStarted) else ()


def _without_last(history: History) -> History:
    """The last of the nodes that close it does not run."""
    start = place(history, NodesStarted, -1)
    return with_events(history, (*history.events[:start], history.events[-1]))


def _started_first(history: History) -> History:
    """What comes last starts with the first node, and is done before the execution is."""
    start, end = place(history, NodesStarted, -1), place(history, NodeSucceeded, -1)
    events = list(history.events)
    first = place(history, ExecutionStarted)
    moved = [replace(events[each], at=events[first].at) for each in (start, end)]
    rest = [event for index, event in enumerate(events) if index not in (start, end)]
    return with_events(history, (*rest[: first + 1], *moved, *rest[first + 1 :]))


def _reopened(history: History) -> History:
    return replace(with_events(history, (*history.events, ExecutionReopened(NOON, "ann", "retry"))), is_quiescent=False)


CLOSING_HONEST: dict[str, History] = {
    "a saga that failed": FAILED,
    "what comes last after a success": SUCCEEDED,
    "a parked and paused execution that was cancelled": PARKED,
    "closed twice": AGAIN,
    "closed for too long": LATE,
}

_UNDONE = ("b.compensate", "a.compensate")
CLOSING_FORGERIES = [
    Forgery("I-43", "undone in the order of success", FAILED,
            change(FAILED, OutcomeDecided, nodes=(*_UNDONE[::-1], "x", "y"))),
    Forgery("I-43", "a node left as it is", FAILED, _left(FAILED, "a.compensate")),
    Forgery("I-43", "out of turn", FAILED, _exchanged(FAILED, *_UNDONE)),
    Forgery("I-43", "an end that was not decided", FAILED, drop(FAILED, OutcomeDecided)),
    Forgery("I-43", "ended before the last one", PARKED, _without_last(PARKED)),
    Forgery("I-43", "finally before the rest", PARKED, _started_first(PARKED)),
    Forgery("I-43", "another reason than decided", FAILED, change(FAILED, ExecutionFailed, error="other")),
    Forgery("I-43", "another output than decided", SUCCEEDED, change(SUCCEEDED, OutcomeDecided, output={"c": 8})),
    Forgery("I-43", "a success that finally made a cancellation", SUCCEEDED,
            exchange(SUCCEEDED, ExecutionSucceeded, ExecutionCancelled(NOON))),
    Forgery("I-43", "decided twice", FAILED, repeat(FAILED, OutcomeDecided)),
    Forgery("I-43", "a hurried end without a limit", PARKED, change(PARKED, OutcomeDecided, until=None)),
    Forgery("I-43", "reopened after something was undone", FAILED, _reopened(FAILED)),
    Forgery("I-40", "decided otherwise than it was told", PARKED,
            exchange(change(PARKED, OutcomeDecided, outcome=ExecutionState.FAILED, until=None, error="no"),
                     ExecutionCancelled, ExecutionFailed(NOON + SECOND, "no"))),
]  # fmt: skip
