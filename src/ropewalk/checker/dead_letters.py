"""The rule about dead letters, I-24."""

from collections.abc import Iterator, Mapping

from ropewalk.checker.attempt_rules import budgets
from ropewalk.checker.graph import Graph
from ropewalk.checker.history import Violation
from ropewalk.checker.kinds import Worth
from ropewalk.checker.lanes import Kind, Lane, Mark, Step
from ropewalk.checker.trace import Trace
from ropewalk.core.errors import ErrorType
from ropewalk.core.events import ItemFailed, ItemsGivenUp, NodeFailed, given
from ropewalk.core.retry import gave_up_for
from ropewalk.core.state import GaveUp


def dead_letters_are_for_what_gave_up(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-24: a run becomes a dead letter if and only if it failed for good and nothing handled that.

    For good: the error is permanent, the budget is used up, a wait ran out, or a person said so. Handled: by an error
    edge (unless a person gave it up), by a map's tolerance (unless the map keeps all dead letters), or by a child that
    keeps its own dead letters. When a map fails, more items than it tolerates have failed, and each of them is a dead
    letter or has a child; when it succeeds, no more than that. What is mended after that and fails again is one again.
    A dead letter's inputs are those of its attempts.
    """
    worth = Worth(t, graph)
    done = {move.node: move.seq for move in graph.moves if move.step is Step.SUCCEED} if t.expanded else {}
    for lane in t.lanes.values() if t.has(NodeFailed, ItemFailed) else ():
        if any(mark.kind is Kind.GIVE_UP for mark in lane.marks):
            for part in budgets(lane):
                yield from _failures(t, lane, part, done, worth)
    if not t.expanded:
        return
    for move in graph.moves:
        if move.step in (Step.SUCCEED, Step.FAIL) and t.is_expanded(move.node, move.seq):
            yield from _map_outcome(t, move.node, move.seq, has_failed=move.step is Step.FAIL)
    yield from _quarantines(t, done)


Done = Mapping[int, int]
"""The nodes that have succeeded, and by which event."""


def _is_done(done: Done, mark: Mark) -> bool:
    """Whether the item failed after its map had succeeded."""
    return mark.item is not None and done.get(mark.node, mark.seq) < mark.seq


def _failures(t: Trace, lane: Lane, part: list[Mark], done: Done, worth: Worth) -> Iterator[Violation]:
    used: dict[int, None] = {}
    inputs, before = None, part[0]
    for mark in part:
        if mark.kind is Kind.START:
            used[mark.number] = None
        elif mark.kind is Kind.GIVE_UP:
            yield from _failure(t, mark, before, len(used), done, worth)
            if inputs is not None and given(mark.event) is not None and given(mark.event) != inputs:
                yield t.violation("I-24", f"{t.name(lane)} has other inputs in its dead letter", mark.seq)
        elif mark.kind in (Kind.WAIT, Kind.RETRY) and given(mark.event) is not None:
            inputs = given(mark.event)
        before = mark


def _failure(t: Trace, mark: Mark, before: Mark, used: int, done: Done, worth: Worth) -> Iterator[Violation]:
    event: NodeFailed | ItemFailed = mark.event
    if event.gave_up is GaveUp.MANUAL:
        if isinstance(event, NodeFailed) and event.handled:
            yield t.violation("I-24", f"{t.name(mark)} was given up by hand and yet handled", mark.seq)
        return
    is_over = _is_child_final if event.child is not None else _is_for_good
    if not is_over(t, mark, before, used, worth):
        message = f"{t.name(mark)} was given up after {used} attempts, with a {event.error.type} error"
        yield t.violation("I-24", message, mark.seq)
    yield from _letter(t, mark, event, is_mended=_is_done(done, mark))


def _is_child_final(t: Trace, mark: Mark, before: Mark, used: int, worth: Worth) -> bool:
    """Whether no further child may follow the one that ended so; before rule 1 none ever did."""
    event: NodeFailed | ItemFailed = mark.event
    is_retried = t.accepted is not None and t.accepted.rules > 0 and t.plan.has_retry(mark.node)
    is_failed = event.child is not None and event.child.is_reopenable
    if is_retried and worth.has_kinds(mark.node) and not worth.is_given(mark):
        return True
    return not (is_retried and is_failed) or used >= t.plan.retries[mark.node].max_attempts


def _is_for_good(t: Trace, mark: Mark, before: Mark, used: int, worth: Worth) -> bool:
    event: NodeFailed | ItemFailed = mark.event
    if not worth.is_given(mark) or used >= t.plan.retries[mark.node].max_attempts:
        return True
    if mark.node in t.plan.repeats and event.error.message.startswith("repeat"):
        return True  # the round itself ended well: there is nothing to try again
    is_expired = before.kind is Kind.WAIT and before.event.due is not None and before.event.due <= event.at
    return is_expired and event.error.type is ErrorType.TIMEOUT


def _letter(t: Trace, mark: Mark, event: NodeFailed | ItemFailed, *, is_mended: bool) -> Iterator[Violation]:
    """Whether there is a dead letter where there must be one, and for the right reason."""
    has_error_edge = bool(t.plan.has_error_edge[mark.node]) and not is_mended
    if isinstance(event, NodeFailed) and mark.node in t.plan.error_ways:
        has_error_edge = event.handled  # whether an edge takes it is I-43's
    if event.gave_up is not None and event.gave_up is not gave_up_for(event.error.type):
        yield t.violation("I-24", f"{t.name(mark)}: {event.gave_up} after a {event.error.type} error", mark.seq)
    if event.gave_up is not None and (has_error_edge or event.child is not None):
        yield t.violation("I-24", f"{t.name(mark)} is a dead letter although its failure is handled", mark.seq)
    if isinstance(event, ItemFailed):
        is_kept = is_mended or (bool(t.plan.keeps_letters[mark.node]) and not has_error_edge)
        if is_kept and event.gave_up is None and event.child is None:
            yield t.violation("I-24", f"{t.name(mark)} gave up without a dead letter", mark.seq)
        return
    if event.handled != has_error_edge:
        yield t.violation("I-24", f"{t.name(mark)} is recorded as {_handled(event.handled)}", mark.seq)
    elif not event.handled and event.gave_up is None and event.child is None:
        yield t.violation("I-24", f"{t.name(mark)} gave up without a dead letter", mark.seq)


def _handled(is_handled: bool) -> str:
    return "handled" if is_handled else "not handled"


# Maps


def _map_outcome(t: Trace, node: int, seq: int, *, has_failed: bool) -> Iterator[Violation]:
    count = t.expanded[node][1].count
    failed = [failure for lane in t.items.get(node, {}).values() if (failure := _failed_by(lane, seq)) is not None]
    limit = t.plan.tolerated(node, count)
    if has_failed != (len(failed) > limit):
        outcome = "failed" if has_failed else "succeeded"
        yield t.violation("I-24", f"{t.plan.ids[node]} {outcome}: {len(failed)} failures, {limit} tolerated", seq)
    if bool(t.plan.keeps_letters[node]) if not has_failed else not _is_map_handled(t, node, seq):
        for mark, has_letter in failed:
            if not has_letter and mark.event.child is None:
                yield t.violation("I-24", f"{t.name(mark)} gave up without a dead letter", seq, mark.seq)


def _is_map_handled(t: Trace, node: int, seq: int) -> bool:
    """Whether an error edge takes the failure of a map, which that event is if it is one."""
    if node not in t.plan.error_ways:
        return bool(t.plan.has_error_edge[node])
    failure = next((fact.event for fact in t.facts if fact.seq == seq and fact.node == node), None)
    # A log may end before the failure.
    return failure.handled if isinstance(failure, NodeFailed) else seq <= t.seqs[-1]


def _failed_by(lane: Lane, seq: int) -> tuple[Mark, bool] | None:
    """The item's failure that stood at that event, and whether it was a dead letter."""
    last, has_letter = None, False
    for mark in lane.marks:
        if mark.seq > seq:
            break
        if mark.kind is Kind.QUARANTINE:
            has_letter = True
        else:
            last = mark
            has_letter = mark.kind is Kind.GIVE_UP and mark.event.gave_up is not None
    return (last, has_letter) if last is not None and last.kind is Kind.GIVE_UP else None


def _quarantines(t: Trace, done: Done) -> Iterator[Violation]:
    """A map gives up only when too many items have failed; items are dead letters only when it has, or keeps all."""
    given_up: dict[int, int] = {}
    for seq, event in zip(t.seqs, t.events, strict=False):
        if (
            isinstance(event, ItemsGivenUp)
            and (node := t.plan.index.get(event.node)) in t.expanded
            and node is not None
        ):
            given_up.setdefault(node, seq)
            yield from _gives_up_rightly(t, node, seq, event, done)
    for mark in t.marks:
        if mark.kind is not Kind.GIVE_UP or mark.item is None or mark.event.gave_up in (None, GaveUp.MANUAL):
            continue
        if t.plan.keeps_letters[mark.node] or _is_done(done, mark):
            continue
        # The event that says so follows the failure that was one too many, if the log goes on.
        if given_up.get(mark.node, mark.seq + 2) > mark.seq + 1 and mark.seq != t.seqs[-1]:
            yield t.violation("I-24", f"{t.name(mark)} is a dead letter although its map tolerates it", mark.seq)


def _gives_up_rightly(t: Trace, node: int, seq: int, event: ItemsGivenUp, done: Done) -> Iterator[Violation]:
    lanes = t.items.get(node, {})
    failed = sum(_failed_by(lane, seq) is not None for lane in lanes.values())
    limit = t.plan.tolerated(node, t.expanded[node][1].count)
    # A map that keeps the dead letters of what it tolerates writes those it has not written when it succeeds.
    is_kept = bool(t.plan.keeps_letters[node]) and bool(event.items) and done.get(node, seq + 1) == seq + 1
    if failed <= limit and not is_kept:
        yield t.violation("I-24", f"{event.node} gave up after {failed} failures, {limit} are tolerated", seq)
    # Where its edges ask which failure it is, a map knows that it has dead letters when it fails, in the next event.
    if event.items and _is_map_handled(t, node, seq + 1) and not is_kept:
        yield t.violation("I-24", f"{event.node} made dead letters although its failure is handled", seq)
    yield from _doubled_letters(t, [lanes[item] for item in event.items if item in lanes], seq)


def _doubled_letters(t: Trace, lanes: list[Lane], seq: int) -> Iterator[Violation]:
    for lane in lanes:
        failure = _failed_by(lane, seq - 1)
        if failure is None:
            yield t.violation("I-24", f"{t.name(lane)} is a dead letter although it has not failed", seq)
        elif failure[1]:
            yield t.violation("I-24", f"{t.name(lane)} is a dead letter twice", seq, failure[0].seq)
