"""Rules about the graph: I-07 to I-11, and what a rerun takes over, I-31."""

from collections.abc import Iterator, Mapping

from ropewalk.checker.graph import UNFINISHED, End, Graph, behind
from ropewalk.checker.history import History, Violation
from ropewalk.checker.lanes import Kind, Lane, Step
from ropewalk.checker.trace import ENDINGS, Trace
from ropewalk.core.events import (
    ExecutionAccepted,
    ExecutionFailed,
    ExecutionReopened,
    ExecutionStarted,
    ExecutionSucceeded,
    NodesCarriedOver,
    NodeSucceeded,
)
from ropewalk.core.state import NodeState


def starts_are_due(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-07: when a node starts, every edge into it is decided by earlier events, and one is live.

    An edge left undecided by a failure that nothing handles is I-08's.
    """
    for reading in graph.starts:
        if reading.failed is not None:
            continue
        node = t.plan.ids[reading.node]
        if reading.undecided is not None:
            message = f"{node} started before {t.plan.ids[reading.undecided]} was decided"
            yield t.violation("I-07", message, reading.seq)
        elif not reading.is_live:
            yield t.violation("I-07", f"{node} started although no edge into it is live", reading.seq)


def nothing_starts_behind_a_failure(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-08: while a failure that nothing handles stands, no node behind it starts."""
    for seq, node in graph.blocked:
        yield t.violation("I-08", f"{t.plan.ids[node]} started behind a failure that nothing handles", seq)


def everything_else_is_done(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-09: with `onFailure: continue`, FAILED is the end only when every node that is not behind an unhandled
    failure has its outcome.

    An execution that could not be dispatched fails before it starts, and one that is told to stop is not waited for.
    """
    if t.plan.stop_on_failure or not t.has(ExecutionFailed):
        return
    cut_short = _cut_short(t)
    for end in graph.ends:
        if not isinstance(end.event, ExecutionFailed) or end.seq in cut_short:
            continue
        marks = behind(t.plan, end.failures)
        for node, state in enumerate(end.states):
            if state in UNFINISHED and not marks[node]:
                yield t.violation("I-09", f"FAILED while {t.plan.ids[node]} was {state}", end.seq)
        yield from _unmended(t, graph, end, "I-09")


def _cut_short(t: Trace) -> dict[int, None]:
    """The ends of openings that never started, or were told to end."""
    found: dict[int, None] = {}
    is_started = is_ending = False
    for seq, event in t.whole:
        if isinstance(event, ExecutionStarted):
            is_started = True
        elif isinstance(event, ENDINGS):
            is_ending = True
        elif isinstance(event, ExecutionReopened):
            is_started = is_ending = False
        elif isinstance(event, ExecutionFailed) and (is_ending or not is_started):
            found[seq] = None
    return found


def every_node_has_one_state(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-10: the log names no node that the plan has not, and at SUCCESS every node has succeeded, was skipped, or
    has a handled failure; a map succeeds with as many outcomes as items, and one that goes on after failures ends so
    too; and what is mended in a map has its outcome. (At other ends what has no outcome is BLOCKED or CANCELLED: I-09.)
    """
    for seq, node in t.strangers:
        yield t.violation("I-10", f"the plan has no node {node!r}", seq)
    for end in graph.ends:
        if isinstance(end.event, ExecutionSucceeded):
            yield from _unfinished_at_success(t, end)
            yield from _unmended(t, graph, end, "I-10")
    for move in graph.moves:
        is_end = move.step is Step.SUCCEED or (move.step is Step.FAIL and t.plan.goes_on[move.node])
        if is_end and t.is_expanded(move.node, move.seq):
            yield from _items_without_outcome(t, move.node, move.seq)


def _unfinished_at_success(t: Trace, end: End) -> Iterator[Violation]:
    for node, state in enumerate(end.states):
        if state in UNFINISHED:
            yield t.violation("I-10", f"SUCCESS while {t.plan.ids[node]} was {state}", end.seq)
    for node in end.failures:
        yield t.violation("I-10", f"SUCCESS although nothing handles the failure of {t.plan.ids[node]}", end.seq)


def _unmended(t: Trace, graph: Graph, end: End, invariant: str) -> Iterator[Violation]:
    """What is mended in a map that has succeeded has its outcome before the execution ends."""
    for node in graph.mended:
        if end.states[node] is NodeState.SUCCESS:
            yield from _items_without_outcome(t, node, end.seq, invariant)


def _items_without_outcome(t: Trace, node: int, seq: int, invariant: str = "I-10") -> Iterator[Violation]:
    count = t.expanded[node][1].count
    known = sum(_has_outcome(lane, seq) for lane in t.items.get(node, {}).values())
    if known != count:
        name = t.plan.ids[node]
        yield t.violation(invariant, f"{name} ended with {known} outcomes of {count} items", seq, t.expanded[node][0])


def _has_outcome(lane: Lane, seq: int) -> bool:
    """Whether the item had succeeded, failed for good or been fixed by then."""
    last = None
    for mark in lane.marks:
        if mark.seq < seq and mark.kind is not Kind.QUARANTINE:
            last = mark.kind
    return last in (Kind.SUCCEED, Kind.GIVE_UP, Kind.FIX)


def skips_follow_the_decisions(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-11: a node is skipped if and only if every edge into it is decided and none was taken.

    Which edges are taken follows from the recorded outcome and ports. At the end nothing is left unskipped.
    """
    for reading in graph.skips:
        node = t.plan.ids[reading.node]
        if reading.undecided is not None or reading.failed is not None:
            yield t.violation("I-11", f"{node} was skipped before every edge into it was decided", reading.seq)
        elif reading.is_live:
            yield t.violation("I-11", f"{node} was skipped although an edge into it is live", reading.seq)
    for end in graph.ends:
        for index in end.unskipped:
            message = f"{t.plan.ids[index]} was not skipped although every edge into it is dead"
            yield t.violation("I-11", message, end.seq)


# What a rerun takes over


def results_are_taken_over_whole(t: Trace) -> Iterator[Violation]:
    """I-31, in one log: results of another execution come once, before anything starts, from another execution, and
    each together with the results it was made from.
    """
    if not t.has(NodesCarriedOver):
        return
    for seq, event in t.whole:
        if not isinstance(event, NodesCarriedOver):
            continue
        if seq != t.whole[1][0]:
            yield t.violation("I-31", "results were taken over after the beginning", seq)
        if event.source == t.execution:
            yield t.violation("I-31", "results were taken over from the execution itself", seq)
        yield from _parted_results(t, seq, event)


def _parted_results(t: Trace, seq: int, event: NodesCarriedOver) -> Iterator[Violation]:
    known = {**event.outputs, **dict.fromkeys(event.skipped)}
    if len(known) != len(event.outputs) + len(event.skipped):
        yield t.violation("I-31", "a node was taken over both as a success and as skipped", seq)
    for name in known:
        index = t.plan.index.get(name)
        for source in () if index is None else t.plan.predecessors(index):
            if t.plan.ids[source] not in known:
                yield t.violation("I-31", f"{name} was taken over without {t.plan.ids[source]}", seq)


def results_stay_in_the_workspace(histories: Mapping[str, History]) -> Iterator[Violation]:
    """I-31, across logs: what was taken over is what the source recorded, in the same workspace."""
    for history in histories.values():
        for seq, event in enumerate(history.events[:2], 1):
            if isinstance(event, NodesCarriedOver) and event.source in histories:
                yield from _other_results(history, seq, event, histories[event.source])


def _other_results(history: History, seq: int, event: NodesCarriedOver, source: History) -> Iterator[Violation]:
    here, there = history.events[0], source.events[0]
    assert isinstance(here, ExecutionAccepted), "histories are keyed by what accepted them"
    assert isinstance(there, ExecutionAccepted), "histories are keyed by what accepted them"
    if here.workspace != there.workspace:
        message = f"results of workspace {there.workspace} were taken over into {here.workspace}"
        yield Violation("I-31", message, here.execution, seq)
    recorded = {each.node: each for each in source.events if isinstance(each, NodeSucceeded) and each.attempt}
    for node, output in event.outputs.items():
        known = recorded.get(node)
        if known is not None and known.blob is None and known.output != output:
            yield Violation("I-31", f"the output of {node} is not the one its source recorded", here.execution, seq)
