"""Rules about attempts: I-13, I-17, I-18, I-20, I-22, I-23.

Handed back or on hold, an attempt goes on under its number. A retry, a requeue, a reopening that finds the attempt cut
short, and the end of a round give its node or item a fresh budget; attempt numbers go on for life.
"""

from collections.abc import Iterator

from ropewalk.checker.graph import Graph, Move
from ropewalk.checker.history import Violation
from ropewalk.checker.lanes import ENDS, HALTS, UNDER_WAY, Kind, Lane, Mark, Step
from ropewalk.checker.trace import Trace
from ropewalk.core.definition.node_type import EXPIRED_PORT
from ropewalk.core.events import (
    ExecutionReopened,
    NodeSucceeded,
    RunFailed,
    RunWaiting,
)
from ropewalk.core.retry import is_retryable, least_delay
from ropewalk.core.state import GaveUp, NodeState
from ropewalk.core.waits import ChildWait, SignalWait


def attempts_follow_each_other(t: Trace) -> Iterator[Violation]:
    """I-13: attempts at a node or item are 1 to k, and each starts when the one before it has ended.

    One that was cut short by the end of the execution has ended. Every report names the attempt under way. Each attempt
    that waits for a child has one of its own.
    """
    for lane in t.lanes.values():
        yield from _children_of_their_own(t, lane)
        number, last = 0, None
        for mark in lane.marks:
            if mark.kind is Kind.START:
                yield from _start_in_turn(t, mark, number, last)
                number = mark.number
            elif mark.number != number or number == 0:
                message = f"attempt {mark.number} of {t.name(lane)} is named, but {number} is under way"
                yield t.violation("I-13", message, mark.seq, last.seq if last else None)
            last = mark


def _children_of_their_own(t: Trace, lane: Lane) -> Iterator[Violation]:
    attempts: dict[str, Mark] = {}
    for mark in lane.marks if t.has(RunWaiting) else ():
        if mark.kind is Kind.WAIT and isinstance(mark.event.wait, ChildWait):
            first = attempts.setdefault(mark.event.wait.child, mark)
            if first.number != mark.number:
                message = f"attempt {mark.number} of {t.name(lane)} waits for the child of attempt {first.number}"
                yield t.violation("I-13", message, mark.seq, first.seq)


def _start_in_turn(t: Trace, mark: Mark, number: int, last: Mark | None) -> Iterator[Violation]:
    is_cut_short = last is not None and last.opening != mark.opening
    is_under_way = last is not None and last.kind in UNDER_WAY and not is_cut_short
    if mark.number == number and number > 0 and not is_cut_short:
        return
    if mark.number != number + 1:
        message = f"attempt {mark.number} of {t.name(mark)} started after attempt {number}"
        yield t.violation("I-13", message, mark.seq, last.seq if last else None)
    elif is_under_way and last is not None:
        message = f"attempt {mark.number} of {t.name(mark)} started before attempt {number} ended"
        yield t.violation("I-13", message, mark.seq, last.seq)


def results_are_recorded_once(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-17: a node or item succeeds once, an attempt ends once, a signal told to the execution answers one wait, and
    what is told under a key is told once.

    An attempt that failed may still be given up by hand. The same attempt lost twice is I-20's.
    """
    for lane in t.lanes.values():
        yield from _ends_once(t, lane)
    for move in graph.moves:
        if _is_success(move.step, move.before) and t.is_expanded(move.node, move.seq):
            yield t.violation("I-17", f"map {t.plan.ids[move.node]} succeeded twice", move.seq, move.since)
    yield from _answers_once(t)
    yield from _told_once(t)


def _told_once(t: Trace) -> Iterator[Violation]:
    known: dict[str, int] = {}
    for seq, event in t.told:
        if event.once is not None and known.setdefault(event.once, seq) != seq:
            yield t.violation("I-17", f"a signal {event.name!r} was told twice under one key", seq, known[event.once])


def _ends_once(t: Trace, lane: Lane) -> Iterator[Violation]:
    success = end = None
    for mark in lane.marks:
        if mark.kind in (Kind.SUCCEED, Kind.FIX) and success is not None:
            yield t.violation("I-17", f"{t.name(lane)} succeeded twice", mark.seq, success.seq)
        elif mark.kind in ENDS and end is not None and end.number == mark.number and not _is_allowed_again(end, mark):
            yield t.violation("I-17", f"attempt {mark.number} of {t.name(lane)} ended twice", mark.seq, end.seq)
        if mark.kind in (Kind.SUCCEED, Kind.FIX):
            success = mark
        if mark.kind in ENDS:
            end = mark
        elif mark.kind is Kind.RESUME:
            end = None
        elif is_closed_again(mark):
            success = None


def _is_allowed_again(end: Mark, mark: Mark) -> bool:
    if end.kind is Kind.RETRY and mark.kind is Kind.RETRY:
        return bool(end.event.lost and mark.event.lost)
    return end.kind is Kind.RETRY and mark.kind is Kind.GIVE_UP and mark.event.gave_up is GaveUp.MANUAL


def _answers_once(t: Trace) -> Iterator[Violation]:
    """Each answered wait for a signal uses up one that was told before."""
    if not t.has(RunWaiting):
        return
    told: dict[str, list[int]] = {}
    for seq, event in t.told:
        told.setdefault(event.name, []).append(seq)
    used: dict[str, int] = {}
    for seq, name, signal in sorted(_answered(t)):
        place = used[signal] = used.get(signal, 0) + 1
        known = told.get(signal, [])
        if place > len(known) or known[place - 1] > seq:
            yield t.violation("I-17", f"{name} was answered by a signal {signal!r} that was not told, or was used", seq)


def _answered(t: Trace) -> Iterator[tuple[int, str, str]]:
    """The successes that ended a wait for a signal, except by its expiry."""
    for lane in t.lanes.values():
        for before, mark in lane.pairs():
            if before is None or before.kind is not Kind.WAIT or mark.kind is not Kind.SUCCEED:
                continue
            has_expired = isinstance(mark.event, NodeSucceeded) and mark.event.ports == (EXPIRED_PORT,)
            if isinstance(before.event.wait, SignalWait) and not has_expired:
                yield mark.seq, t.name(lane), before.event.wait.name


def what_ended_stays_as_it_is(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-18: nothing happens to an attempt after its end, nor to a node that succeeded or was skipped, except that a
    failure which a map tolerated is mended; a failed node or item starts again only after a retry, a requeue, or its
    child's reopening.
    """
    for lane in t.lanes.values():
        for before, mark in lane.pairs():
            if before is not None and _is_after_the_end(before, mark):
                message = f"{t.name(lane)}: {mark.kind.name} of attempt {mark.number} after its end"
                yield t.violation("I-18", message, mark.seq, before.seq)
    resumed = {mark.seq for mark in t.marks if mark.kind is Kind.RESUME} if graph.mended else frozenset[int]()
    for move in graph.moves:
        if move.before is not NodeState.SUCCESS and move.before is not NodeState.SKIPPED:
            continue
        if not _is_success(move.step, move.before) and not _is_mended(t, move, is_child=move.seq in resumed):
            name = t.plan.ids[move.node]
            yield t.violation("I-18", f"{name} was {move.before}, then: {move.step.name}", move.seq, move.since)


def _is_mended(t: Trace, move: Move, *, is_child: bool) -> bool:
    """Whether it is an item of a map; that it had a dead letter is I-06's, but one that is a child has none."""
    if move.step is not Step.WITHDRAW or move.before is not NodeState.SUCCESS:
        return False
    return t.is_expanded(move.node, move.seq) and (not is_child or bool(t.plan.keeps_letters[move.node]))


def _is_success(step: Step, before: NodeState) -> bool:
    """A second success is I-17's."""
    return before is NodeState.SUCCESS and step in (Step.SUCCEED, Step.FIX)


def _is_after_the_end(before: Mark, mark: Mark) -> bool:
    if before.kind is Kind.GIVE_UP or before.kind is Kind.QUARANTINE:
        is_permanent = before.kind is Kind.GIVE_UP and not is_retryable(before.event.error.type)
        return mark.kind in HALTS or (mark.kind is Kind.START and not is_permanent)
    if before.kind is Kind.RETRY or before.kind is Kind.ROUND:
        return mark.kind in HALTS or (mark.kind is Kind.START and mark.number == before.number)
    if before.kind in UNDER_WAY and before.opening != mark.opening:
        return mark.kind in HALTS or mark.kind in ENDS
    return before.kind in (Kind.SUCCEED, Kind.FIX) and mark.kind in UNDER_WAY


def an_attempt_is_lost_once(t: Trace) -> Iterator[Violation]:
    """I-20: an attempt is recorded as lost with its worker at most once, however many notice."""
    for lane in t.lanes.values() if t.has(RunFailed) else ():
        lost: dict[int, int] = {}
        for mark in lane.marks:
            if mark.kind is Kind.RETRY and mark.event.lost:
                if mark.number in lost:
                    message = f"attempt {mark.number} of {t.name(lane)} was lost twice"
                    yield t.violation("I-20", message, mark.seq, lost[mark.number])
                lost[mark.number] = mark.seq


# Retrying


def budgets(lane: Lane) -> Iterator[list[Mark]]:
    """The lane's marks, cut where a fresh budget of attempts begins."""
    part: list[Mark] = []
    for before, mark in lane.pairs():
        if before is not None and is_renewed(before, mark):
            yield part
            part = []
        part.append(mark)
    if part:
        yield part


def is_closed_again(mark: Mark) -> bool:
    """Whether a node that has closed the execution is to do so once more, for it was reopened."""
    return mark.kind is Kind.RENEW and isinstance(mark.event, ExecutionReopened)


def is_renewed(before: Mark, mark: Mark) -> bool:
    """Whether a fresh budget begins between two marks."""
    if mark.kind is Kind.RENEW or before.kind is Kind.ROUND:
        return True
    is_over = before.kind in (Kind.SUCCEED, Kind.GIVE_UP, Kind.QUARANTINE, Kind.FIX, Kind.RENEW)
    return before.opening != mark.opening and not is_over


def budgets_are_kept(t: Trace) -> Iterator[Violation]:
    """I-22: a node or item has at most `maxAttempts` attempts on one budget.

    An attempt that was handed back or held goes on under its number and is one.
    """
    for lane in t.lanes.values():
        limit = t.plan.retries[lane.node].max_attempts
        if lane.number <= limit:
            continue
        for part in budgets(lane):
            numbers = dict.fromkeys(mark.number for mark in part if mark.kind is Kind.START)
            if len(numbers) > limit:
                message = f"{t.name(lane)} had {len(numbers)} attempts, {limit} are allowed"
                yield t.violation("I-22", message, part[-1].seq, part[0].seq)


def retries_wait_their_time(t: Trace) -> Iterator[Violation]:
    """I-23: the next attempt starts no earlier than the recorded retry time, and that leaves at least the backoff of
    the node's policy; the first attempt lost on a budget is repeated at once.
    """
    for lane in t.lanes.values() if t.has(RunFailed) else ():
        for part in budgets(lane):
            yield from _hasty_retries(t, lane, part)


def _hasty_retries(t: Trace, lane: Lane, part: list[Mark]) -> Iterator[Violation]:
    used = 0
    lost: dict[int, None] = {}
    pending: Mark | None = None
    for mark in part:
        if mark.kind is Kind.START:
            if pending is not None and mark.event.at < pending.event.retry_at:
                message = f"{t.name(lane)} was tried again at {mark.event.at}, not at {pending.event.retry_at}"
                yield t.violation("I-23", message, mark.seq, pending.seq)
            used += pending is not None or used == 0
            pending = None
        elif mark.kind is Kind.RETRY and mark.event.retry_at is not None:
            pending = mark
            if mark.event.lost:
                lost[mark.number] = None
            is_at_once = mark.event.lost and len(lost) == 1
            wish = None if mark.event.lost else mark.event.error.retry_after
            delay = 0 if is_at_once else least_delay(t.plan.retries[lane.node], used, wish)
            if mark.event.retry_at < mark.event.at + delay:
                yield t.violation("I-23", f"{t.name(lane)} is to be tried again too early", mark.seq)
