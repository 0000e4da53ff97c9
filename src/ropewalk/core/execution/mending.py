"""A map that has succeeded, and whose tolerated failures are mended: the node stays SUCCESS, its output is completed.

An item that was requeued runs beside everything else. The execution does not end before it has its outcome, and the
nodes that have started keep what they were given: each change has a number, by which they see none that came later.
"""

from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.work import Change, Map, Work
from ropewalk.core.state import ExecutionState, NodeState


def may_mend(x: Progress, work: Work) -> bool:
    """Whether an execution that has succeeded is reopened for this failure: a map tolerated it, and no parent has used
    what the execution gave.
    """
    is_tolerated = work.item is not None and x.nodes[work.node] is NodeState.SUCCESS
    is_child = x.accepted is not None and x.accepted.parent is not None
    return x.state is ExecutionState.SUCCESS and is_tolerated and not is_child


def has_tolerated(x: Progress) -> bool:
    """Whether failures that maps tolerated are left, so that success need not be the end of it."""
    return x.place is None and any(map_.errors for map_ in x.maps.values())


def taken_up(x: Progress, index: int, item: int, *, is_fixed: bool = False) -> None:
    """A failure is about to be forgotten: its item is under way again, or has its output from a person."""
    _note(x, x.maps[index], Change(x.mends + 1, item, has_output=is_fixed))


def succeeded(x: Progress, index: int, item: int) -> None:
    """The item has its output."""
    map_ = x.maps[index]
    _note(x, map_, Change(x.mends + 1, item, has_output=True))
    x.outputs[index] = map_.outputs
    _settle(x, map_)


def failed(x: Progress, index: int, item: int) -> None:
    """The item has failed again, and is tolerated again."""
    map_ = x.maps[index]
    _note(x, map_, Change(x.mends + 1, item, map_.errors[item]))
    _settle(x, map_)


def _note(x: Progress, map_: Map, change: Change) -> None:
    map_.note(change)
    x.mends = change.number


def go_on(x: Progress, index: int) -> None:
    """Start what is to be mended; the execution is not over before that is. What a person supplied is there already."""
    map_ = x.maps[index]
    if not map_.is_mending:
        map_.is_mending = True
        x.open_nodes += 1
    x.outputs[index] = map_.outputs
    x.feed(index)
    _settle(x, map_)


def _settle(x: Progress, map_: Map) -> None:
    if map_.is_mending and map_.is_over:
        map_.is_mending = False
        x.open_nodes -= 1


def revive(x: Progress, index: int) -> None:
    """The execution had ended around it, and is reopened."""
    map_ = x.maps[index]
    map_.interrupt()
    map_.is_mending = False
    go_on(x, index)
