"""What people may ask of an execution.

Judged on the state as it is: a verb whose effect holds already changes nothing, one that comes at the wrong
time is refused.
"""

from ropewalk.core.canonical import writable
from ropewalk.core.commands import Finish, StopRun
from ropewalk.core.errors import ErrorType, InvalidTransition, NotFound, RunError
from ropewalk.core.events import (
    CancelRequested,
    ExecutionFailed,
    ExecutionPaused,
    ExecutionReopened,
    ExecutionResumed,
    NodeFixed,
    NodeRequeued,
    NodesReset,
)
from ropewalk.core.execution.closing import is_closing, require_not_undone
from ropewalk.core.execution.evolving_whole import record
from ropewalk.core.execution.items import settle_map
from ropewalk.core.execution.mending import may_mend
from ropewalk.core.execution.outcomes import give_up
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.settling import GRACE
from ropewalk.core.execution.work import Phase, Work
from ropewalk.core.signals import BY_PARENT, Abandon, Cancel, Failed, Fix, GiveUp, Pause, Requeue, Resume, Retry
from ropewalk.core.state import ExecutionState, GaveUp, NodeState


def pause(x: Progress, request: Pause, now: int) -> None:
    """Nothing new starts; what runs finishes, and the clock of the time limit stands still."""
    is_parent = request.by == BY_PARENT
    if x.state is ExecutionState.PAUSED and x.ending is None and (x.is_paused_by_parent or not is_parent):
        return
    if x.is_ended or x.ending is not None or x.closing is not None:
        raise x.refusal("pause")
    record(x, ExecutionPaused(now, request.by, request.reason))


def resume(x: Progress, request: Resume, now: int) -> None:
    """Go on; what the parent has paused, the parent alone resumes."""
    if x.state in (ExecutionState.PENDING, ExecutionState.RUNNING) and x.ending is None:
        return
    if request.by == BY_PARENT and x.state is ExecutionState.PAUSED and not x.is_paused_by_parent:
        return  # told once more; a person has paused it since
    if x.state is not ExecutionState.PAUSED or x.ending is not None:
        raise x.refusal("resume")
    if x.is_paused_by_parent and request.by != BY_PARENT:
        above = x.accepted.parent if x.accepted is not None else None
        named = "" if above is None else f", execution {above.execution},"
        raise InvalidTransition(f"cannot resume: its parent{named} has paused it; resume that one")
    record(x, ExecutionResumed(now, request.by, None if x.remaining is None else now + x.remaining))


def cancel(x: Progress, request: Cancel, now: int) -> None:
    """Tell everything under way to stop, and end as CANCELLED when it has, or after the grace."""
    if ExecutionState.CANCELLED in (x.state, x.ending, x.closing and x.closing.outcome):
        return
    if x.is_ended or x.ending is ExecutionState.TIMEOUT or (x.closing is not None and x.plan.has_closing):
        raise x.refusal("cancel")
    record(x, CancelRequested(now, request.by, now + GRACE, request.reason))


def abandon(x: Progress, request: Abandon, now: int) -> None:
    """The execution could not be dispatched, and fails without having started."""
    if x.state is not ExecutionState.PENDING:
        raise x.refusal("abandon the dispatch")
    record(x, ExecutionFailed(now, writable(request.message)))


# Reopening


def retry(x: Progress, request: Retry, now: int) -> None:
    """Every unhandled failed node, and what was cancelled, again; at most once for each end that a parent knows."""
    if request.opening is not None and request.opening < x.opening:
        if x.is_ended:
            x.commands.append(Finish(x.state))
        return
    if not x.state.is_reopenable:
        raise x.refusal("retry")
    require_not_undone(x, "retry")
    failed = tuple(x.plan.ids[node] for node in x.unhandled)
    record(x, ExecutionReopened(now, request.by, "retry"))
    if failed:
        record(x, NodesReset(now, failed))


def requeue(x: Progress, request: Requeue, now: int) -> None:
    """One dead letter back to work, in the same execution."""
    _given_up(x, request, "requeue")
    _reopen(x, request.by, "requeue", now)
    record(x, NodeRequeued(now, request.node, request.by, request.item, request.overrides))


def fix(x: Progress, request: Fix, now: int) -> None:
    """One failed node or item gets its output from a person, and the execution goes on from there."""
    work = _given_up(x, request, "fix")
    _reopen(x, request.by, "fix", now)
    record(x, NodeFixed(now, request.node, request.by, request.output, request.ports, request.item, request.blob))
    settle_map(x, work.node, now)


def _given_up(x: Progress, request: Requeue | Fix, verb: str) -> Work:
    """The failed work a dead letter is about; refuses before anything is recorded."""
    _known(x, request.node)
    work = x.work(request.node, request.item)
    if work is None or work.phase is not Phase.ENDED or not work.gave_up:
        raise InvalidTransition(f"cannot {verb} {_name(request)}: it has no dead letter")
    if work.node >= x.plan.ordinary:
        raise InvalidTransition(f"cannot {verb} {_name(request)}: it runs again at the end of a retry")
    if x.nodes[work.node] is NodeState.FAILED and work.node not in x.unhandled:
        raise InvalidTransition(f"cannot {verb} {_name(request)}: an error edge has handled the failure of its map")
    is_final = x.is_ended and not x.state.is_reopenable and not may_mend(x, work)
    if x.ending is not None or is_closing(x) or is_final:
        raise _final(x, f"{verb} {_name(request)}")
    require_not_undone(x, f"{verb} {_name(request)}")
    return work


def _final(x: Progress, verb: str) -> InvalidTransition:
    above = x.accepted.parent if x.accepted is not None else None
    if x.state is ExecutionState.SUCCESS and above is not None:
        return InvalidTransition(f"cannot {verb}: execution {above.execution}, which called it, has its output")
    return x.refusal(verb)


def _reopen(x: Progress, by: str, verb: str, now: int) -> None:
    if x.is_ended:
        record(x, ExecutionReopened(now, by, verb))


def give_up_by_hand(x: Progress, request: GiveUp, now: int) -> None:
    """A run under way, waiting or between attempts becomes a dead letter."""
    _known(x, request.node)
    work = x.work(request.node, request.item)
    is_begun = work is not None and work.used and x.nodes[work.node] in (NodeState.RUNNING, NodeState.SUCCESS)
    is_between_rounds = work is not None and work.phase in (Phase.BACKOFF, Phase.READY) and not work.tries
    if work is None or not is_begun or is_between_rounds or work.phase is Phase.ENDED or x.ending is not None:
        raise InvalidTransition(f"cannot give up {_name(request)}: no run of it is under way")
    if work.phase is Phase.RUNNING:
        x.commands.append(StopRun(request.node, work.attempt, request.item))
    error = RunError(ErrorType.PERMANENT, request.reason or f"given up by {request.by}")
    give_up(x, work, Failed(request.node, work.attempt, error), GaveUp.MANUAL, now)


def _known(x: Progress, node: str) -> None:
    if node not in x.plan.index:
        raise NotFound(f"the workflow has no node {node!r}")


def _name(request: Requeue | Fix | GiveUp) -> str:
    return request.node if request.item is None else f"{request.node}[{request.item}]"
