"""What the events change by which an execution ends."""

from typing import Final

from ropewalk.core.commands import CancelChild, Finish, StopRun
from ropewalk.core.events import (
    CancelRequested,
    DeadlinePassed,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionSucceeded,
    ExecutionTimedOut,
    StopRequested,
)
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.work import Phase
from ropewalk.core.state import ExecutionState, NodeState
from ropewalk.core.waits import ChildWait

# Looked up in every execution; an enum's members are slow to reach through their class.
SUCCESS: Final = ExecutionState.SUCCESS
BEGUN: Final = (NodeState.READY, NodeState.RUNNING)
OPEN: Final = (NodeState.WAITING, *BEGUN)


def children(x: Progress) -> list[ChildWait]:
    return [work.wait for work in x.waiting.values() if isinstance(work.wait, ChildWait)]


def stop_requested(x: Progress, event: StopRequested) -> None:
    _begin_ending(x, ExecutionState.FAILED, event.grace_until)
    if event.grace_until is not None:
        # It ends within the grace: its time limit decides nothing any more.
        x.deadline = None
        stop_runs(x)


def cancel_requested(x: Progress, event: CancelRequested) -> None:
    x.deadline = None
    _begin_ending(x, ExecutionState.CANCELLED, event.grace_until)
    stop_runs(x)


def deadline_passed(x: Progress, event: DeadlinePassed) -> None:
    x.deadline = None
    _begin_ending(x, ExecutionState.TIMEOUT, event.grace_until)
    stop_runs(x)


def _begin_ending(x: Progress, state: ExecutionState, grace_until: int | None) -> None:
    """Nothing starts any more; waits are dropped, children told to stop."""
    if x.ending is None:
        x.commands.extend(CancelChild(wait.child) for wait in children(x))
    x.ending = state
    x.grace_until = grace_until
    x.is_timed = True
    for work in list(x.waiting.values()):
        if not isinstance(work.wait, ChildWait):
            x.leave(work)


def stop_runs(x: Progress) -> None:
    """Tell every attempt under way to stop."""
    x.commands.extend(
        StopRun(x.plan.ids[work.node], work.attempt, work.item)
        for work in x.active_works()
        if work.phase is Phase.RUNNING
    )


def succeeded(x: Progress, event: ExecutionSucceeded) -> None:
    _close(x, SUCCESS)


def failed(x: Progress, event: ExecutionFailed) -> None:
    _close(x, ExecutionState.FAILED)


def cancelled(x: Progress, event: ExecutionCancelled) -> None:
    _close(x, ExecutionState.CANCELLED)


def timed_out(x: Progress, event: ExecutionTimedOut) -> None:
    _close(x, ExecutionState.TIMEOUT)


def _close(x: Progress, state: ExecutionState) -> None:
    """The execution is over."""
    if x.place is None:
        close_nodes(x)
    x.timers.clear()
    x.state = state
    x.is_ended = True
    x.has_slot = x.is_paused_by_parent = False
    x.ending = x.deadline = x.grace_until = x.remaining = None
    x.commands.append(Finish(state))


def close_nodes(x: Progress) -> None:
    """What did not get its turn is cancelled, unless a failure stands before it."""
    if x.ending is not None or x.open_nodes:
        # Where the outcome was decided before, what waits since then is behind a failure.
        cut = OPEN if x.closing is None else BEGUN
        x.nodes = [NodeState.CANCELLED if each in cut else each for each in x.nodes]
    if x.works or x.maps:
        left = [wait.child for wait in children(x)]
        x.called_off.update(dict.fromkeys(left))
        if x.ending is None:  # the dispatch was given up while children go on: none has told them to stop
            x.commands.extend(map(CancelChild, left))
        for work in x.active_works():
            x.leave(work)
    x.ready.clear()
    x.ready_first.clear()
    x.going_on.clear()
    x.open_nodes = 0
