"""What the reports of work and the arrivals a wait is for mean.

A report about an attempt that is not under way (late, repeated, from before a reopening) decides nothing.
"""

from msgspec.structs import replace

from ropewalk.core.canonical import writable, writable_error
from ropewalk.core.commands import CancelChild
from ropewalk.core.errors import ErrorType, InvalidTransition, RunError
from ropewalk.core.events import (
    ChildResumed,
    ExecutionReopened,
    MapExpanded,
    RunReturned,
    RunWaiting,
    SignalReceived,
    SlotTaken,
)
from ropewalk.core.execution.closing import is_closing, require_not_undone
from ropewalk.core.execution.evolving_whole import record
from ropewalk.core.execution.filtering import with_scope
from ropewalk.core.execution.items import settle_map
from ropewalk.core.execution.kinds import is_worth_retrying
from ropewalk.core.execution.mending import may_mend
from ropewalk.core.execution.outcomes import arrive, give_up, retry_later, succeed
from ropewalk.core.execution.progress import PENDING, Progress
from ropewalk.core.execution.settling import begin, fail, release, succeed_whole
from ropewalk.core.execution.work import MAX_ITEMS, RUNNING, Phase, Work
from ropewalk.core.expression import ExpressionError
from ropewalk.core.reach import refusal
from ropewalk.core.retry import delay_after, gave_up_for
from ropewalk.core.signals import (
    ChildEnded,
    ChildReopened,
    Decide,
    Due,
    Evaluated,
    Expanded,
    Failed,
    Lost,
    Matched,
    Released,
    Report,
    Returned,
    Start,
    Succeeded,
    Suspended,
    Tell,
)
from ropewalk.core.state import ExecutionState, GaveUp, NodeState
from ropewalk.core.waits import Approval, ChildWait, EventWait, Hold, SignalWait, Timer, writable_wait

MAX_SIGNALS = 1_000
WORKER_LOST = RunError(ErrorType.TRANSIENT, "worker lost")


def start(x: Progress, signal: Start, now: int) -> None:
    """A slot is granted; taken only if it is still needed, else asked for again when it is."""
    if not x.needs_slot:
        x.slot_answered()
    elif x.state is PENDING:
        begin(x, now)
    else:
        record(x, SlotTaken(now))


def due(x: Progress, signal: Due, now: int) -> None:
    """Nothing to decide: every signal ends by firing what is due."""


# Reports


def _under_way(x: Progress, report: Report, item: int | None) -> Work | None:
    """The attempt a report is about, if it is running."""
    work = x.work(report.node, item)
    if work is None or work.phase is not RUNNING or work.attempt != report.attempt:
        return None
    return work


def succeeded(x: Progress, report: Succeeded, now: int) -> None:
    # As `_under_way` does, without the call: nearly all reports are of successes.
    work = x.work(report.node, report.item)
    if work is not None and work.phase is RUNNING and work.attempt == report.attempt:
        succeed(x, work, report, now)


def failed(x: Progress, report: Failed, now: int) -> None:
    """Retry while the error is worth it and the budget lasts, else give up."""
    work = _under_way(x, report, report.item)
    if work is None:
        return
    report = _as_kept(report)
    policy = x.plan.retries[work.node]
    is_worth_it, faults = is_worth_retrying(x, work, report.error)
    if not is_worth_it:
        give_up(x, work, report, gave_up_for(report.error.type), now, None, faults)
    elif work.tries < policy.max_attempts or _was_told_to_stop(x):
        retry_later(x, work, report, delay_after(policy, work.tries, report.jitter, report.error.retry_after), now)
    else:
        give_up(x, work, report, gave_up_for(report.error.type), now)


def _as_kept(report: Failed) -> Failed:
    error = writable_error(report.error)
    return report if error is report.error else replace(report, error=error)


def _was_told_to_stop(x: Progress) -> bool:
    """Whether an attempt may have failed only because its execution told it to stop; that says nothing about it."""
    return x.grace_until is not None


def lost(x: Progress, report: Lost, now: int) -> None:
    """The attempt counts, so a node that kills its worker gives up; the first loss is made good at once."""
    work = _under_way(x, report, report.item)
    if work is None:
        return
    failure = Failed(report.node, report.attempt, WORKER_LOST, report.item)
    policy = x.plan.retries[work.node]
    if work.tries >= policy.max_attempts:
        give_up(x, work, failure, GaveUp.MAX_RETRIES, now)
    else:
        delay = delay_after(policy, work.tries, report.jitter) if work.lost else 0
        retry_later(x, work, failure, delay, now, lost=True)


def suspended(x: Progress, report: Suspended, now: int) -> None:
    """The attempt waits; a wait for a signal that was told already is over at once, one out of reach has failed."""
    work = _under_way(x, report, report.item)
    if work is None:
        return
    wait = writable_wait(report.wait)
    if isinstance(wait, EventWait):
        try:
            wait = _event_wait(x, work, wait)
        except ExpressionError as error:
            wrong = RunError(ErrorType.PERMANENT, writable(error.message))
            about = (report.node, report.attempt, wrong, report.item, report.inputs, 0.0, report.inputs_blob)
            give_up(x, work, Failed(*about), GaveUp.PERMANENT_ERROR, now)
            return
    waiting = (now, report.node, report.attempt, wait, _patience(x, work, report, now), report.item)
    record(x, RunWaiting(*waiting, report.inputs, report.inputs_blob))
    if isinstance(wait, SignalWait) and wait.name in x.signals:
        _answer(x, work, wait.name, now)


def _event_wait(x: Progress, work: Work, wait: EventWait) -> EventWait:
    """The wait with the values its filter reads; ExpressionError if they, or the event, cannot be had."""
    if bounded_by := x.bounded_by:
        raise ExpressionError(refusal(f"the event {wait.subject!r}", bounded_by), 0)
    try:
        return with_scope(x, work, wait)
    except ExpressionError as error:
        raise ExpressionError(f"filter: {error}", 0) from error


def _patience(x: Progress, work: Work, report: Suspended, now: int) -> int | None:
    """When the wait ends by itself: at a timer's moment or the node's own time limit, if it has one."""
    wait = report.wait
    if isinstance(wait, Hold):
        return wait.due
    limit = x.plan.timeouts[work.node]
    if isinstance(wait, Timer):
        return wait.due if limit is None else min(wait.due, now + limit)
    return None if limit is None else now + limit


def expanded(x: Progress, report: Expanded, now: int) -> None:
    work = _under_way(x, report, None)
    if work is None or work.node in x.maps:
        return
    if report.count > MAX_ITEMS:
        error = RunError(ErrorType.PERMANENT, f"forEach gives {report.count} items; at most {MAX_ITEMS} are allowed")
        give_up(x, work, Failed(report.node, report.attempt, error), GaveUp.PERMANENT_ERROR, now)
        return
    record(x, MapExpanded(now, report.node, report.attempt, report.count))
    settle_map(x, work.node, now)


def evaluated(x: Progress, report: Evaluated, now: int) -> None:
    """The output is there; if anything has happened since it was asked for, it is asked for again."""
    is_over = x.state is ExecutionState.RUNNING and x.ending is None and not x.open_nodes
    if is_over and not x.unhandled and report.seq == x.seq + len(x.events):
        if report.error is not None:
            fail(x, now, f"output: {report.error}")
        else:
            succeed_whole(x, now, report.output, report.blob)


def returned(x: Progress, report: Returned, now: int) -> None:
    if _under_way(x, report, report.item) is not None:
        record(x, RunReturned(now, report.node, report.attempt, report.item))


# Arrivals


def _waiting(x: Progress, node: str, item: int | None) -> Work | None:
    work = x.work(node, item)
    return work if work is not None and work.phase is Phase.WAITING else None


def decide(x: Progress, signal: Decide, now: int) -> None:
    """The first answer wins."""
    work = _waiting(x, signal.node, signal.item)
    if signal.item is None and x.plan.index.get(signal.node) in x.maps:
        raise InvalidTransition(f"{signal.node} asks about each of its items; say which of them is answered")
    if work is None or not isinstance(work.wait, Approval):
        raise InvalidTransition(f"{signal.node} waits for no approval; it may have been answered, or not yet be asked")
    port = "approved" if signal.approved else "rejected"
    output = {"approved": signal.approved, "by": signal.by, "payload": signal.payload}
    succeed(x, work, Succeeded(signal.node, work.attempt, output, (port,)), now)


def tell(x: Progress, signal: Tell, now: int) -> None:
    """Keep what was told, and hand it to the wait that has been there longest; what comes again changes nothing."""
    if signal.once is not None and signal.once in x.told_once:
        return
    if x.is_ended:
        raise x.refusal(f"take the signal {signal.name!r}")
    if sum(map(len, x.signals.values())) >= MAX_SIGNALS:
        raise InvalidTransition(f"{MAX_SIGNALS} signals are kept already and nothing waits for them")
    record(x, SignalReceived(now, signal.name, signal.payload, signal.once))
    listeners = x.listeners.get(signal.name)
    while listeners:
        work = listeners.popleft()
        if work.phase is Phase.WAITING and work.wait == SignalWait(signal.name):
            _answer(x, work, signal.name, now)
            return


def _answer(x: Progress, work: Work, name: str, now: int) -> None:
    arrive(x, work, x.signals[name][0], now)


def matched(x: Progress, signal: Matched, now: int) -> None:
    work = _waiting(x, signal.node, signal.item)
    if work is not None and isinstance(work.wait, EventWait) and work.attempt == signal.attempt:
        # A match that an earlier version has written down names no subject, and its output is the payload alone.
        is_named = signal.subject is not None
        arrive(x, work, {"subject": signal.subject, "payload": signal.payload} if is_named else signal.payload, now)


def released(x: Progress, signal: Released, now: int) -> None:
    work = _waiting(x, signal.node, signal.item)
    if work is not None and isinstance(work.wait, Hold) and work.attempt == signal.attempt:
        release(x, work, now)


def child_ended(x: Progress, signal: ChildEnded, now: int) -> None:
    """A child's end is the node's, unless another follows; a failed one has dead letters, so the node makes none."""
    work = _waiting(x, signal.node, signal.item)
    if work is None or not isinstance(work.wait, ChildWait) or work.attempt != signal.attempt:
        return
    if _is_known(work, signal):
        if not signal.stands:
            return  # the child has been reopened since, or will be
        # It refused one request, and may have followed another that was told again: nothing depends on that any more.
        x.commands.append(CancelChild(work.wait.child))
    if signal.state is ExecutionState.SUCCESS:
        arrive(x, work, signal.output, now, signal.blob)
        return
    reason = f": {signal.error}" if signal.error else ""
    error = RunError(ErrorType.PERMANENT, writable(f"child execution {work.wait.child} ended {signal.state}{reason}"))
    failure = Failed(signal.node, work.attempt, error)
    if x.ending is not None and signal.state is ExecutionState.CANCELLED:
        # It was called off with everything else, and has not failed.
        retry_later(x, work, failure, 0, now)
        return
    is_tried_again, faults = _is_tried_again(x, work, error, signal.state)
    if is_tried_again:
        delay = delay_after(x.plan.retries[work.node], work.tries, signal.jitter)
        retry_later(x, work, failure, delay, now, child=signal.state)
    else:
        give_up(x, work, failure, None, now, signal, faults)


def _is_known(work: Work, signal: ChildEnded) -> bool:
    return work.opening is not None and signal.opening is not None and signal.opening <= work.opening


def _is_tried_again(x: Progress, work: Work, error: RunError, ended: ExecutionState) -> tuple[bool, tuple[str, ...]]:
    """Whether another child follows one that ended so; one that a person cancelled is not replaced."""
    is_asked_for = ended.is_reopenable and x.plan.has_retry(work.node)
    if not is_asked_for or work.tries >= x.plan.retries[work.node].max_attempts:
        return False, ()
    has_kinds = x.plan.retries[work.node].on is not None or work.node in x.plan.retry_when
    return is_worth_retrying(x, work, error, ended) if has_kinds else (True, ())


def child_reopened(x: Progress, signal: ChildReopened, now: int) -> None:
    """The node waits for its child again, and a parent that failed over it goes on."""
    work = x.work(signal.node, signal.item)
    if work is None or work.attempt != signal.attempt or work.child is None:
        raise InvalidTransition(f"{signal.node} does not depend on that child any more")
    if work.is_child_undone:
        raise InvalidTransition(f"the child of {signal.node} has undone what it did")
    if not work.child.is_reopenable:
        raise InvalidTransition(f"the child of {signal.node} is {work.child}, which is final")
    is_kept = x.nodes[work.node] is NodeState.SUCCESS and bool(x.plan.keeps_letters[work.node])
    if work.node not in x.unhandled and not _is_running_map(x, work) and not is_kept:
        raise InvalidTransition(f"the failure of {signal.node} was handled")
    is_final = x.is_ended and not x.state.is_reopenable and not may_mend(x, work)
    if x.ending is not None or is_closing(x) or is_final:
        raise x.refusal("reopen the child")
    require_not_undone(x, "reopen the child")
    if x.is_ended:
        record(x, ExecutionReopened(now, signal.by, "child"))
    record(x, ChildResumed(now, signal.node, signal.attempt, signal.item))


def _is_running_map(x: Progress, work: Work) -> bool:
    return work.item is not None and work.node in x.works and work.node not in x.errors
