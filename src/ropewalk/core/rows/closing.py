"""What changes in the rows when an execution is closed, and when it is reopened after that."""

from typing import Final

from ropewalk.core.events import ExecutionReopened, OutcomeDecided
from ropewalk.core.rows.books import Books
from ropewalk.core.state import ExecutionState, NodeState, Resolution, RunState

BEGUN: Final = (NodeState.READY, NodeState.RUNNING)
OPEN: Final = (NodeState.WAITING, *BEGUN)


def decided(p: Books, event: OutcomeDecided) -> None:
    """The graph is left as it is; what closes the execution is in line, the rest of that is skipped."""
    for key in list(p.open):
        p.end(key, RunState.CANCELLED, event.at)
    if p.is_ending or p.open_nodes > 0:
        for index in range(p.plan.ordinary):
            if p.node_state(index) in OPEN:
                p.settle(index, NodeState.CANCELLED, event.at)
    p.execution.state = ExecutionState.RUNNING
    p.is_ending, p.is_started, p.is_closing = False, True, True
    named = dict.fromkeys(p.plan.index[name] for name in event.nodes)
    for index in range(p.plan.ordinary, len(p.plan)):
        if index not in named:
            p.settle(index, NodeState.SKIPPED, event.at)
    for index in named:
        p.withdraw(index, NodeState.READY)


def reopened(p: Books, event: ExecutionReopened) -> None:
    """What has closed it will do so once more; that resolves the dead letters it left."""
    p.is_closing = False
    for index in range(p.plan.ordinary, len(p.plan)):
        p.withdraw(index, NodeState.WAITING)
        if (index, None) in p.lanes:
            p.resolve((index, None), Resolution.REQUEUED, event.at, event.by)
