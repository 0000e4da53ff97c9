"""What people's verbs change in the rows: a retry, a dead letter that is requeued or fixed, a reopened child."""

from ropewalk.core.events import ChildResumed, NodeFixed, NodeRequeued, NodesReset
from ropewalk.core.rows.books import Books
from ropewalk.core.state import NodeState, Resolution


def reset(p: Books, event: NodesReset) -> None:
    for name in event.nodes:
        index = p.plan.index[name]
        if index in p.expanded:
            for item in list(p.items.get(index, ())):
                _begin_again(p, (index, item), event.at)
            p.withdraw(index, NodeState.READY)
        else:
            is_waiting = _begin_again(p, (index, None), event.at)
            p.withdraw(index, NodeState.RUNNING if is_waiting else NodeState.READY)


def _begin_again(p: Books, key: tuple[int, int | None], at: int) -> bool:
    """A failed child that can be reopened is waited for again; anything else is tried anew."""
    child = p.lanes[key].child
    if child is not None and child.is_reopenable:
        p.wait_again(key)
        return True
    p.resolve(key, Resolution.REQUEUED, at, p.by)
    return False


def requeued(p: Books, event: NodeRequeued) -> None:
    index = p.plan.index[event.node]
    p.resolve((index, event.item), Resolution.REQUEUED, event.at, event.by)
    _take_up(p, index)


def _take_up(p: Books, index: int) -> None:
    """A node that had failed is back in line; a map that had not goes on as it is."""
    if p.node_state(index) is NodeState.FAILED:
        p.withdraw(index, NodeState.READY)


def fixed(p: Books, event: NodeFixed) -> None:
    index = p.plan.index[event.node]
    p.resolve((index, event.item), Resolution.FIXED, event.at, event.by)
    if event.item is not None:
        _take_up(p, index)
        return
    p.settle(index, NodeState.SUCCESS, event.at)
    p.decide(index, event.ports)


def child_resumed(p: Books, event: ChildResumed) -> None:
    index = p.plan.index[event.node]
    p.wait_again((index, event.item))
    if event.item is None:
        p.withdraw(index, NodeState.RUNNING)
    else:
        _take_up(p, index)
