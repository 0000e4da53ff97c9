"""A log, read once and laid out for the rules.

The same events in four lists: `whole`, what happened to the execution and every start; `facts`, what happened to its
nodes; `marks`, what happened to its attempts; and `lanes`, the marks of one node or item each. Nothing is judged here,
and nothing is refused: a forged log is laid out as it is.
"""

from collections.abc import Callable
from typing import Any, Final

from ropewalk.checker.history import History, Violation
from ropewalk.checker.lanes import Fact, Key, Kind, Lane, Mark, Step
from ropewalk.core import events
from ropewalk.core.events import Event

TERMINAL: Final = (
    events.ExecutionSucceeded,
    events.ExecutionFailed,
    events.ExecutionCancelled,
    events.ExecutionTimedOut,
)
STARTS: Final = (events.NodesStarted, events.ItemsStarted, events.RunStarted)
ENDINGS: Final = (events.StopRequested, events.CancelRequested, events.DeadlinePassed)


class Trace:
    """One history, laid out."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.plan = history.plan
        self.events = history.events
        self.seqs = range(1, len(self.events) + 1) if history.seqs is None else history.seqs
        first = self.events[0] if self.events else None
        self.accepted = first if isinstance(first, events.ExecutionAccepted) else None
        self.execution = "?" if self.accepted is None else self.accepted.execution
        self.kinds = frozenset(map(type, self.events))
        self.opening = 0
        self.is_ending = False
        # The decisions by which what was left of the graph was cut short.
        self.cuts: dict[int, None] = {}
        self.whole: list[tuple[int, Event]] = []
        self.facts: list[Fact] = []
        self.marks: list[Mark] = []
        self.lanes: dict[Key, Lane] = {}
        self.items: dict[int, dict[int, Lane]] = {}
        self.expanded: dict[int, tuple[int, events.MapExpanded]] = {}
        self.told: list[tuple[int, events.SignalReceived]] = []
        self.strangers: list[tuple[int, str]] = []
        for seq, event in zip(self.seqs, self.events, strict=False):
            READ[type(event)](self, seq, event)

    def at(self, seq: int) -> int:
        """When the event of this number was recorded."""
        return self.events[self.seqs.index(seq)].at

    def violation(self, invariant: str, message: str, seq: int, other: int | None = None) -> Violation:
        return Violation(invariant, message, self.execution, seq, other)

    def name(self, of: Mark | Lane) -> str:
        """The node or item as people write it."""
        node = self.plan.ids[of.node]
        return node if of.item is None else f"{node}[{of.item}]"

    def is_expanded(self, node: int, seq: int) -> bool:
        """Whether the node is a map whose list was known at that event."""
        known = self.expanded.get(node)
        return known is not None and known[0] < seq

    def has(self, *kinds: type) -> bool:
        """Whether the log has an event of one of these kinds; most rules are about few."""
        return not self.kinds.isdisjoint(kinds)

    # Laying out

    def index(self, seq: int, node: str) -> int | None:
        index = self.plan.index.get(node)
        if index is None:
            self.strangers.append((seq, node))
        return index

    def lane(self, node: int, item: int | None) -> Lane:
        lane = self.lanes.get((node, item))
        if lane is None:
            lane = self.lanes[node, item] = Lane(node, item)
            if item is not None:
                self.items.setdefault(node, {})[item] = lane
        return lane

    def mark(self, seq: int, kind: Kind, node: int, item: int | None, event: Any, number: int | None = None) -> None:
        """One step of an attempt; without a number it is the one under way."""
        lane = self.lane(node, item)
        number = lane.number if number is None else number
        if kind is Kind.START:
            lane.number = number
        mark = Mark(seq, kind, node, item, number, self.opening, event)
        lane.marks.append(mark)
        self.marks.append(mark)

    def fact(self, seq: int, step: Step, node: int, event: Any) -> None:
        self.facts.append(Fact(seq, step, node, event))


def _whole(t: Trace, seq: int, event: Event) -> None:
    t.whole.append((seq, event))


def _ending(t: Trace, seq: int, event: Event) -> None:
    t.whole.append((seq, event))
    t.is_ending = True


def _decided(t: Trace, seq: int, event: events.OutcomeDecided) -> None:
    t.whole.append((seq, event))
    t.fact(seq, Step.DECIDE, -1, event)
    if t.is_ending:
        t.cuts[seq] = None


def _ended(t: Trace, seq: int, event: Event) -> None:
    t.whole.append((seq, event))
    t.fact(seq, Step.END, -1, event)


def _reopened(t: Trace, seq: int, event: events.ExecutionReopened) -> None:
    t.whole.append((seq, event))
    t.opening += 1
    t.is_ending = False
    t.fact(seq, Step.REOPEN, -1, event)
    for lane in [lane for lane in t.lanes.values() if lane.node >= t.plan.ordinary]:
        t.mark(seq, Kind.RENEW, lane.node, lane.item, event)


def _carried_over(t: Trace, seq: int, event: events.NodesCarriedOver) -> None:
    t.whole.append((seq, event))
    for node in (*event.outputs, *event.skipped):
        index = t.index(seq, node)
        if index is not None:
            t.fact(seq, Step.CARRY, index, event)


# Nodes and maps


def _nodes_started(t: Trace, seq: int, event: events.NodesStarted) -> None:
    t.whole.append((seq, event))
    for node in event.nodes:
        index = t.index(seq, node)
        if index is None:
            continue
        t.fact(seq, Step.START, index, event)
        if index not in t.expanded:
            t.mark(seq, Kind.START, index, None, event, t.lane(index, None).number + 1)


def _nodes_skipped(t: Trace, seq: int, event: events.NodesSkipped) -> None:
    for node in event.nodes:
        index = t.index(seq, node)
        if index is not None:
            t.fact(seq, Step.SKIP, index, event)


def _node_ended(t: Trace, seq: int, event: events.NodeSucceeded | events.NodeFailed) -> None:
    index = t.index(seq, event.node)
    if index is None:
        return
    is_success = isinstance(event, events.NodeSucceeded)
    t.fact(seq, Step.SUCCEED if is_success else Step.FAIL, index, event)
    # The end of a map whose list is known is that of its items, not of an attempt.
    if index not in t.expanded:
        t.mark(seq, Kind.SUCCEED if is_success else Kind.GIVE_UP, index, None, event, event.attempt)


def _map_expanded(t: Trace, seq: int, event: events.MapExpanded) -> None:
    index = t.index(seq, event.node)
    if index is not None:
        t.mark(seq, Kind.SUCCEED, index, None, event, event.attempt)
        t.expanded.setdefault(index, (seq, event))


def _items_started(t: Trace, seq: int, event: events.ItemsStarted) -> None:
    t.whole.append((seq, event))
    index = t.index(seq, event.node)
    if index is not None:
        for item in event.items:
            t.mark(seq, Kind.START, index, item, event, t.lane(index, item).number + 1)


def _item_ended(t: Trace, seq: int, event: events.ItemSucceeded | events.ItemFailed) -> None:
    index = t.index(seq, event.node)
    if index is not None:
        kind = Kind.SUCCEED if isinstance(event, events.ItemSucceeded) else Kind.GIVE_UP
        t.mark(seq, kind, index, event.item, event, event.attempt)


def _items_given_up(t: Trace, seq: int, event: events.ItemsGivenUp) -> None:
    index = t.index(seq, event.node)
    if index is not None:
        for item in event.items:
            t.mark(seq, Kind.QUARANTINE, index, item, event)


# Runs


def _run(kind: Kind) -> Callable[[Trace, int, Any], None]:
    def read(
        t: Trace,
        seq: int,
        event: events.RunStarted | events.RunFailed | events.RunWaiting | events.RunReturned | events.RunReleased,
    ) -> None:
        if kind is Kind.START:
            t.whole.append((seq, event))
        index = t.index(seq, event.node)
        if index is not None:
            t.mark(seq, kind, index, event.item, event, event.attempt)

    return read


def _round_ended(t: Trace, seq: int, event: events.RoundEnded) -> None:
    index = t.index(seq, event.node)
    if index is not None:
        t.mark(seq, Kind.ROUND, index, None, event, event.attempt)


# People's verbs


def _reset(t: Trace, seq: int, event: events.NodesReset) -> None:
    for node in event.nodes:
        index = t.index(seq, node)
        if index is None:
            continue
        lanes = [t.lane(index, None)] if index not in t.expanded else list(t.items.get(index, {}).values())
        kinds = [_begin_again(t, seq, lane, event) for lane in lanes if lane.failure is not None]
        is_waiting = index not in t.expanded and Kind.RESUME in kinds
        t.fact(seq, Step.RESUME if is_waiting else Step.WITHDRAW, index, event)


def _begin_again(t: Trace, seq: int, lane: Lane, event: events.NodesReset) -> Kind:
    """A failed child that can be reopened is waited for again; anything else is tried anew."""
    failure = lane.failure
    child = None if failure is None or failure.undone else failure.child
    kind = Kind.RESUME if child is not None and child.is_reopenable else Kind.RENEW
    t.mark(seq, kind, lane.node, lane.item, event)
    return kind


def _requeued(t: Trace, seq: int, event: events.NodeRequeued) -> None:
    index = t.index(seq, event.node)
    if index is not None:
        t.mark(seq, Kind.RENEW, index, event.item, event)
        t.fact(seq, Step.WITHDRAW, index, event)


def _fixed(t: Trace, seq: int, event: events.NodeFixed) -> None:
    index = t.index(seq, event.node)
    if index is not None:
        t.mark(seq, Kind.FIX, index, event.item, event)
        t.fact(seq, Step.FIX if event.item is None else Step.WITHDRAW, index, event)


def _child_resumed(t: Trace, seq: int, event: events.ChildResumed) -> None:
    index = t.index(seq, event.node)
    if index is not None:
        t.mark(seq, Kind.RESUME, index, event.item, event, event.attempt)
        t.fact(seq, Step.RESUME if event.item is None else Step.WITHDRAW, index, event)


def _told(t: Trace, seq: int, event: events.SignalReceived) -> None:
    t.told.append((seq, event))


READ: Final[dict[type, Callable[[Trace, int, Any], None]]] = {
    events.ExecutionAccepted: _whole,
    events.NodesCarriedOver: _carried_over,
    events.ExecutionStarted: _whole,
    events.SlotTaken: _whole,
    events.SlotReleased: _whole,
    events.ExecutionPaused: _whole,
    events.ExecutionResumed: _whole,
    events.StopRequested: _ending,
    events.CancelRequested: _ending,
    events.DeadlinePassed: _ending,
    events.OutcomeDecided: _decided,
    events.ExecutionSucceeded: _ended,
    events.ExecutionFailed: _ended,
    events.ExecutionCancelled: _ended,
    events.ExecutionTimedOut: _ended,
    events.ExecutionReopened: _reopened,
    events.NodesStarted: _nodes_started,
    events.NodesSkipped: _nodes_skipped,
    events.NodeSucceeded: _node_ended,
    events.NodeFailed: _node_ended,
    events.NodesReset: _reset,
    events.NodeRequeued: _requeued,
    events.NodeFixed: _fixed,
    events.ChildResumed: _child_resumed,
    events.MapExpanded: _map_expanded,
    events.ItemsStarted: _items_started,
    events.ItemSucceeded: _item_ended,
    events.ItemFailed: _item_ended,
    events.ItemsGivenUp: _items_given_up,
    events.RunStarted: _run(Kind.START),
    events.RunFailed: _run(Kind.RETRY),
    events.RoundEnded: _round_ended,
    events.RunWaiting: _run(Kind.WAIT),
    events.RunReturned: _run(Kind.RETURN),
    events.RunReleased: _run(Kind.RELEASE),
    events.SignalReceived: _told,
}
