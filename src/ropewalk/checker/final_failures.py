"""The rule about what failed for good, I-26."""

from collections.abc import Iterator

from ropewalk.checker.graph import Graph
from ropewalk.checker.history import Violation
from ropewalk.checker.kinds import Worth
from ropewalk.checker.lanes import Kind, Mark
from ropewalk.checker.trace import Trace
from ropewalk.core.events import (
    ChildResumed,
    ExecutionReopened,
    ItemsGivenUp,
    ItemsStarted,
    NodeFixed,
    NodeRequeued,
    NodesReset,
)
from ropewalk.core.retry import is_retryable


def permanent_failures_are_final(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-26: after an error that is not worth retrying, no further attempt until the node or item is reopened, unless a
    child failed and the node has a `retry` of its own; and a map that has given up starts no further item until it is,
    unless its setting is to go on after every failure.

    Which errors are worth it, the node's `retry` says; by default those that are TRANSIENT or TIMEOUT. An attempt that
    was lost with its worker always is.
    """
    worth = Worth(t, graph)
    for lane in t.lanes.values():
        for before, mark in lane.pairs():
            if before is not None and mark.kind is Kind.START and _is_final(t, worth, before, mark):
                message = f"{t.name(lane)} was tried again after a {before.event.error.type} error"
                yield t.violation("I-26", message, mark.seq, before.seq)
    if t.has(ItemsGivenUp):
        yield from _items_after_giving_up(t)


def _is_final(t: Trace, worth: Worth, before: Mark, mark: Mark) -> bool:
    """Whether no attempt may follow the end that the first mark is."""
    if before.kind is Kind.GIVE_UP:
        return not is_retryable(before.event.error.type)
    if before.kind is not Kind.RETRY or before.opening != mark.opening or before.event.lost:
        return False
    if before.event.child is not None and t.plan.has_retry(before.node) and not worth.has_kinds(before.node):
        return False
    return worth.is_given(before) is False


def _goes_on(t: Trace, node: str) -> bool:
    index = t.plan.index.get(node)
    return index is not None and bool(t.plan.goes_on[index])


def _items_after_giving_up(t: Trace) -> Iterator[Violation]:
    given_up: dict[str, int] = {}
    for seq, event in zip(t.seqs, t.events, strict=False):
        match event:
            case ItemsGivenUp(node=node) if not _goes_on(t, node):
                given_up[node] = seq
            case NodeRequeued(node=node) | NodeFixed(node=node):
                given_up.pop(node, None)
            case NodesReset(nodes=nodes):
                for node in nodes:
                    given_up.pop(node, None)
            case ItemsStarted(node=node) if node in given_up:
                yield t.violation("I-26", f"{node} starts items after it has given up", seq, given_up[node])
            case ExecutionReopened() | ChildResumed():
                given_up.clear()
            case _:
                pass
