"""Rules about the log itself and the states along it: I-01 to I-06, I-21."""

from collections.abc import Iterator
from typing import Final

from ropewalk.checker.graph import Graph
from ropewalk.checker.history import History, Violation
from ropewalk.checker.lanes import UNDER_WAY, Kind, Lane, Mark, Step
from ropewalk.checker.trace import TERMINAL, Trace
from ropewalk.core import events
from ropewalk.core.events import Event
from ropewalk.core.signals import BY_PARENT
from ropewalk.core.state import EXECUTION_STEPS, NODE_STEPS, RUN_STEPS, ExecutionState, NodeState, RunState
from ropewalk.core.waits import Hold

REOPENABLE: Final = (events.ExecutionFailed, events.ExecutionTimedOut)


def is_numbered_without_gap(t: Trace) -> Iterator[Violation]:
    """I-01: the numbers the events are stored under are 1 to n, each once, one for each event."""
    for place, seq in enumerate(t.seqs, 1):
        if seq != place:
            yield t.violation("I-01", f"event {place} of the log is numbered {seq}", seq)
            return
    if len(t.seqs) != len(t.events):
        yield t.violation("I-01", f"{len(t.events)} events have {len(t.seqs)} numbers", len(t.seqs))


def only_grows(earlier: History, later: History) -> Iterator[Violation]:
    """I-02: the log as it was read earlier is how the later one begins, numbers included."""
    t = Trace(earlier)
    if len(later.events) < len(earlier.events):
        yield t.violation("I-02", f"{len(earlier.events)} events became {len(later.events)}", len(later.events))
    numbers = range(1, len(later.events) + 1) if later.seqs is None else later.seqs
    for seq, before, number, after in zip(t.seqs, earlier.events, numbers, later.events, strict=False):
        if seq != number or before != after:
            yield t.violation("I-02", f"{before} became {after}", seq, number)
            return


def is_accepted_once(t: Trace) -> Iterator[Violation]:
    """I-03: the first event accepts the execution, with a version and the hash of the plan; no later one does."""
    if t.accepted is None:
        yield t.violation("I-03", "the log does not begin with ExecutionAccepted", t.seqs[0] if t.seqs else 0)
        return
    for seq, event in t.whole[1:]:
        if isinstance(event, events.ExecutionAccepted):
            yield t.violation("I-03", f"accepted again, with version {event.version}", seq, t.seqs[0])
    if t.accepted.version < 1:
        yield t.violation("I-03", f"accepted with version {t.accepted.version}", t.seqs[0])
    known = t.plan.definition.content_hash
    if t.accepted.hash != known:
        yield t.violation("I-03", f"accepted with the hash {t.accepted.hash}, but the plan's is {known}", t.seqs[0])


def ends_alternate_with_reopenings(t: Trace) -> Iterator[Violation]:
    """I-04: ends and reopenings alternate, beginning with an end; CANCELLED is not reopened, and SUCCESS only for an
    item of a map that had succeeded, if no parent has used what the execution gave.

    When nothing more will happen, the last of them is an end.
    """
    last: tuple[int, Event] | None = None
    for seq, event in t.whole:
        if isinstance(event, events.ExecutionReopened):
            if last is None or not (isinstance(last[1], REOPENABLE) or _is_mended(t, seq, last[1])):
                what = "an execution that had not ended" if last is None else f"after {_name(last[1])}"
                yield t.violation("I-04", f"reopened {what}", seq, last[0] if last else None)
            last = None
        elif isinstance(event, TERMINAL):
            if last is not None:
                yield t.violation("I-04", f"ended twice: {_name(last[1])}, {_name(event)}", seq, last[0])
            last = (seq, event)
    if last is None and t.history.is_quiescent:
        yield t.violation("I-04", "nothing more will happen, but it has not ended", t.seqs[-1] if t.seqs else 0)


def _is_mended(t: Trace, seq: int, end: Event) -> bool:
    """Whether an execution that succeeded is reopened there for a failure that a map had tolerated."""
    if not isinstance(end, events.ExecutionSucceeded) or t.accepted is None or t.accepted.parent is not None:
        return False
    place = list(t.seqs).index(seq) + 1
    if place >= len(t.events):
        return True
    event = t.events[place]
    if not isinstance(event, events.NodeRequeued | events.NodeFixed | events.ChildResumed) or event.item is None:
        return False
    return any(isinstance(each, events.NodeSucceeded) and each.node == event.node for each in t.events[:place])


def nothing_follows_the_end(t: Trace) -> Iterator[Violation]:
    """I-05: what follows an end is a reopening. (A second end is I-04's.)"""
    end: int | None = None
    for seq, event in zip(t.seqs, t.events, strict=False):
        kind = type(event)
        if kind in TERMINAL:
            end = seq
        elif kind is events.ExecutionReopened:
            end = None
        elif end is not None:
            yield t.violation("I-05", f"{_name(event)} after the end", seq, end)
            return


def time_never_goes_back(t: Trace) -> Iterator[Violation]:
    """I-21: `at` never decreases along the log."""
    before = t.events[0].at if t.events else 0
    for place, event in enumerate(t.events):
        if event.at < before:
            yield t.violation("I-21", f"at {event.at} after {before}", t.seqs[place], t.seqs[place - 1])
        before = event.at


def _name(event: Event) -> str:
    return type(event).__name__


# The published tables


def every_step_is_published(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-06: each step of the execution, of a node and of a run is in the tables of `core/state.py`.

    A start leads a waiting node through READY. Steps out of a final state are left to I-04, I-05, I-17 and I-18. A
    dead letter is requeued or fixed once, and only if there is one.
    """
    yield from _execution_steps(t)
    yield from _node_steps(t, graph)
    for lane in t.lanes.values():
        yield from _run_steps(t, lane)
        yield from _letter_steps(t, lane)


_TO: Final[dict[type, ExecutionState]] = {
    events.ExecutionStarted: ExecutionState.RUNNING,
    events.ExecutionPaused: ExecutionState.PAUSED,
    events.OutcomeDecided: ExecutionState.RUNNING,
    events.ExecutionSucceeded: ExecutionState.SUCCESS,
    events.ExecutionFailed: ExecutionState.FAILED,
    events.ExecutionCancelled: ExecutionState.CANCELLED,
    events.ExecutionTimedOut: ExecutionState.TIMEOUT,
    events.ExecutionReopened: ExecutionState.PENDING,
}


def _execution_steps(t: Trace) -> Iterator[Violation]:
    state, since, is_started = ExecutionState.PENDING, 1, False
    for seq, event in t.whole:
        if isinstance(event, events.ExecutionResumed):
            to = ExecutionState.RUNNING if is_started else ExecutionState.PENDING
        elif (known := _TO.get(type(event))) is not None:
            to = known
            is_started = to is ExecutionState.RUNNING or (is_started and to is not ExecutionState.PENDING)
        else:
            continue
        # What a person has paused may be paused by the parent too, which alone resumes it from then on.
        is_taken_over = (
            state is ExecutionState.PAUSED and isinstance(event, events.ExecutionPaused) and event.by == BY_PARENT
        )
        is_taken_over = is_taken_over or (state is to and isinstance(event, events.OutcomeDecided))
        if not state.is_ended and to not in EXECUTION_STEPS[state] and not is_taken_over:
            yield t.violation("I-06", f"the execution went from {state} to {to}", seq, since)
        state, since = to, seq


def _node_steps(t: Trace, graph: Graph) -> Iterator[Violation]:
    for move in graph.moves:
        before, after = move.before, move.after
        if before is NodeState.SUCCESS or before is NodeState.SKIPPED or move.step is Step.WITHDRAW:
            continue
        if move.step is Step.START and before is NodeState.WAITING:
            before = NodeState.READY
        # A start after a failure that was not withdrawn is about the run: I-18 and I-26 have it.
        if after not in NODE_STEPS[before]:
            node = t.plan.ids[move.node]
            yield t.violation("I-06", f"node {node} went from {move.before} to {after}", move.seq, move.since or None)


_RUN_AFTER: Final = {
    Kind.START: RunState.RUNNING,
    Kind.WAIT: RunState.WAITING,
    Kind.RETURN: RunState.PENDING,
    Kind.RELEASE: RunState.PENDING,
    Kind.RETRY: RunState.FAILED,
    Kind.ROUND: RunState.SUCCESS,
    Kind.SUCCEED: RunState.SUCCESS,
}


def _run_steps(t: Trace, lane: Lane) -> Iterator[Violation]:
    for before, mark in lane.pairs():
        if before is None or before.number != mark.number or before.opening != mark.opening:
            continue
        if before.kind not in UNDER_WAY or (mark.kind not in _RUN_AFTER and mark.kind is not Kind.GIVE_UP):
            continue
        was, now = _RUN_AFTER[before.kind], run_state_after(mark)
        if now not in RUN_STEPS[was] or not _is_allowed(before, mark):
            message = f"run {mark.number} of {t.name(mark)} went from {was} to {now}"
            yield t.violation("I-06", message, mark.seq, before.seq)


def _is_allowed(before: Mark, mark: Mark) -> bool:
    """What the states of the run alone do not tell."""
    if mark.kind is Kind.START:
        return is_held(before)
    return mark.kind is not Kind.RELEASE or _is_on_hold(before)


def run_state_after(mark: Mark) -> RunState:
    """The state a step leaves a run in."""
    if mark.kind is Kind.GIVE_UP:
        return RunState.FAILED if mark.event.gave_up is None else RunState.DLQ
    return _RUN_AFTER[mark.kind]


def is_held(mark: Mark) -> bool:
    """Whether the attempt may start again under its number: handed back, or on hold."""
    return mark.kind in (Kind.RETURN, Kind.RELEASE) or _is_on_hold(mark)


def _is_on_hold(mark: Mark) -> bool:
    return mark.kind is Kind.WAIT and isinstance(mark.event.wait, Hold)


def _letter_steps(t: Trace, lane: Lane) -> Iterator[Violation]:
    has_letter = False
    for mark in lane.marks:
        match mark.kind:
            case Kind.GIVE_UP:
                has_letter = mark.event.gave_up is not None
            case Kind.QUARANTINE:
                has_letter = True
            case Kind.RENEW | Kind.FIX if not has_letter and not _is_retry(mark):
                yield t.violation("I-06", f"{t.name(mark)} has no dead letter that is PENDING", mark.seq)
            case Kind.RENEW | Kind.FIX | Kind.RESUME:
                has_letter = False
            case _:
                pass


def _is_retry(mark: Mark) -> bool:
    """A retry begins every failed node again, also one that made no dead letter; so does a reopening what closes."""
    return isinstance(mark.event, events.NodesReset | events.ExecutionReopened)
