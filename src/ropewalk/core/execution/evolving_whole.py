"""What the events of the whole execution and of people's verbs change, and the table of all events.

Those by which an execution ends are in `evolving_end.py`.
"""

from collections.abc import Callable
from typing import Any, Final

from ropewalk.core import events
from ropewalk.core.commands import PauseChild, ReopenChild, ResumeChild, StartChild
from ropewalk.core.events import Event
from ropewalk.core.execution import evolving as node
from ropewalk.core.execution import evolving_closing as closing
from ropewalk.core.execution import evolving_end as end
from ropewalk.core.execution import mending
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.work import Map, Work
from ropewalk.core.signals import BY_PARENT
from ropewalk.core.state import ExecutionState, NodeState
from ropewalk.core.waits import ChildWait

# Looked up in every execution; an enum's members are slow to reach through their class.
RUNNING: Final = ExecutionState.RUNNING


def evolve(x: Progress, event: Event) -> None:
    """Apply one fact."""
    x.now = event.at
    x.seq += 1
    EVOLVE[type(event)](x, event)


def record(x: Progress, event: Event) -> None:
    """Make something a fact: note it for the log, and apply it; `handle` sees to time and number."""
    x.events.append(event)
    EVOLVE[type(event)](x, event)


def _accepted(x: Progress, event: events.ExecutionAccepted) -> None:
    x.accepted = event


def _carried_over(x: Progress, event: events.NodesCarriedOver) -> None:
    # In graph order, so that a node is opened before its own result settles it.
    skipped = dict.fromkeys(event.skipped)
    for index in x.plan.order:
        name = x.plan.ids[index]
        if name in skipped:
            x.nodes[index] = NodeState.SKIPPED
        elif name in event.outputs:
            x.leave(x.works.pop(index))
            node.settle_node(x, index, event.output(name), event.ports.get(name, ()))
            x.carried[index] = None
            if name in event.rounds:
                x.rounds[index] = event.rounds[name] - 1
            if event.large.get(name):
                x.large_lists[index] = None
    # What the rerun starts from, or has changed, may be behind dead edges only: that is skipped yet.
    x.to_skip[:] = [index for index in x.to_skip if x.plan.ids[index] not in skipped]


def _started(x: Progress, event: events.ExecutionStarted) -> None:
    x.state = RUNNING
    x.started_at = x.started_at or event.at
    x.about = None
    x.is_started = x.has_slot = True
    _set_deadline(x, event.deadline)
    x.slot_answered()


def _slot_taken(x: Progress, event: events.SlotTaken) -> None:
    x.has_slot = True
    x.slot_answered()


def _slot_released(x: Progress, event: events.SlotReleased) -> None:
    x.has_slot = False


def _paused(x: Progress, event: events.ExecutionPaused) -> None:
    x.is_paused_by_parent = event.by == BY_PARENT
    if x.state is ExecutionState.PAUSED:
        return  # a person has paused it before, and its own children with it
    x.state = ExecutionState.PAUSED
    x.remaining = None if x.deadline is None else max(0, x.deadline - event.at)
    x.deadline = None
    x.slot_answered()
    x.commands.extend(PauseChild(wait.child) for wait in end.children(x))


def _resumed(x: Progress, event: events.ExecutionResumed) -> None:
    x.state = ExecutionState.RUNNING if x.is_started else ExecutionState.PENDING
    _set_deadline(x, event.deadline)
    x.remaining = None
    x.is_paused_by_parent = False
    x.was_resumed = True
    x.commands.extend(ResumeChild(wait.child) for wait in end.children(x))


def _set_deadline(x: Progress, deadline: int | None) -> None:
    if deadline is not None:
        x.deadline = deadline
        x.is_timed = True


# Reopening


def _reopened(x: Progress, event: events.ExecutionReopened) -> None:
    x.state = ExecutionState.PENDING
    x.opening += 1
    x.is_started = x.is_ended = x.was_resumed = False
    x.new_failures.clear()
    x.slot_answered()
    if x.plan.has_closing:
        closing.reopened(x)
    for index, state in enumerate(x.nodes):
        if state is NodeState.CANCELLED:
            _revive(x, index)
        elif index in x.maps and x.maps[index].is_mending:
            mending.revive(x, index)


def _revive(x: Progress, index: int) -> None:
    """A cancelled node has its turn after all."""
    if index in x.works:
        x.works[index].revive()
    if index in x.maps:
        x.maps[index].interrupt()
    if x.frontier.is_ripe(index):
        x.make_ready(index)
    else:
        x.nodes[index] = NodeState.WAITING


def _reset(x: Progress, event: events.NodesReset) -> None:
    for name in event.nodes:
        index = x.plan.index[name]
        map_ = x.maps.get(index)
        if map_ is None:
            _begin_again(x, x.works[index])
        else:
            _reset_items(x, index, map_)


def _begin_again(x: Progress, work: Work) -> None:
    """Reopen the failed child if there is one to reopen, else try the node anew."""
    if work.has_reopenable_child:
        _reopen_child(x, work)
        _unfail(x, work.node)
        x.nodes[work.node] = NodeState.RUNNING
        x.open_nodes += 1
    else:
        work.renew()
        _unfail(x, work.node)
        x.make_ready(work.node)


def _reset_items(x: Progress, index: int, map_: Map) -> None:
    for item in list(map_.errors):
        work = map_.works[item]
        if work.has_reopenable_child:
            map_.reattach(item)
            _reopen_child(x, work)
        else:
            map_.requeue(item).renew()
    _unfail(x, index)
    x.make_ready(index)


def _reopen_child(x: Progress, work: Work) -> None:
    """Have the failed child go on; one that could not be started is started now."""
    wait = _wait_again(x, work)
    x.commands += (
        StartChild(x.plan.ids[work.node], work.attempt, wait, work.item),
        ReopenChild(wait.child, work.opening),
    )


def _wait_again(x: Progress, work: Work) -> ChildWait:
    assert isinstance(work.wait, ChildWait)
    work.child = None
    node.begin_waiting(x, work)
    return work.wait


def _unfail(x: Progress, index: int) -> None:
    x.unhandled.pop(index, None)
    x.new_failures.pop(index, None)
    x.errors.pop(index, None)


def _requeued(x: Progress, event: events.NodeRequeued) -> None:
    index = x.plan.index[event.node]
    if event.item is None:
        work = x.works[index]
        work.renew(event.overrides)
        _unfail(x, index)
        x.make_ready(index)
    else:
        _take_up(x, index, event.item)
        x.maps[index].requeue(event.item).renew(event.overrides)
        _go_on(x, index)


def _take_up(x: Progress, index: int, item: int, *, is_fixed: bool = False) -> None:
    """A failure of an item is no more; a node that has started still sees one that its map had tolerated."""
    if x.nodes[index] is NodeState.SUCCESS:
        mending.taken_up(x, index, item, is_fixed=is_fixed)


def _go_on(x: Progress, index: int) -> None:
    """A map with an item less to worry about: back in line if it had failed, else on with it."""
    if x.nodes[index] is NodeState.FAILED:
        _unfail(x, index)
        x.make_ready(index)
    elif x.nodes[index] is NodeState.RUNNING:
        x.feed(index)
    elif x.nodes[index] is NodeState.SUCCESS:
        mending.go_on(x, index)


def _fixed(x: Progress, event: events.NodeFixed) -> None:
    index = x.plan.index[event.node]
    output = node.value_of(event.output, event.blob)
    if event.item is None:
        del x.works[index]
        _unfail(x, index)
        x.open_nodes += 1
        node.settle_node(x, index, output, event.ports)
    else:
        _take_up(x, index, event.item, is_fixed=True)
        x.maps[index].fix(event.item, output)
        if event.blob is not None:
            x.large_lists[index] = None
        _go_on(x, index)


def _child_resumed(x: Progress, event: events.ChildResumed) -> None:
    index = x.plan.index[event.node]
    if event.item is None:
        wait = _wait_again(x, x.works[index])
        _unfail(x, index)
        x.nodes[index] = NodeState.RUNNING
        x.open_nodes += 1
    else:
        _take_up(x, index, event.item)
        wait = _wait_again(x, x.maps[index].reattach(event.item))
        _go_on(x, index)
    if x.state is ExecutionState.PAUSED:
        x.commands.append(PauseChild(wait.child))


EVOLVE: Final[dict[type, Callable[[Progress, Any], None]]] = {
    events.ExecutionAccepted: _accepted,
    events.NodesCarriedOver: _carried_over,
    events.ExecutionStarted: _started,
    events.SlotTaken: _slot_taken,
    events.SlotReleased: _slot_released,
    events.ExecutionPaused: _paused,
    events.ExecutionResumed: _resumed,
    events.StopRequested: end.stop_requested,
    events.CancelRequested: end.cancel_requested,
    events.DeadlinePassed: end.deadline_passed,
    events.OutcomeDecided: closing.outcome_decided,
    events.ExecutionSucceeded: end.succeeded,
    events.ExecutionFailed: end.failed,
    events.ExecutionCancelled: end.cancelled,
    events.ExecutionTimedOut: end.timed_out,
    events.ExecutionReopened: _reopened,
    events.NodesStarted: node.nodes_started,
    events.NodesSkipped: node.nodes_skipped,
    events.NodeSucceeded: node.node_succeeded,
    events.NodeFailed: node.node_failed,
    events.NodesReset: _reset,
    events.NodeRequeued: _requeued,
    events.NodeFixed: _fixed,
    events.ChildResumed: _child_resumed,
    events.MapExpanded: node.map_expanded,
    events.ItemsStarted: node.items_started,
    events.ItemSucceeded: node.item_succeeded,
    events.ItemFailed: node.item_failed,
    events.ItemsGivenUp: node.items_given_up,
    events.RunStarted: node.run_started,
    events.RunFailed: node.run_failed,
    events.RoundEnded: node.round_ended,
    events.RunWaiting: node.run_waiting,
    events.RunReturned: node.run_returned,
    events.RunReleased: node.run_released,
    events.SignalReceived: node.signal_received,
}
