"""Folds a log into the rows it stands for.

`rows` gives them all. A `Projection` gives those that changed: the store writes exactly these in the commit of the
events that changed them, so the cost of keeping the tables is that of the events.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from ropewalk.core import events
from ropewalk.core.errors import RunError
from ropewalk.core.events import Event, given
from ropewalk.core.plan import Plan
from ropewalk.core.retry import gave_up_for
from ropewalk.core.rows import closing, verbs
from ropewalk.core.rows.books import Books, Key, Lane
from ropewalk.core.rows.tables import ExecutionRow, LetterRow, NodeRow, Rows, RunRow
from ropewalk.core.state import ExecutionState, GaveUp, NodeState, RunState
from ropewalk.core.waits import ChildWait


class Projection(Books):
    """The rows of one execution, kept up with its log."""

    __slots__ = ()

    def add(self, events: Iterable[Event]) -> None:
        """Fold these events, the next of the log; never refuses a fact."""
        for event in events:
            FOLD[type(event)](self, event)


class RunProjection(Projection):
    """The runs and dead letters only, for an engine that keeps just those as rows: nodes are a fold away."""

    __slots__ = ("_unkept",)

    def __init__(self, plan: Plan) -> None:
        self._unkept = NodeRow("")
        super().__init__(plan)

    def take(self) -> tuple[list[RunRow], list[LetterRow]]:
        """The rows that changed since the last call; not copies, so to be used at once."""
        runs, letters = list(self._changed_runs.values()), list(self._changed_letters.values())
        self._forget_changes()
        return runs, letters

    def node(self, index: int) -> NodeRow:
        return self._unkept

    def set_node(self, index: int, state: NodeState) -> NodeRow:
        return self._unkept

    def settle(self, index: int, state: NodeState, at: int, error: RunError | None = None) -> None:
        """Not kept."""

    def withdraw(self, index: int, state: NodeState) -> None:
        """Not kept."""

    def end(self, key: Key, state: RunState, at: int, error: RunError | None = None) -> Lane:
        """Without what no row tells of an error: a failed run is kept as long as its execution is in memory."""
        return super().end(key, state, at, None if error is None else RunError(error.type, error.message))

    def decide(self, index: int, ports: tuple[str, ...]) -> None:
        """Not kept."""

    def decide_failed(self, index: int, edge: int | None) -> None:
        """Not kept."""


def rows(plan: Plan, events: Iterable[Event]) -> Rows:
    """Every row the log stands for."""
    projection = Projection(plan)
    projection.add(events)
    return projection.all_rows()


# The execution as a whole


def _accepted(p: Books, event: events.ExecutionAccepted) -> None:
    row = ExecutionRow(event.execution, event.workspace, event.workflow, event.version, event.hash, event.at)
    row.trigger, row.payload = event.trigger, event.payload
    row.input, row.vars = event.input, event.vars
    row.parent, row.priority, row.concurrency_key = event.parent, event.priority, event.concurrency_key
    p.accept(row)


def _carried_over(p: Books, event: events.NodesCarriedOver) -> None:
    # In graph order, so that a node is opened before its own result settles it.
    skipped = dict.fromkeys(event.skipped)
    for index in p.plan.order:
        name = p.plan.ids[index]
        if name in skipped:
            p.settle(index, NodeState.SKIPPED, event.at)
        elif name in event.outputs:
            p.settle(index, NodeState.SUCCESS, event.at)
            if name in event.rounds:
                p.node(index).rounds = event.rounds[name]
            p.decide(index, event.ports.get(name, ()))


def _started(p: Books, event: events.ExecutionStarted) -> None:
    row = p.execution
    row.state = ExecutionState.RUNNING
    row.started = event.at if row.started is None else row.started
    p.is_started = True


def _paused(p: Books, event: events.ExecutionPaused) -> None:
    p.execution.state = ExecutionState.PAUSED


def _resumed(p: Books, event: events.ExecutionResumed) -> None:
    p.execution.state = ExecutionState.RUNNING if p.is_started else ExecutionState.PENDING


def _ending(p: Books, event: events.StopRequested | events.CancelRequested | events.DeadlinePassed) -> None:
    """Waits are dropped; what waits for a child is over when the child is."""
    p.is_ending = True
    waiting = [key for key, lane in p.open.items() if lane.run.state is RunState.WAITING and not lane.waits_for_child]
    for key in waiting:
        p.end(key, RunState.CANCELLED, event.at)


def _succeeded(p: Books, event: events.ExecutionSucceeded) -> None:
    p.execution.output, p.execution.blob = event.output, event.blob
    _close(p, ExecutionState.SUCCESS, event.at)


def _failed(p: Books, event: events.ExecutionFailed) -> None:
    p.execution.error = event.error
    _close(p, ExecutionState.FAILED, event.at)


def _cancelled(p: Books, event: events.ExecutionCancelled) -> None:
    _close(p, ExecutionState.CANCELLED, event.at)


def _timed_out(p: Books, event: events.ExecutionTimedOut) -> None:
    p.execution.error = event.error
    _close(p, ExecutionState.TIMEOUT, event.at)


def _close(p: Books, state: ExecutionState, at: int) -> None:
    p.execution.state, p.execution.finished = state, at
    for key in list(p.open):
        p.end(key, RunState.CANCELLED, at)
    is_cut_short = p.is_ending or p.open_nodes > 0
    if state is not ExecutionState.SUCCESS or is_cut_short:
        _close_nodes(p, is_cut_short, at)


def _close_nodes(p: Books, is_cut_short: bool, at: int) -> None:
    """What did not get its turn is cancelled, or blocked if it stays behind a failure."""
    left = closing.BEGUN if p.is_closing else closing.OPEN
    for index in range(len(p.plan)):
        state = p.node_state(index)
        if is_cut_short and state in left:
            p.settle(index, NodeState.CANCELLED, at)
        elif state is NodeState.WAITING:
            p.set_node(index, NodeState.BLOCKED)


def _reopened(p: Books, event: events.ExecutionReopened) -> None:
    row = p.execution
    row.state = ExecutionState.PENDING
    row.finished = row.error = row.output = row.blob = None
    p.opening += 1
    p.is_ending = p.is_started = False
    p.by = event.by
    if p.plan.has_closing:
        closing.reopened(p, event)
    for index in range(len(p.plan)):
        state = p.node_state(index)
        if state is NodeState.CANCELLED and p.frontier.is_ripe(index):
            p.withdraw(index, NodeState.READY)
        elif state in (NodeState.CANCELLED, NodeState.BLOCKED):
            p.withdraw(index, NodeState.WAITING)


def _nothing(p: Books, event: events.SlotTaken | events.SlotReleased | events.SignalReceived) -> None:
    """No row shows it."""


# Nodes and maps


def _nodes_started(p: Books, event: events.NodesStarted) -> None:
    for node in event.nodes:
        index = p.plan.index[node]
        row = p.set_node(index, NodeState.RUNNING)
        row.started = event.at if row.started is None else row.started
        if index not in p.expanded:
            p.start(index, None, event.at)


def _nodes_skipped(p: Books, event: events.NodesSkipped) -> None:
    for node in event.nodes:
        p.settle(p.plan.index[node], NodeState.SKIPPED, event.at)


def _node_succeeded(p: Books, event: events.NodeSucceeded) -> None:
    index = p.plan.index[event.node]
    if index not in p.expanded:
        p.succeed((index, None), event)
    p.settle(index, NodeState.SUCCESS, event.at)
    if index in p.plan.repeats:
        p.node(index).rounds += 1
    p.decide(index, event.ports)


def _node_failed(p: Books, event: events.NodeFailed) -> None:
    index = p.plan.index[event.node]
    if index not in p.expanded:
        p.fail((index, None), event)
    p.settle(index, NodeState.FAILED, event.at, event.error)
    if event.handled:
        p.decide_failed(index, event.edge)


def _map_expanded(p: Books, event: events.MapExpanded) -> None:
    index = p.plan.index[event.node]
    p.expanded[index] = None
    p.succeed((index, None), event)


def _items_started(p: Books, event: events.ItemsStarted) -> None:
    index = p.plan.index[event.node]
    for item in event.items:
        p.start(index, item, event.at)


def _item_succeeded(p: Books, event: events.ItemSucceeded) -> None:
    p.succeed((p.plan.index[event.node], event.item), event)


def _item_failed(p: Books, event: events.ItemFailed) -> None:
    p.fail((p.plan.index[event.node], event.item), event)


def _items_given_up(p: Books, event: events.ItemsGivenUp) -> None:
    for item in event.items:
        lane = p.lanes[p.plan.index[event.node], item]
        error = lane.run.error
        p.write_letter(lane, GaveUp.MAX_RETRIES if error is None else gave_up_for(error.type), event.at)


# Runs


def _run_started(p: Books, event: events.RunStarted) -> None:
    p.start(p.plan.index[event.node], event.item, event.at, event.attempt)


def _run_failed(p: Books, event: events.RunFailed) -> None:
    lane = p.end((p.plan.index[event.node], event.item), RunState.FAILED, event.at, event.error)
    lane.run.retry_after = event.retry_at
    p.note_inputs(lane, given(event))


def _round_ended(p: Books, event: events.RoundEnded) -> None:
    p.end_round((p.plan.index[event.node], None), event)


def _run_waiting(p: Books, event: events.RunWaiting) -> None:
    key = (p.plan.index[event.node], event.item)
    p.wait(key, given(event), is_for_child=isinstance(event.wait, ChildWait))


def _run_pending(p: Books, event: events.RunReturned | events.RunReleased) -> None:
    p.pend((p.plan.index[event.node], event.item))


FOLD: Final[dict[type, Callable[[Books, Any], None]]] = {
    events.ExecutionAccepted: _accepted,
    events.NodesCarriedOver: _carried_over,
    events.ExecutionStarted: _started,
    events.SlotTaken: _nothing,
    events.SlotReleased: _nothing,
    events.ExecutionPaused: _paused,
    events.ExecutionResumed: _resumed,
    events.StopRequested: _ending,
    events.CancelRequested: _ending,
    events.DeadlinePassed: _ending,
    events.OutcomeDecided: closing.decided,
    events.ExecutionSucceeded: _succeeded,
    events.ExecutionFailed: _failed,
    events.ExecutionCancelled: _cancelled,
    events.ExecutionTimedOut: _timed_out,
    events.ExecutionReopened: _reopened,
    events.NodesStarted: _nodes_started,
    events.NodesSkipped: _nodes_skipped,
    events.NodeSucceeded: _node_succeeded,
    events.NodeFailed: _node_failed,
    events.NodesReset: verbs.reset,
    events.NodeRequeued: verbs.requeued,
    events.NodeFixed: verbs.fixed,
    events.ChildResumed: verbs.child_resumed,
    events.MapExpanded: _map_expanded,
    events.ItemsStarted: _items_started,
    events.ItemSucceeded: _item_succeeded,
    events.ItemFailed: _item_failed,
    events.ItemsGivenUp: _items_given_up,
    events.RunStarted: _run_started,
    events.RunFailed: _run_failed,
    events.RoundEnded: _round_ended,
    events.RunWaiting: _run_waiting,
    events.RunReturned: _run_pending,
    events.RunReleased: _run_pending,
    events.SignalReceived: _nothing,
}
