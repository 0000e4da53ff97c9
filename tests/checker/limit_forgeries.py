"""Forged histories about children that are tried again, what counts for `maxParallel`, and `onFailure: cancel`."""

from ropewalk.checker import History
from ropewalk.core.duration import SECOND
from ropewalk.core.events import (
    DeadlinePassed,
    ExecutionAccepted,
    ExecutionFailed,
    ExecutionTimedOut,
    RunFailed,
    RunWaiting,
    StopRequested,
)
from ropewalk.core.signals import ChildEnded, Due, Start, Suspended, Tell
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import ChildWait, SignalWait
from tests.checker.forgeries import LONG, Forgery, flow
from tests.checker.stories import change, exchange, story, under
from tests.core.executions import NOON, bad, ok, once

FAILED = ExecutionState.FAILED
TWICE = {"id": "a", "retry": {"maxAttempts": 2}}

CHILDREN = story(
    flow([TWICE]), Start(), Suspended("a", 1, ChildWait("c1", "other")), ChildEnded("a", 1, FAILED), LONG, Due(),
    Start(), Suspended("a", 2, ChildWait("c2", "other")), ChildEnded("a", 2, FAILED),
)  # fmt: skip
ONLY_CHILD = story(flow([once("a")]), Start(), Suspended("a", 1, ChildWait("c1", "other")), ChildEnded("a", 1, FAILED))
ASIDE = story(
    flow("a b c d", "b->c", "b->d"), Start(), Suspended("a", 1, SignalWait("go")), ok("b"), ok("c"), ok("d"), Tell("go")
)
ASIDE_IN_TWO = under(ASIDE, flow("a b c d", "b->c", "b->d", maxParallel=2))
CALLED_OFF = story(flow([once("a"), {"id": "b"}], onFailure="cancel"), Start(), bad("a"), SECOND, ok("b"))
LATER_STOP = story(
    flow([once("a"), {"id": "b"}], onFailure="stop", timeout="1m"), Start(), bad("a"), LONG, Due(), ok("b")
)

LIMITS_HONEST: dict[str, History] = {
    "a place kept while it waits": story(
        flow("a b", maxParallel=1), Start(), Suspended("a", 1, SignalWait("go")), Tell("go"), Start(), ok("b")
    ),
    "a place kept between attempts": story(
        flow("a b", maxParallel=1), Start(), bad("a"), LONG, Due(), ok("a", attempt=2), ok("b")
    ),
    "waits that took no place once": change(ASIDE_IN_TWO, ExecutionAccepted, rules=0),
    "a child that was never retried once": change(under(ONLY_CHILD, flow([TWICE])), ExecutionAccepted, rules=0),
    "a time limit that passed while it stopped": LATER_STOP,
}

LIMIT_FORGERIES = [
    Forgery("I-13", "a child of two attempts", CHILDREN,
            change(CHILDREN, RunWaiting, 1, wait=ChildWait("c1", "other"))),
    Forgery("I-24", "a child given up too early", ONLY_CHILD, under(ONLY_CHILD, flow([TWICE]))),
    Forgery("I-26", "a child retried unasked", CHILDREN, under(CHILDREN, flow("a"))),
    Forgery("I-26", "a permanent error taken for a child's", CHILDREN, change(CHILDREN, RunFailed, child=None)),
    Forgery("I-28", "a wait without a place", ASIDE, ASIDE_IN_TWO),
    Forgery("I-40", "a stop where nodes may finish", CALLED_OFF,
            under(CALLED_OFF, flow([once("a"), {"id": "b"}], onFailure="stop"))),
    Forgery("I-40", "nodes that run on", CALLED_OFF, change(CALLED_OFF, StopRequested, grace_until=None)),
    Forgery("I-42", "a time limit that passes in the grace", CALLED_OFF,
            exchange(CALLED_OFF, ExecutionFailed, DeadlinePassed(NOON + SECOND, NOON + LONG),
                     ExecutionTimedOut(NOON + SECOND))),
]  # fmt: skip
