"""What the event changes by which an execution begins to be closed, and what of that a reopening takes back."""

from ropewalk.core.closing_events import OutcomeDecided
from ropewalk.core.execution.evolving_end import close_nodes
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.work import Work
from ropewalk.core.state import ExecutionState, NodeState


def outcome_decided(x: Progress, event: OutcomeDecided) -> None:
    """The graph is left as it is; the nodes that close the execution are in line, those that need not are skipped."""
    close_nodes(x)
    x.timers.clear()
    x.new_failures.clear()
    x.ending = x.grace_until = x.remaining = x.about = None
    x.is_paused_by_parent = False
    # Also of one that was paused, or was in the queue again.
    x.state, x.is_started = ExecutionState.RUNNING, True
    x.deadline = event.until
    x.is_timed = x.is_timed or event.until is not None
    x.closing = event
    x.nodes[x.plan.ordinary :] = [NodeState.SKIPPED] * (len(x.plan) - x.plan.ordinary)
    for name in event.nodes:
        _put_in_line(x, x.plan.index[name])


def _put_in_line(x: Progress, index: int) -> None:
    work = x.closers.get(index)
    if work is None:
        work = x.closers[index] = x.works.get(index) or Work(index)
    else:
        work.renew()
    x.works[index] = work
    x.make_ready(index)


def reopened(x: Progress) -> None:
    """The execution is to end once more, and then to be closed once more."""
    x.closing = x.about = None
    for index in range(x.plan.ordinary, len(x.plan)):
        x.nodes[index] = NodeState.WAITING
        for known in (x.works, x.errors, x.outputs, x.ports):
            known.pop(index, None)
