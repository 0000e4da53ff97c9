"""Rules about stopping, pausing and time limits: I-40 to I-42."""

from collections.abc import Iterator
from typing import Final

from ropewalk.checker.history import Violation
from ropewalk.checker.trace import ENDINGS, STARTS, TERMINAL, Trace
from ropewalk.core.events import (
    CancelRequested,
    DeadlinePassed,
    Event,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionPaused,
    ExecutionReopened,
    ExecutionResumed,
    ExecutionStarted,
    ExecutionTimedOut,
    OutcomeDecided,
    StopRequested,
)
from ropewalk.core.state import ExecutionState

ENDS: Final[dict[type, ExecutionState]] = {
    ExecutionFailed: ExecutionState.FAILED,
    ExecutionCancelled: ExecutionState.CANCELLED,
    ExecutionTimedOut: ExecutionState.TIMEOUT,
}
_ENDS_AS: Final[dict[type, type]] = {
    StopRequested: ExecutionFailed,
    CancelRequested: ExecutionCancelled,
    DeadlinePassed: ExecutionTimedOut,
}


def endings_end(t: Trace) -> Iterator[Violation]:
    """I-40: once the execution is told to end (CancelRequested, and likewise StopRequested and DeadlinePassed) nothing
    starts any more, and it ends as it was told last; what comes after the grace ends it at once. A failure that stops
    it grants a grace where `onFailure` is `cancel`, and lets what runs finish where it is `stop`.
    """
    if not t.has(*ENDINGS):
        return
    ending: tuple[int, Event] | None = None
    for seq, event in t.whole:
        if isinstance(event, ENDINGS):
            ending = (seq, event)
            if isinstance(event, StopRequested) and (event.grace_until is not None) != t.plan.cancel_on_failure:
                yield t.violation("I-40", "what runs was told to stop where it may finish, or the reverse", seq)
        elif isinstance(event, ExecutionReopened):
            ending = None
        elif ending is not None and _breaks(ending[1], event):
            yield t.violation("I-40", f"{_name(event)} after {_name(ending[1])}", seq, ending[0])
        elif isinstance(event, OutcomeDecided):
            ending = None  # what closes the execution starts: I-43
    yield from _outlasts_the_grace(t)


def _breaks(ending: Event, event: Event) -> bool:
    """Whether this may not follow once the execution is ending so."""
    if isinstance(event, OutcomeDecided):
        return ENDS.get(_ENDS_AS[type(ending)]) is not event.outcome
    if isinstance(event, TERMINAL):
        return type(event) is not _ENDS_AS[type(ending)]
    return isinstance(event, STARTS)


def _outlasts_the_grace(t: Trace) -> Iterator[Violation]:
    """Only the signal that comes after the grace may be recorded later than it, together with the end."""
    until: tuple[int, int] | None = None
    late: tuple[int, int] | None = None
    for seq, event in zip(t.seqs, t.events, strict=False):
        if late is not None and until is not None and event.at > late[1]:
            yield t.violation("I-40", f"it went on after the grace, which was over at {until[1]}", late[0], until[0])
            late = until = None
        if isinstance(event, ENDINGS):
            until, late = None if event.grace_until is None else (seq, event.grace_until), None
        elif isinstance(event, (OutcomeDecided, *TERMINAL)):
            until = late = None
        elif until is not None and late is None and event.at > until[1]:
            late = (seq, event.at)


def nothing_starts_in_a_pause(t: Trace) -> Iterator[Violation]:
    """I-41: between ExecutionPaused and ExecutionResumed nothing starts."""
    if not t.has(ExecutionPaused):
        return
    paused: int | None = None
    for seq, event in t.whole:
        if isinstance(event, ExecutionPaused):
            paused = seq
        elif isinstance(event, (ExecutionResumed, ExecutionReopened, OutcomeDecided, *TERMINAL)):
            paused = None
        elif paused is not None and isinstance(event, (ExecutionStarted, *STARTS)):
            yield t.violation("I-41", f"{_name(event)} in a pause", seq, paused)


def deadlines_pass_in_time(t: Trace) -> Iterator[Violation]:
    """I-42: an execution times out only after a deadline that is in force has passed.

    A deadline is set by the start and by a resumption; a pause suspends it, a cancellation, a failure that cancels and
    the end lift it.
    """
    if not t.has(DeadlinePassed, ExecutionTimedOut):
        return
    deadline: tuple[int, int] | None = None
    passed: int | None = None
    for seq, event in t.whole:
        if isinstance(event, ExecutionStarted | ExecutionResumed):
            deadline = None if event.deadline is None else (seq, event.deadline)
        elif isinstance(event, DeadlinePassed):
            yield from _early(t, seq, event, deadline)
            passed = seq
        elif isinstance(event, ExecutionTimedOut) and passed is None:
            yield t.violation("I-42", "it timed out although no deadline had passed", seq)
        is_lifted = isinstance(event, StopRequested) and event.grace_until is not None
        if is_lifted or isinstance(event, (ExecutionPaused, CancelRequested, *TERMINAL)):
            deadline = passed = None
        elif isinstance(event, OutcomeDecided):
            deadline = None


def _early(t: Trace, seq: int, event: DeadlinePassed, deadline: tuple[int, int] | None) -> Iterator[Violation]:
    if deadline is None:
        yield t.violation("I-42", "a deadline passed although none was in force", seq)
    elif event.at < deadline[1]:
        yield t.violation("I-42", f"the deadline {deadline[1]} passed at {event.at}", seq, deadline[0])


def _name(event: Event) -> str:
    return type(event).__name__
