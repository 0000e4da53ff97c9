"""What follows from the failure of a map's item, and when a map is over.

| `onItemFailure` | `deadLetters` | when an item fails |
|---|---|---|
| `stop` | `beyondTolerance` | none is a dead letter within the tolerance; one too many stops the map, and all are |
| `continue` | `beyondTolerance` | the same, but every item is tried before the map fails |
| either | `always` | each is a dead letter at once, also one that is tolerated |

An error edge handles the failure of its map: then there are no dead letters, unless the map succeeds and keeps those
of the failures it tolerated, or fails in a way that no edge takes.
"""

from ropewalk.core.errors import RunError
from ropewalk.core.events import Blob, ItemFailed, ItemsGivenUp, NodeFailed, NodeSucceeded
from ropewalk.core.execution.evolving_whole import record
from ropewalk.core.execution.kinds import handling_of
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.work import Map, Work
from ropewalk.core.signals import ChildEnded, Failed
from ropewalk.core.state import ExecutionState, GaveUp, NodeState


def give_up_item(x: Progress, work: Work, item: int, report: Failed, why: GaveUp | None, now: int,
                 child: ChildEnded | None, faults: tuple[str, ...] = ()) -> None:  # fmt: skip
    """An item has failed for good; one too many stops its map, unless that goes on after failures."""
    map_, node = x.maps[work.node], x.plan.ids[work.node]
    is_too_many = map_.failures + 1 > map_.limit
    letter = why if why is GaveUp.MANUAL or _is_letter(x, work.node, is_too_many=is_too_many) else None
    about = (now, node, item, work.attempt, report.error, letter)
    undone = child is not None and child.undone
    record(x, ItemFailed(*about, report.inputs, *end_of(child, report), faults, undone))
    if is_too_many and not map_.given_up:
        record(x, ItemsGivenUp(now, node, _letters_of_failure(x, work.node)))
    settle_map(x, work.node, now)


def end_of(child: ChildEnded | None, report: Failed) -> tuple[ExecutionState | None, Blob | None, int | None]:
    """The last fields of a failure: how a child ended if that is why, and when in the child's life."""
    return (None, report.inputs_blob, None) if child is None else (child.state, report.inputs_blob, child.opening)


def _is_letter(x: Progress, index: int, *, is_too_many: bool) -> bool:
    """Whether an item that fails now is a dead letter at once; what was requeued and fails again is one again."""
    if x.nodes[index] is NodeState.SUCCESS:
        return True
    return not x.plan.has_error_edge[index] and (is_too_many or bool(x.plan.keeps_letters[index]))


def _letters_of_failure(x: Progress, index: int) -> tuple[int, ...]:
    """The failures that become dead letters when their map fails: all that have none, unless an error edge does."""
    return () if x.plan.has_error_edge[index] else _without_letters(x.maps[index])


def _without_letters(map_: Map) -> tuple[int, ...]:
    return tuple(each for each in map_.errors if _is_without_letter(map_.works[each]))


def _is_without_letter(work: Work) -> bool:
    """A failure becomes a dead letter once; a failed child keeps its own."""
    return not work.gave_up and work.child is None


def settle_map(x: Progress, index: int, now: int) -> None:
    """End a map whose items are all done, or that has failed and has none under way."""
    map_ = x.maps.get(index)
    if map_ is None or x.nodes[index] is not NodeState.RUNNING or not map_.is_over:
        return
    if map_.has_failed:
        _fail(x, index, map_, now)
    else:
        _succeed(x, index, map_, now)


def _succeed(x: Progress, index: int, map_: Map, now: int) -> None:
    node = x.plan.ids[index]
    if x.plan.keeps_letters[index] and (letters := _without_letters(map_)):
        record(x, ItemsGivenUp(now, node, letters))
    record(x, NodeSucceeded(now, node))


def _fail(x: Progress, index: int, map_: Map, now: int) -> None:
    node = x.plan.ids[index]
    first = next(iter(map_.errors.values()))
    message = f"{len(map_.errors)} of {map_.count} items failed, {map_.limit} tolerated; the first: {first.message}"
    error = RunError(first.type, message, status=first.status if index in x.plan.error_ways else None)
    way = handling_of(x, index, error, 0)
    # Failures of an earlier opening count for the end, though not for stopping in this one; and only now it is known
    # that no error edge takes the failure.
    if not way.is_handled and (letters := _without_letters(map_)):
        record(x, ItemsGivenUp(now, node, letters))
    record(x, NodeFailed(now, node, error, handled=way.is_handled, edge=way.edge, faults=way.faults))
