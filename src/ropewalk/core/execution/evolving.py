"""What each event changes. Never refuses: a recorded fact is a fact, however old its log.

One function per event; the events of the whole and of people's verbs are in `evolving_whole.py`.
"""

from collections import deque
from typing import Any

from ropewalk.core import events
from ropewalk.core.commands import CancelChild, PauseChild, RunNode, StartChild
from ropewalk.core.definition.node_type import ARRIVED_PORT, EXPIRED_PORT
from ropewalk.core.events import Blob, given
from ropewalk.core.execution import mending
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.work import ENDED, RUNNING, Map, NodeError, Phase, Work
from ropewalk.core.state import ExecutionState, NodeState
from ropewalk.core.waits import BreakerWait, ChildWait, Hold, RateLimitWait, SignalWait

ARRIVED, EXPIRED = (ARRIVED_PORT,), (EXPIRED_PORT,)
MOST_KEYS = 1_000
"""How many keys an execution remembers under which it was told something: an attempt is repeated soon or not at all."""
NODE_RUNNING, NODE_SUCCESS = NodeState.RUNNING, NodeState.SUCCESS


def value_of(output: Any, blob: Blob | None) -> Any:
    """What an execution keeps of an output: the value, or where it lies."""
    return output if blob is None else blob


def nodes_started(x: Progress, event: events.NodesStarted) -> None:
    indexes, works = x.plan.index, x.works
    started = [works[indexes[node]] for node in event.nodes]
    if x.is_simple:
        first_starts(x, started, event.at)
    else:
        for work in started:
            _node_started(x, work, event.at)


def first_starts(x: Progress, works: list[Work], at: int) -> tuple[str, ...]:
    """The first attempts at these nodes are under way; the nodes' names."""
    ids, nodes, commands = x.plan.ids, x.nodes, x.commands
    names = []
    for work in works:
        index = work.node
        nodes[index] = NODE_RUNNING
        work.phase = RUNNING
        work.attempt = work.used = 1
        work.first_at = at
        name = ids[index]
        names.append(name)
        commands.append(RunNode(name, 1))
    x.ready_count -= len(works)
    x.running += len(works)
    return tuple(names)


def _node_started(x: Progress, work: Work, at: int) -> None:
    x.nodes[work.node] = NODE_RUNNING
    if work.node in x.maps:
        _go_on(x, work)
    else:
        x.start(work, at)
        x.commands.append(RunNode(x.plan.ids[work.node], work.attempt))


def _go_on(x: Progress, work: Work) -> None:
    """A map whose list is known starts the items that are left."""
    x.leave(work)
    x.feed(work.node)


def nodes_skipped(x: Progress, event: events.NodesSkipped) -> None:
    for node in event.nodes:
        x.nodes[x.plan.index[node]] = NodeState.SKIPPED
    x.to_skip.clear()


def node_succeeded(x: Progress, event: events.NodeSucceeded) -> None:
    succeed_node(x, x.works[x.plan.index[event.node]], event)


def succeed_node(x: Progress, work: Work, event: events.NodeSucceeded) -> None:
    """The node is done: its last attempt was under way or has waited, or its map is over."""
    index = work.node
    del x.works[index]
    output = event.output if event.blob is None else event.blob
    if work.phase is RUNNING:
        # As `leave` does, which would end what is simple.
        work.phase = ENDED
        x.running -= 1
    else:
        _answered(x, work, event)
        output = x.maps[index].outputs if index in x.maps else output
    settle_node(x, index, output, event.ports)


def _answered(x: Progress, work: Work, event: events.NodeSucceeded) -> None:
    """What the node waited for has come, or will not be waited for any longer."""
    if event.ports == EXPIRED:
        stop_waiting(x, work)
    else:
        x.leave(work)
        _use_signal(x, work)


def settle_node(x: Progress, index: int, output: Any, ports: tuple[str, ...]) -> None:
    """The node's result stands, and its edges are decided."""
    x.nodes[index] = NODE_SUCCESS
    x.open_nodes -= 1
    x.outputs[index] = output
    if ports:
        x.ports[index] = ports
    ready = x.frontier.succeeded(index, ports)
    if ready:
        x.open_up(ready)


def node_failed(x: Progress, event: events.NodeFailed) -> None:
    index = x.plan.index[event.node]
    work = x.works[index]
    stop_waiting(x, work, event.child)
    _note_inputs(work, event)
    work.child, work.opening, work.is_child_undone = event.child, event.opening, event.undone
    work.gave_up = event.gave_up is not None
    x.nodes[index] = NodeState.FAILED
    x.open_nodes -= 1
    error = event.error
    told = (error.detail, error.body) if event.handled or x.plan.has_closing else (None, None)
    about = (event.attempt, None, error.status, *told, event.child, event.faults)
    x.errors[index] = NodeError(error.type, error.message, *about)
    if event.handled:
        x.open_up(x.frontier.failed(index, x.plan.error_port(index, event.edge)))
    elif x.closing is None:
        x.unhandled[index] = x.new_failures[index] = None


def _note_inputs(
    work: Work, event: events.NodeFailed | events.ItemFailed | events.RunFailed | events.RunWaiting
) -> None:
    """What was recorded once is what later attempts are given."""
    inputs = given(event)
    if inputs is not None:
        work.inputs = inputs


def stop_waiting(x: Progress, work: Work, ended: ExecutionState | None = None) -> None:
    """Leave, and call off the child if one is still waited for, and has not ended."""
    if work.phase is Phase.WAITING and isinstance(work.wait, ChildWait) and x.ending is None and ended is None:
        x.called_off[work.wait.child] = None
        x.commands.append(CancelChild(work.wait.child))
    x.leave(work)


# Maps


def map_expanded(x: Progress, event: events.MapExpanded) -> None:
    index = x.plan.index[event.node]
    work = x.works[index]
    x.leave(work)
    limit, goes_on = x.plan.tolerated(index, event.count), bool(x.plan.goes_on[index])
    x.maps[index] = Map(event.count, x.plan.concurrency[index], limit, goes_on=goes_on, as_of=work.as_of,
                         first_at=work.first_at)  # fmt: skip
    x.feed(index)


def items_started(x: Progress, event: events.ItemsStarted) -> None:
    works = x.maps[x.plan.index[event.node]].works
    for item in event.items:
        x.start(works[item], event.at)
        x.commands.append(RunNode(event.node, works[item].attempt, item))


def item_succeeded(x: Progress, event: events.ItemSucceeded) -> None:
    index = x.plan.index[event.node]
    work = x.maps[index].works[event.item]
    x.leave(work)
    _use_signal(x, work)
    x.maps[index].succeed(event.item, value_of(event.output, event.blob))
    if event.blob is not None:
        x.large_lists[index] = None
    x.feed(index)
    if x.nodes[index] is NODE_SUCCESS:
        mending.succeeded(x, index, event.item)


def item_failed(x: Progress, event: events.ItemFailed) -> None:
    index = x.plan.index[event.node]
    map_ = x.maps[index]
    work = map_.works[event.item]
    stop_waiting(x, work, event.child)
    _note_inputs(work, event)
    work.child, work.opening, work.is_child_undone = event.child, event.opening, event.undone
    work.gave_up = event.gave_up is not None
    map_.fail(event.item, event.error, event.attempt)
    x.feed(index)
    if x.nodes[index] is NODE_SUCCESS:
        mending.failed(x, index, event.item)


def items_given_up(x: Progress, event: events.ItemsGivenUp) -> None:
    map_ = x.maps[x.plan.index[event.node]]
    map_.give_up()
    for item in event.items:
        map_.works[item].gave_up = True
    if not map_.stopped:
        return
    for item, work in list(map_.works.items()):
        if work.phase is Phase.READY and not work.used:
            x.leave(work)
            map_.drop(item)


# Runs


def run_started(x: Progress, event: events.RunStarted) -> None:
    work = _work(x, event)
    x.start(work, event.at)
    x.commands.append(RunNode(event.node, work.attempt, event.item))


def run_failed(x: Progress, event: events.RunFailed) -> None:
    work = _work(x, event)
    x.leave(work)
    _note_inputs(work, event)
    work.opening = None
    work.lost += event.lost
    if event.retry_at is not None:
        x.rest(work, Phase.BACKOFF)
        x.set_timer(work, event.retry_at)


def round_ended(x: Progress, event: events.RoundEnded) -> None:
    index = x.plan.index[event.node]
    work = x.works[index]
    x.leave(work)
    _use_signal(x, work)
    work.end_round(value_of(event.output, event.blob))
    x.rounds[index] = work.round
    if event.next_at is not None:
        x.rest(work, Phase.BACKOFF)
        x.set_timer(work, event.next_at)


def run_waiting(x: Progress, event: events.RunWaiting) -> None:
    work = _work(x, event)
    x.leave(work)
    _note_inputs(work, event)
    work.wait = event.wait
    if isinstance(event.wait, Hold):
        work.again = True
    if isinstance(event.wait, BreakerWait):
        work.held_since = work.held_since or event.at
    elif isinstance(event.wait, RateLimitWait):
        work.reserved = event.wait
    if x.ending is not None:
        return  # no answer would come any more
    begin_waiting(x, work)
    if event.due is not None:
        x.set_timer(work, event.due)
    if isinstance(event.wait, ChildWait):
        x.commands.append(StartChild(event.node, event.attempt, event.wait, event.item))
        if x.state is ExecutionState.PAUSED:
            x.commands.append(PauseChild(event.wait.child))


def begin_waiting(x: Progress, work: Work) -> None:
    x.rest(work, Phase.WAITING)
    x.waiting[work.node, work.item] = work
    if isinstance(work.wait, SignalWait):
        x.listeners.setdefault(work.wait.name, deque()).append(work)


def run_returned(x: Progress, event: events.RunReturned) -> None:
    work = _work(x, event)
    x.leave(work)
    work.again = True
    x.queue(work)


def run_released(x: Progress, event: events.RunReleased) -> None:
    work = _work(x, event)
    x.leave(work)
    x.queue(work)


def signal_received(x: Progress, event: events.SignalReceived) -> None:
    x.signals.setdefault(event.name, deque()).append(event.payload)
    if event.once is not None:
        x.told_once[event.once] = None
        if len(x.told_once) > MOST_KEYS:
            del x.told_once[next(iter(x.told_once))]


def _use_signal(x: Progress, work: Work) -> None:
    """A wait that was answered by a signal uses it up."""
    if isinstance(work.wait, SignalWait):
        kept = x.signals[work.wait.name]
        kept.popleft()
        if not kept:
            del x.signals[work.wait.name]


def _work(
    x: Progress,
    event: events.RunStarted | events.RunFailed | events.RunWaiting | events.RunReturned | events.RunReleased,
) -> Work:
    work = x.work(event.node, event.item)
    assert work is not None, f"{event} names no work"
    return work
