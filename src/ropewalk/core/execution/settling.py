"""What every signal ends with: skip what will never run, start what may, end what is over, park what only waits."""

from heapq import heappop
from typing import Any

from ropewalk.core.canonical import writable
from ropewalk.core.commands import EvaluateOutput
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, RunError, Unfinished
from ropewalk.core.events import (
    Blob,
    DeadlinePassed,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionStarted,
    ExecutionSucceeded,
    ExecutionTimedOut,
    ItemsStarted,
    NodesSkipped,
    NodesStarted,
    RunReleased,
    RunStarted,
    SlotReleased,
    StopRequested,
)
from ropewalk.core.execution import closing
from ropewalk.core.execution.evolving import EXPIRED, first_starts
from ropewalk.core.execution.evolving_whole import record
from ropewalk.core.execution.items import settle_map
from ropewalk.core.execution.outcomes import arrive, give_up, succeed
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.view import TooMuch, output_of
from ropewalk.core.execution.work import Phase, Work
from ropewalk.core.expression import ExpressionError
from ropewalk.core.signals import Failed, Succeeded
from ropewalk.core.state import ExecutionState, GaveUp, NodeState
from ropewalk.core.waits import Hold, Timer

RUNNING, PAUSED, NODE_READY = ExecutionState.RUNNING, ExecutionState.PAUSED, NodeState.READY
GRACE = 10 * SECOND
PARK_AFTER = 10 * SECOND


def settle(x: Progress, now: int) -> None:
    """Draw every conclusion from what is known at `now` about an execution that is not over."""
    if x.is_timed:
        fire_timers(x, now)
    if x.to_skip:
        skip(x, now)
    if x.ending is None and x.state is RUNNING:
        go_on(x, now)
    if x.ending is not None:
        end_when_quiet(x, now)
    elif x.state is PAUSED and x.has_slot and not x.running:
        record(x, SlotReleased(now))
    if not x.has_slot and not x.is_ended:
        x.ask_for_slot()


def skip(x: Progress, now: int) -> None:
    """Every edge into these nodes is dead: they will never run, nor what depends on them alone."""
    ids = x.plan.ids
    record(x, NodesSkipped(now, tuple([ids[node] for node in x.to_skip])))


def go_on(x: Progress, now: int) -> None:
    """Start what is ready, unless a failure stops everything, then see whether that was all."""
    if x.ready_count and x.has_slot:
        start_ready(x, now)
    if x.new_failures and _must_stop(x):
        _stop(x, now)
    elif not x.open_nodes:
        finish(x, now)
    elif x.has_slot and not x.running and not x.may_start and _only_waits(x, now):
        record(x, SlotReleased(now))


def _stop(x: Progress, now: int) -> None:
    """Nothing starts any more; with `onFailure: cancel` what runs is told to stop."""
    grace_until = now + GRACE if x.plan.cancel_on_failure else None
    record(x, StopRequested(now, x.plan.ids[next(iter(x.new_failures))], grace_until))


def _must_stop(x: Progress) -> bool:
    return bool(x.new_failures) and x.plan.stop_on_failure


def _only_waits(x: Progress, now: int) -> bool:
    due = x.next_timer()
    return due is None or due - now > PARK_AFTER


def start_ready(x: Progress, now: int) -> None:
    """Start attempts in the order they became ready, as many as `maxParallel` and the worker have room for."""
    if not x.is_simple:
        _start_mixed(x, now)
        return
    room = x.ready_count if x.room is None else x.room
    limit = x.plan.max_parallel
    works = x.next_in_line(room if limit is None else min(room, limit - x.running))
    if works:
        x.events.append(NodesStarted(now, first_starts(x, works, now)))


def _start_mixed(x: Progress, now: int) -> None:
    """The same where some are further attempts or items of maps: these may end, or put others in line, at once."""
    most = None if x.room is None else x.running + x.room
    while x.ready_count and not (x.new_failures and _must_stop(x)):
        room = x.ready_count if most is None else most - x.running
        works = x.next_to_go_on(room) or x.next_in_line(min(room, x.places))
        if not works:
            return
        _start(x, works, now)
        if x.to_skip:
            skip(x, now)


def _start(x: Progress, works: list[Work], now: int) -> None:
    """Record the starts; those of one kind that stand together are one event."""
    at = 0
    while at < len(works) and not (x.new_failures and _must_stop(x)):
        names = _first_starts(x, works, at)
        if names:
            record(x, NodesStarted(now, names))
            if x.maps:
                _settle_maps(x, works[at : at + len(names)], now)
            at += len(names)
        else:
            at += _start_other(x, works, at, now)


def _first_starts(x: Progress, works: list[Work], at: int) -> tuple[str, ...]:
    """The nodes from `at` on that start for the first time since they became ready."""
    nodes, ids = x.nodes, x.plan.ids
    names = []
    for work in works[at:] if at else works:
        if work.item is not None or nodes[work.node] is not NODE_READY:
            break
        names.append(ids[work.node])
    return tuple(names)


def _start_other(x: Progress, works: list[Work], at: int, now: int) -> int:
    """Items of one map that start for the first time stand together too; any other attempt starts by itself."""
    first = works[at]
    node = x.plan.ids[first.node]
    items: list[int] = []
    while at + len(items) < len(works):
        work = works[at + len(items)]
        if work.node != first.node or work.item is None or work.used or work.again:
            break
        items.append(work.item)
    if items:
        record(x, ItemsStarted(now, node, tuple(items)))
        return len(items)
    record(x, RunStarted(now, node, first.next_attempt, first.item))
    return 1


def _settle_maps(x: Progress, works: list[Work], now: int) -> None:
    """A map that goes on after a reopening may have nothing left to do."""
    for work in works:
        settle_map(x, work.node, now)


# The beginning


def begin(x: Progress, now: int) -> None:
    """Its first slot is there, and its time begins to run."""
    record(x, ExecutionStarted(now, None if x.plan.timeout is None else now + x.plan.timeout))


# Time


def fire_timers(x: Progress, now: int) -> None:
    """Let happen what was to happen by now, in the order it was due."""
    while x.ending is None and (due := x.next_timer()) is not None and due <= now:
        work = heappop(x.timers)[2]
        if work.phase is Phase.BACKOFF:
            x.leave(work)
            x.queue(work)
        else:
            _wait_is_over(x, work, now)
    if x.deadline is not None and x.deadline <= now:
        if x.closing is None:
            record(x, DeadlinePassed(now, now + GRACE))
        else:
            closing.cut_short(x, now)


def _wait_is_over(x: Progress, work: Work, now: int) -> None:
    node = x.plan.ids[work.node]
    if isinstance(work.wait, Hold):
        release(x, work, now)
    elif isinstance(work.wait, Timer) and work.due == work.wait.due:
        arrive(x, work, None, now)
    elif work.item is None and EXPIRED[0] in x.plan.port_names[work.node]:
        succeed(x, work, Succeeded(node, work.attempt, ports=EXPIRED), now)
    else:
        error = RunError(ErrorType.TIMEOUT, "no answer came in time")
        give_up(x, work, Failed(node, work.attempt, error), GaveUp.MAX_RETRIES, now)


def release(x: Progress, work: Work, now: int) -> None:
    """A held attempt gets back in line, under its number; a fold of the log knows that it need not wait."""
    record(x, RunReleased(now, x.plan.ids[work.node], work.attempt, work.item))


# The end


def end_when_quiet(x: Progress, now: int) -> None:
    """An ending execution is over when nothing runs any more, or when the grace is used up."""
    is_over = not x.running and not x.waiting
    if x.grace_until is not None and x.grace_until <= now:
        is_over = True
    if not is_over:
        return
    if closing.is_due(x) and x.ending is not None:
        is_failed = x.ending is ExecutionState.FAILED
        _close(x, now, x.ending, failure_message(x) if is_failed else None)
    elif x.closing is not None:
        closing.end(x, now)
    elif x.ending is ExecutionState.CANCELLED:
        record(x, ExecutionCancelled(now))
    elif x.ending is ExecutionState.TIMEOUT:
        record(x, ExecutionTimedOut(now))
    else:
        record(x, ExecutionFailed(now, failure_message(x)))


def _close(x: Progress, now: int, outcome: ExecutionState, error: str | None = None) -> None:
    """The outcome is decided; what closes the execution has its turn."""
    closing.decide(x, now, outcome, error)
    go_on(x, now)


def fail(x: Progress, now: int, error: str) -> None:
    """The execution has failed."""
    if closing.is_due(x):
        _close(x, now, ExecutionState.FAILED, error)
    else:
        record(x, ExecutionFailed(now, error))


def succeed_whole(x: Progress, now: int, output: Any, blob: Blob | None = None) -> None:
    """The execution has succeeded."""
    if closing.is_due(x):
        closing.decide(x, now, ExecutionState.SUCCESS, None, output, blob)
        go_on(x, now)
    else:
        record(x, ExecutionSucceeded(now, output, blob))


def finish(x: Progress, now: int) -> None:
    """Nothing is ready, running or waiting: the execution ended, well if no failure is unhandled."""
    if x.closing is not None:
        closing.end(x, now)
    elif x.unhandled:
        fail(x, now, failure_message(x))
    else:
        conclude(x, now)


def conclude(x: Progress, now: int) -> None:
    """The execution ended well, if its output can be told; one that takes long is asked of the worker that has a slot
    for it, once.
    """
    if x.output_asked is not None and x.output_asked == x.seq + len(x.events):
        return
    try:
        output = output_of(x)
    except (ExpressionError, TooMuch) as error:
        fail(x, now, writable(f"output: {error}"))
    except Unfinished:
        if x.has_slot:
            x.output_asked = x.seq + len(x.events)
            x.commands.append(EvaluateOutput(x.output_asked))
    else:
        succeed_whole(x, now, output)


def failure_message(x: Progress) -> str:
    """Which node failed first, why, and how many others did."""
    index = next(iter(x.unhandled))
    more = f" (and {len(x.unhandled) - 1} more)" if len(x.unhandled) > 1 else ""
    return writable(f"{x.plan.ids[index]}: {x.errors[index].message}{more}")
