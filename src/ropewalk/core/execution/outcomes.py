"""How attempts end: a node or an item has succeeded, is tried again, or has failed for good."""

from typing import Any

from ropewalk.core.events import (
    Blob,
    ItemSucceeded,
    NodeFailed,
    NodeSucceeded,
    RoundEnded,
    RunFailed,
)
from ropewalk.core.execution.evolving import ARRIVED, EXPIRED, succeed_node
from ropewalk.core.execution.evolving_whole import record
from ropewalk.core.execution.items import end_of, give_up_item, settle_map
from ropewalk.core.execution.kinds import UNHANDLED, Handling, handling_of
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.rounds import verdict
from ropewalk.core.execution.work import Work
from ropewalk.core.signals import ChildEnded, Failed, Succeeded
from ropewalk.core.state import ExecutionState, GaveUp


def succeed(x: Progress, work: Work, report: Succeeded, now: int) -> None:
    """An attempt ended well, and with it its node or item; of a node that is repeated, its round."""
    if work.item is None:
        ports = report.ports
        if work.node in x.plan.repeats and ports != EXPIRED:
            followed = _after_round(x, work, report, now)
            if followed is None:
                return
            ports = followed
        event = NodeSucceeded(
            now, report.node, report.attempt, report.output, ports, report.inputs, report.blob, report.tokens,
            report.inputs_blob,
        )  # fmt: skip
        x.events.append(event)
        succeed_node(x, work, event)
    else:
        event_of_item = ItemSucceeded(
            now, report.node, work.item, report.attempt, report.output, report.inputs, report.blob, report.tokens,
            report.inputs_blob,
        )  # fmt: skip
        record(x, event_of_item)
        settle_map(x, work.node, now)


def _after_round(x: Progress, work: Work, report: Succeeded, now: int) -> tuple[str, ...] | None:
    """The ports by which the node succeeds, if this was its last round; None if it goes on, or has failed."""
    follows = verdict(x, work, report)
    if follows.error is not None:
        failure = Failed(report.node, report.attempt, follows.error, None, report.inputs, 0.0, report.inputs_blob)
        give_up(x, work, failure, GaveUp.PERMANENT_ERROR, now)
        return None
    if not follows.is_again:
        return follows.ports
    next_at = now + x.plan.repeats[work.node].delay if x.ending is None else None
    about = (now, report.node, report.attempt, report.output, next_at, report.inputs, report.blob)
    record(x, RoundEnded(*about, report.tokens, report.inputs_blob))
    return None


def arrive(x: Progress, work: Work, output: Any, now: int, blob: Blob | None = None) -> None:
    """What the attempt waited for has come. Its port is recorded where an edge names it: nothing else depends on it."""
    ports = ARRIVED if ARRIVED[0] in x.plan.port_names[work.node] else ()
    succeed(x, work, Succeeded(x.plan.ids[work.node], work.attempt, output, ports, blob=blob), now)


def retry_later(x: Progress, work: Work, report: Failed, delay: int, now: int, *, lost: bool = False,
                child: ExecutionState | None = None) -> None:  # fmt: skip
    """An attempt failed; another follows, unless the execution is ending."""
    retry_at = now + delay if x.ending is None else None
    node = x.plan.ids[work.node]
    about = (now, node, work.attempt, report.error, retry_at, work.item)
    record(x, RunFailed(*about, report.inputs, lost, report.inputs_blob, child))


def give_up(x: Progress, work: Work, report: Failed, why: GaveUp | None, now: int,
            child: ChildEnded | None = None, faults: tuple[str, ...] = ()) -> None:  # fmt: skip
    """A node or item has failed for good; a dead letter unless an error edge or a map's tolerance handles it."""
    if x.ending is ExecutionState.CANCELLED:
        retry_later(x, work, report, 0, now)
    elif work.item is None:
        way = UNHANDLED if why is GaveUp.MANUAL else _way_on(x, work, report, child)
        node = x.plan.ids[work.node]
        letter = None if way.is_handled else why
        about = (now, node, report.error, work.attempt, way.is_handled, letter, report.inputs)
        undone = child is not None and child.undone
        record(x, NodeFailed(*about, *end_of(child, report), way.edge, (*faults, *way.faults), undone))
    else:
        give_up_item(x, work, work.item, report, why, now, child, faults)


def _way_on(x: Progress, work: Work, report: Failed, child: ChildEnded | None) -> Handling:
    return handling_of(x, work.node, report.error, work.attempt, None if child is None else child.state)
