"""The rule about nodes that are repeated, I-44."""

from collections.abc import Iterator

from ropewalk.checker.graph import Graph
from ropewalk.checker.history import Violation
from ropewalk.checker.inputs import RecordedValues
from ropewalk.checker.lanes import Kind, Lane, Mark
from ropewalk.checker.trace import Trace
from ropewalk.core.definition.node_type import EXHAUSTED_PORT, EXPIRED_PORT
from ropewalk.core.events import NodeSucceeded, RoundEnded
from ropewalk.core.repeat import Repeat


def rounds_follow_their_condition(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-44: only a node with `repeat` has rounds, and never more than `max`. Another follows a round if its condition
    says so of what the round gave, no earlier than after `delay`; else the node has succeeded, or it had as many as it
    may and takes `exhausted`. A wait that expired ends it in any case.

    Where a value is in a blob, the log cannot tell.
    """
    if not t.plan.repeats and not t.has(RoundEnded):
        return
    recorded = RecordedValues(t, graph)
    for lane in t.lanes.values():
        repeat = t.plan.repeats.get(lane.node)
        if repeat is not None:
            yield from _rounds(t, lane, repeat, recorded)
        else:
            for mark in lane.marks:
                if mark.kind is Kind.ROUND:
                    yield t.violation("I-44", f"{t.name(lane)} has a round and is not repeated", mark.seq)


def _rounds(t: Trace, lane: Lane, repeat: Repeat, recorded: RecordedValues) -> Iterator[Violation]:
    done = 0
    for before, mark in lane.pairs():
        if before is not None and before.kind is Kind.ROUND:
            yield from _hasty(t, repeat, before, mark)
        if mark.kind is Kind.ROUND:
            yield from _goes_on(t, mark, repeat, done, recorded)
            done += 1
        elif mark.kind is Kind.SUCCEED:
            yield from _ends(t, mark, repeat, done, recorded)


def _hasty(t: Trace, repeat: Repeat, before: Mark, mark: Mark) -> Iterator[Violation]:
    """A round begins when the wait since the last one is over, unless the execution ended meanwhile."""
    next_at = before.event.next_at
    if next_at is not None and next_at < before.event.at + repeat.delay:
        yield t.violation("I-44", f"{t.name(mark)} is to be repeated too early", before.seq)
    if mark.kind is Kind.START and mark.opening == before.opening and (next_at is None or mark.event.at < next_at):
        yield t.violation("I-44", f"{t.name(mark)} was repeated at {mark.event.at}, not at {next_at}", mark.seq)


def _goes_on(t: Trace, mark: Mark, repeat: Repeat, done: int, recorded: RecordedValues) -> Iterator[Violation]:
    if done + 1 >= repeat.most:
        yield t.violation("I-44", f"{t.name(mark)} goes on after {done + 1} rounds of {repeat.most}", mark.seq)
    elif recorded.is_round_true(mark, done) is repeat.is_until:
        yield t.violation("I-44", f"{t.name(mark)} goes on though its condition says that it is over", mark.seq)


def _ends(t: Trace, mark: Mark, repeat: Repeat, done: int, recorded: RecordedValues) -> Iterator[Violation]:
    event: NodeSucceeded = mark.event
    if event.ports == (EXPIRED_PORT,):
        return
    is_over = recorded.is_round_true(mark, done)
    is_named = EXHAUSTED_PORT in t.plan.port_names[mark.node]
    if event.ports == (EXHAUSTED_PORT,) and is_named and done + 1 == repeat.most and is_over is not repeat.is_until:
        return
    if is_over is (not repeat.is_until):
        yield t.violation("I-44", f"{t.name(mark)} ended though its condition says that it goes on", mark.seq)
