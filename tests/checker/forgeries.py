"""For every invariant, histories that break it and nothing else, each made from an honest one."""

from typing import Any, NamedTuple

from msgspec.structs import replace

from ropewalk.checker import History
from ropewalk.core.duration import SECOND
from ropewalk.core.events import (
    Blob,
    ExecutionAccepted,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionPaused,
    ExecutionReopened,
    ExecutionStarted,
    ExecutionSucceeded,
    ItemFailed,
    ItemsGivenUp,
    ItemsStarted,
    MapExpanded,
    NodeFailed,
    NodeRequeued,
    NodesCarriedOver,
    NodesSkipped,
    NodesStarted,
    NodeSucceeded,
    RunFailed,
    RunReleased,
    RunReturned,
    RunStarted,
    SignalReceived,
    SlotReleased,
)
from ropewalk.core.rows import rows
from ropewalk.core.signals import (
    Abandon,
    Cancel,
    ChildEnded,
    ChildReopened,
    Due,
    Expanded,
    Fix,
    GiveUp,
    Lost,
    Pause,
    Requeue,
    Resume,
    Retry,
    Returned,
    Start,
    Succeeded,
    Suspended,
    Tell,
)
from ropewalk.core.state import ExecutionState, GaveUp
from ropewalk.core.waits import BreakerWait, ChildWait, SignalWait, Timer
from tests.checker.stories import (
    append,
    change,
    drop,
    exchange,
    insert,
    meddled,
    move,
    repeat,
    sealed,
    seen,
    story,
    under,
)
from tests.core.executions import NOON, WRONG, bad, each, ok, once, workflow


class Forgery(NamedTuple):
    """An honest history, the same with a lie in it, and the invariant that shows the lie."""

    invariant: str
    what: str
    honest: History
    forged: History

    def __str__(self) -> str:
        return f"{self.invariant} {self.what}"


def flow(nodes: Any, *edges: str, **fields: Any) -> Any:
    """A workflow whose output does not depend on what its nodes did."""
    return workflow(nodes, *edges, **{"output": "done", **fields})


LONG = 60 * SECOND
PERMANENT = GaveUp.PERMANENT_ERROR
TOO_LATE = (SignalReceived(NOON + LONG, "go"), ExecutionCancelled(NOON + 2 * LONG))
SKIPPED_B = (NodesSkipped(NOON, ("b",)), ExecutionSucceeded(NOON, "done"))

CHAIN = story(flow("a b", "a->b"), Start(), ok("a"), ok("b"))
DIAMOND = story(flow("a b c d", "a->b", "a->c", "b->d", "c->d"), Start(), ok("a"), ok("b"), ok("c"), ok("d"))
FORK = story(flow("a b c", "a->b:left", "a->c:right"), Start(), ok("a", None, "left"), ok("b"))
BLOCKED = story(flow([once("a"), {"id": "b"}], "a->b"), Start(), bad("a"))
BESIDE = story(flow([once("a"), {"id": "b"}]), Start(), bad("a"), ok("b"))
HANDLED = story(flow([once("a"), {"id": "b"}], "a->b:error"), Start(), bad("a"), ok("b"))
RETRIED = story(flow("a"), Start(), bad("a"), LONG, Due(), bad("a", attempt=2), LONG, Due(), ok("a", attempt=3))
LOST = story(flow("a"), Start(), Lost("a", 1), Due(), ok("a", attempt=2))
RETURNED = story(flow("a b", "a->b"), Start(), Returned("a", 1), ok("a"), ok("b"))
REQUEUED = story(flow([once("a")]), Start(), bad("a"), Requeue("a", "ann"), Start(), ok("a", attempt=2))
PAUSED = story(flow("a b", "a->b"), Start(), Pause("ann"), ok("a"), Resume("ann"), Start(), ok("b"))
CANCELLED = story(flow("a b", "a->b"), Start(), Cancel("ann"), ok("a"))
TIMED_OUT = story(flow("a b", "a->b", timeout="1m"), Start(), LONG, Due(), ok("a"))
HELD = story(flow("a"), Start(), Suspended("a", 1, BreakerWait("shop", NOON + SECOND)), SECOND, Due(), ok("a"))
GIVEN = story(
    flow([{"id": "a", "with": {"to": "{{ input }}"}}]),
    Start(),
    Succeeded("a", 1, inputs={"to": "ann"}),
    input="ann",
)
REUSED = story(
    flow([{"id": "a", "with": {"to": "{{ input }}"}, "retry": {"maxAttempts": 2}}]),
    Start(),
    replace(bad("a"), inputs={"to": "ann"}),
    LONG,
    Due(),
    replace(bad("a", attempt=2), inputs={"to": "ann"}),
    input="ann",
)
MAP = story(
    workflow([each("m", concurrency=2)]),
    Start(),
    Expanded("m", 1, 3),
    ok("m", 10, item=0),
    ok("m", 11, item=1),
    ok("m", 12, item=2),
    input=[0, 1, 2],
)
TOLERANT = story(flow([each("m", failureTolerance=1)]), Start(), Expanded("m", 1, 2), bad("m", item=0), ok("m", item=1))
TOO_MANY = story(
    flow([each("m", concurrency=1, failureTolerance=1)]), Start(), Expanded("m", 1, 3), bad("m", item=0),
    bad("m", item=1),
)  # fmt: skip
TOLD = story(
    flow("a b"),
    Start(),
    Suspended("a", 1, SignalWait("go")),
    Suspended("b", 1, SignalWait("go")),
    Tell("go"),
    Tell("go"),
)
TOLD_ONCE = story(flow("a"), Start(), Tell("go", once="key"), Tell("go", once="key"), ok("a"))
SLEPT = story(flow("a"), Start(), Suspended("a", 1, Timer(NOON + SECOND)), SECOND, Due())
RERUN_PLAN = flow("a b", "a->b")
RERUN = insert(
    story(RERUN_PLAN, Start(), ok("a"), ok("b")), ExecutionStarted, NodesCarriedOver(NOON, "e0", {"a": None})
)
RERUN = drop(drop(RERUN, NodesStarted), NodeSucceeded)
PARTED = insert(CHAIN, ExecutionStarted, NodesCarriedOver(NOON, "e0", {"b": None}))
PARTED = drop(drop(PARTED, NodesStarted, 1), NodeSucceeded, 1)
WATCHED = seen(RETRIED, ("a", 1, "k"), ("a", 3, "k"))
SEALED = sealed(replace(MAP, events=change(MAP, ExecutionAccepted, priority=7).events))
KEPT = replace(RETRIED, rows=rows(RETRIED.plan, RETRIED.events))


CHILD = (Suspended("a", 1, ChildWait("c1", "other")), ChildEnded("a", 1, ExecutionState.FAILED))
ITEM_CHILD = (Suspended("m", 1, ChildWait("c1", "other"), 0), ChildEnded("m", 1, ExecutionState.FAILED, item=0))
HANDED = {"retry": {"maxAttempts": 2}, "with": {"seen": "{{ nodes.a.error.message }}{{ nodes.m.errors[0].index }}"}}

HONEST = {
    "empty": story(flow(""), Start()),
    "retry": story(
        flow([once("a"), once("b")], onFailure="stop"), Start(), bad("a"), bad("b"), Retry("ann"), Start(),
        ok("a", attempt=2), ok("b", attempt=2),
    ),
    "fix": story(flow([once("a"), {"id": "b"}], "a->b"), Start(), bad("a"), Fix("a", "ann", 7), Start(), ok("b")),
    "given up by hand": story(flow("a"), Start(), bad("a"), GiveUp("a", "ann")),
    "no dispatch": story(flow("a b", "a->b"), Abandon("nobody"), Retry("ann"), Start(), ok("a"), ok("b")),
    "cut short": story(
        flow([{"id": "a"}, once("b")], timeout="1m"), Start(), LONG, Due(), LONG, Due(), Retry("ann"), Start(),
        ok("a", attempt=2), ok("b", attempt=2),
    ),
    "a failure in a pause": story(
        flow([once("a"), {"id": "b"}], "a->b", onFailure="stop"), Start(), Pause("ann"), bad("a"),
        Resume("ann"),
    ),
    "held by a breaker": HELD,
    "a release that was no event yet": drop(HELD, RunReleased),
    "a wait that ran out": story(
        flow([{"id": "a", "timeout": "1s"}]), Start(), Suspended("a", 1, SignalWait("go")), SECOND, Due()
    ),
    "a wait that expired": story(
        flow([{"id": "a", "timeout": "1s"}, {"id": "b"}], "a->b:expired"),
        Start(), Suspended("a", 1, SignalWait("go")), SECOND, Due(), ok("b"),
    ),
    "a child retried": story(
        flow("a"), Start(), *CHILD, Retry("ann"), ChildEnded("a", 1, ExecutionState.SUCCESS), Start()
    ),
    "a child reopened": story(
        flow("a"), Start(), *CHILD, ChildReopened("a", 1, "ann"), ChildEnded("a", 1, ExecutionState.SUCCESS), Start()
    ),
    "an item's child reopened": story(
        flow([each("m")]), Start(), Expanded("m", 1, 1), *ITEM_CHILD, ChildReopened("m", 1, "ann", 0), Start(),
        ChildEnded("m", 1, ExecutionState.SUCCESS, item=0), Due(),
    ),
    "an item's child retried": story(
        flow([each("m")]), Start(), Expanded("m", 1, 2), *ITEM_CHILD, bad("m", item=1), Retry("ann"), Start(),
        ok("m", attempt=2, item=1), ChildEnded("m", 1, ExecutionState.SUCCESS, item=0), Due(),
    ),
    "a list that was none": story(
        flow([each("m")]), Start(), bad("m", WRONG), Requeue("m", "ann"), Start(), Expanded("m", 2, 1), ok("m", item=0)
    ),
    "an item requeued": story(
        flow([each("m", concurrency=1)]), Start(), Expanded("m", 1, 2), bad("m", item=0), Requeue("m", "ann", 0),
        Start(), ok("m", attempt=2, item=0), ok("m", item=1),
    ),
    "an item fixed": story(
        workflow([each("m")]), Start(), Expanded("m", 1, 1), bad("m", item=0), Fix("m", "ann", 7, item=0), Start()
    ),
    "inputs of what failed": story(
        flow([once("a"), each("m", failureTolerance=1), {"id": "b", **HANDED}], "a->b:error", "m->b"),
        Start(), Expanded("m", 1, 1), bad("m", item=0), bad("a"), Succeeded("b", 1, inputs={"seen": "boom0"}),
    ),
    "inputs overridden": story(
        flow([once("a", **{"with": {"to": "{{ input }}"}})]), Start(), bad("a"),
        Requeue("a", "ann", overrides={"to": "bob"}), Start(), Succeeded("a", 2, inputs={"to": "bob"}), input="ann",
    ),
    "a value elsewhere": story(
        workflow([{"id": "a"}, {"id": "b", "with": {"from": "{{ nodes.a.output }}"}}], "a->b"),
        Start(), Succeeded("a", 1, blob=Blob("hash", 9)), Succeeded("b", 1, inputs={"from": "a long text"}),
    ),
    "one key shared": story(flow("a", concurrencyKey="{{ input }}"), Start(), ok("a"), concurrency_key="k"),
}  # fmt: skip
"""Further histories that keep every invariant, for the verbs and turns that the forged ones do not take."""


def _kept_otherwise() -> History:
    kept = rows(RETRIED.plan, RETRIED.events)
    kept.runs[0].attempt = 7
    return replace(RETRIED, rows=kept)


FORGERIES = [
    Forgery("I-01", "a gap", CHAIN, replace(CHAIN, seqs=(1, 2, 3, 5, 6, 7, 8))),
    Forgery("I-01", "a repeat", CHAIN, replace(CHAIN, seqs=(1, 2, 2, 3, 4, 5, 6))),
    Forgery("I-01", "a number too many", CHAIN, replace(CHAIN, seqs=(1, 2, 3, 4, 5, 6, 7, 8))),
    Forgery("I-02", "an output that is changed everywhere", SEALED, meddled(SEALED, b"[10,11,12]", b"[10,11,13]")),
    Forgery("I-02", "an input that nothing reads", SEALED, meddled(SEALED, b'"priority":7', b'"priority":8')),
    Forgery("I-02", "an entry of another log", SEALED, replace(SEALED, entries=SEALED.entries[1:])),
    Forgery("I-03", "another definition", CHAIN, change(CHAIN, ExecutionAccepted, hash="other")),
    Forgery("I-03", "no version", CHAIN, change(CHAIN, ExecutionAccepted, version=0)),
    Forgery("I-03", "accepted twice", CHAIN, repeat(CHAIN, ExecutionAccepted)),
    Forgery("I-03", "never accepted", CHAIN, drop(CHAIN, ExecutionAccepted)),
    Forgery("I-04", "ended twice", CHAIN, repeat(CHAIN, ExecutionSucceeded)),
    Forgery("I-04", "never ended", CHAIN, drop(CHAIN, ExecutionSucceeded)),
    Forgery(
        "I-04",
        "a success reopened",
        CHAIN,
        append(CHAIN, ExecutionReopened(NOON, "ann", "retry"), ExecutionFailed(NOON, "no dispatch")),
    ),
    Forgery("I-05", "a signal after the end", CHAIN, append(CHAIN, SignalReceived(NOON, "go"))),
    Forgery("I-06", "paused in a pause", PAUSED, repeat(PAUSED, ExecutionPaused)),
    Forgery("I-06", "requeued twice", REQUEUED, repeat(REQUEUED, NodeRequeued)),
    Forgery("I-06", "a returned run that ends", RETURNED, drop(RETURNED, RunStarted)),
    Forgery("I-06", "a timer's wait that runs", SLEPT, insert(SLEPT, NodeSucceeded, RunStarted(NOON + SECOND, "a", 1))),
    Forgery(
        "I-06",
        "a timer's wait released",
        SLEPT,
        insert(SLEPT, NodeSucceeded, RunReleased(NOON + SECOND, "a", 1)),
    ),
    Forgery("I-06", "a running attempt released", CHAIN, insert(CHAIN, NodeSucceeded, RunReleased(NOON, "a", 1))),
    Forgery("I-07", "a join that does not wait", DIAMOND, move(DIAMOND, NodesStarted, NodeSucceeded, nth=2, to=2)),
    Forgery("I-07", "a port not taken", FORK, change(FORK, NodeSucceeded, ports=("other",))),
    Forgery(
        "I-08",
        "a start behind a failure",
        BLOCKED,
        insert(BLOCKED, ExecutionFailed, NodesStarted(NOON, ("b",)), NodeSucceeded(NOON, "b", 1)),
    ),
    Forgery("I-09", "failed too early", BESIDE, drop(BESIDE, NodeSucceeded)),
    Forgery("I-10", "succeeded too early", CHAIN, drop(CHAIN, NodeSucceeded, 1)),
    Forgery("I-10", "a node of another plan", CHAIN, insert(CHAIN, ExecutionSucceeded, NodesSkipped(NOON, ("ghost",)))),
    Forgery(
        "I-10",
        "a map short of an item",
        TOLERANT,
        under(change(TOLERANT, MapExpanded, count=3), flow([each("m", failureTolerance=1)])),
    ),
    Forgery(
        "I-11",
        "a skip behind a live edge",
        CHAIN,
        exchange(drop(drop(CHAIN, NodeSucceeded, 1), NodesStarted, 1), ExecutionSucceeded, *SKIPPED_B),
    ),
    Forgery("I-12", "other inputs", GIVEN, change(GIVEN, NodeSucceeded, inputs={"to": "bob"})),
    Forgery("I-12", "another output", MAP, change(MAP, ExecutionSucceeded, output={"m": [10, 12, 11]})),
    Forgery("I-12", "other items", MAP, change(MAP, ExecutionAccepted, input=[0, 1])),
    Forgery(
        "I-13",
        "a number left out",
        RETRIED,
        change(change(RETRIED, RunStarted, 1, attempt=4), NodeSucceeded, attempt=4),
    ),
    Forgery("I-13", "a report of another attempt", CHAIN, change(CHAIN, NodeSucceeded, attempt=2)),
    Forgery("I-13", "a start before the end", RETRIED, drop(RETRIED, RunFailed, 1)),
    Forgery("I-17", "a node that succeeds twice", CHAIN, repeat(CHAIN, NodeSucceeded)),
    Forgery("I-17", "an attempt that ends twice", RETRIED, repeat(RETRIED, RunFailed)),
    Forgery("I-17", "a signal used twice", TOLD, drop(TOLD, SignalReceived, 1)),
    Forgery("I-17", "a signal told twice under a key", TOLD_ONCE, repeat(TOLD_ONCE, SignalReceived)),
    Forgery("I-18", "a return after success", CHAIN, insert(CHAIN, NodesStarted, RunReturned(NOON, "a", 1), nth=1)),
    Forgery("I-18", "a release after success", CHAIN, insert(CHAIN, NodesStarted, RunReleased(NOON, "a", 1), nth=1)),
    Forgery("I-18", "a restart after success", CHAIN, insert(CHAIN, NodesStarted, RunStarted(NOON, "a", 2), nth=1)),
    Forgery("I-20", "lost twice", LOST, repeat(LOST, RunFailed)),
    Forgery("I-21", "time going back", CHAIN, change(CHAIN, NodeSucceeded, at=NOON - 1)),
    Forgery("I-22", "an attempt too many", RETRIED, under(RETRIED, flow([{"id": "a", "retry": {"maxAttempts": 2}}]))),
    Forgery("I-23", "a retry before its time", RETRIED, change(RETRIED, RunFailed, retry_at=NOON + 2 * LONG)),
    Forgery("I-23", "a retry without backoff", RETRIED, change(RETRIED, RunFailed, retry_at=NOON)),
    Forgery("I-24", "no dead letter", BLOCKED, change(BLOCKED, NodeFailed, gave_up=None)),
    Forgery("I-24", "a letter of a handled failure", HANDLED, change(HANDLED, NodeFailed, gave_up=GaveUp.MAX_RETRIES)),
    Forgery("I-24", "the wrong reason", BLOCKED, change(BLOCKED, NodeFailed, gave_up=GaveUp.PERMANENT_ERROR)),
    Forgery("I-24", "given up too early", BLOCKED, under(BLOCKED, flow("a b", "a->b"))),
    Forgery("I-24", "other inputs in the letter", REUSED, change(REUSED, NodeFailed, inputs={"to": "bob"})),
    Forgery("I-24", "a tolerance exceeded", TOLERANT, under(TOLERANT, flow([each("m")]))),
    Forgery("I-24", "a tolerated letter", TOLERANT, change(TOLERANT, ItemFailed, gave_up=GaveUp.MAX_RETRIES)),
    Forgery("I-24", "a letter left out", TOO_MANY, change(TOO_MANY, ItemsGivenUp, items=())),
    Forgery("I-26", "a permanent error retried", RETRIED, change(RETRIED, RunFailed, error=WRONG)),
    Forgery(
        "I-26",
        "an item after giving up",
        TOO_MANY,
        insert(TOO_MANY, NodeFailed, ItemsStarted(NOON, "m", (2,)), ItemFailed(NOON, "m", 2, 1, WRONG, PERMANENT)),
    ),
    Forgery("I-27", "a start without a slot", CHAIN, insert(CHAIN, NodesStarted, SlotReleased(NOON), nth=1)),
    Forgery("I-27", "a slot returned twice", PAUSED, repeat(PAUSED, SlotReleased)),
    Forgery(
        "I-28",
        "too many at once",
        DIAMOND,
        under(DIAMOND, flow("a b c d", "a->b", "a->c", "b->d", "c->d", maxParallel=1)),
    ),
    Forgery("I-28", "too many items at once", MAP, under(MAP, workflow([each("m", concurrency=1)]))),
    Forgery("I-31", "a result without its own", RERUN, PARTED),
    Forgery("I-31", "results taken over late", RERUN, move(RERUN, NodesCarriedOver, NodesStarted)),
    Forgery("I-32", "a success that was not seen", WATCHED, seen(RETRIED, ("a", 1, "k"))),
    Forgery("I-32", "work that never started", WATCHED, seen(RETRIED, ("a", 3, "k"), ("a", 9, "k"))),
    Forgery("I-32", "work under two keys", WATCHED, seen(RETRIED, ("a", 1, "k"), ("a", 3, "other"))),
    Forgery("I-33", "an attempt at work twice", WATCHED, seen(RETRIED, ("a", 3, "k"), ("a", 3, "k"))),
    Forgery("I-36", "a row that differs", KEPT, _kept_otherwise()),
    Forgery(
        "I-40", "a start after cancel", CANCELLED, insert(CANCELLED, ExecutionCancelled, NodesStarted(NOON, ("b",)))
    ),
    Forgery("I-40", "another end", CANCELLED, exchange(CANCELLED, ExecutionCancelled, ExecutionFailed(NOON, "no"))),
    Forgery("I-40", "a grace without end", CANCELLED, exchange(CANCELLED, ExecutionCancelled, *TOO_LATE)),
    Forgery("I-41", "a start in a pause", PAUSED, move(PAUSED, NodesStarted, SlotReleased, nth=1)),
    Forgery("I-42", "a deadline too early", TIMED_OUT, change(TIMED_OUT, ExecutionStarted, deadline=NOON + 2 * LONG)),
    Forgery("I-42", "no deadline", TIMED_OUT, change(TIMED_OUT, ExecutionStarted, deadline=None)),
]
