"""The rule about what runs were given, I-12: every recorded value is worked out again from what the log says."""

import re
from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any

from ropewalk.checker.attempt_rules import budgets, is_renewed
from ropewalk.checker.graph import Graph
from ropewalk.checker.history import History, Violation
from ropewalk.checker.lanes import Kind, Lane, Mark, handed_on
from ropewalk.checker.recorded_nodes import ElsewhereError, RecordedNodes
from ropewalk.checker.trace import Trace
from ropewalk.core.canonical import content_hash
from ropewalk.core.events import (
    NAMES_WORKFLOW,
    Blob,
    ExecutionReopened,
    ExecutionStarted,
    ExecutionSucceeded,
    NodeRequeued,
    OutcomeDecided,
    given,
)
from ropewalk.core.expression import ExpressionError, Scope, Template, is_true
from ropewalk.core.expression.chance import Chance
from ropewalk.core.instant import rfc3339
from ropewalk.core.reach import BoundedScope
from ropewalk.core.state import NodeState

_POINT = re.compile(r"(?<=[0-9])\.0(?![0-9])")


def inputs_are_what_the_log_says(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-12: recorded inputs are the node's `with`, evaluated on the trigger's data and the recorded outputs of its
    ancestors, with a requeue's overrides until they were tried; retries reuse them. The number of a map's items and
    the output of the execution follow in the same way.

    An ancestor's outcome stands once what depends on it has started, so the whole log may be read first; only what a
    map tolerated may be mended later, and of that a node sees what stood when it started. What hangs on a blob cannot
    be worked out from the log and is passed over.
    """
    if t.accepted is None:
        return
    recorded = RecordedValues(t, graph)
    for lane in t.lanes.values():
        yield from _lane_inputs(t, lane, recorded)
    for node, (seq, event) in t.expanded.items():
        items = recorded.items(node)
        if items is not None and len(items) != event.count:
            yield t.violation("I-12", f"{event.node} has {len(items)} items, {event.count} are recorded", seq)
    for seq, end in t.whole:
        if isinstance(end, ExecutionSucceeded) and end.blob is None:
            yield from _output(t, seq, end, recorded)


def _lane_inputs(t: Trace, lane: Lane, recorded: "RecordedValues") -> Iterator[Violation]:
    first: Mark | None = None
    overrides: dict[str, Any] | None = None
    started: int | None = None
    rounds = 0
    last: Any = None
    for before, mark in lane.pairs():
        if before is not None and is_renewed(before, mark):
            first = started = None
            overrides = mark.event.overrides if isinstance(mark.event, NodeRequeued) else None
        if before is not None and before.kind is Kind.ROUND:
            rounds, last = rounds + 1, handed_on(before.event)
        if mark.kind is Kind.START and started is None:
            started = mark.seq
        has_inputs = mark.kind not in (Kind.START, Kind.RENEW) and hasattr(mark.event, "inputs")
        inputs = given(mark.event) if has_inputs else None
        if inputs is None:
            continue
        if first is not None:
            if not _are_same(inputs, given(first.event)) and mark.kind is not Kind.GIVE_UP:
                yield t.violation("I-12", f"{t.name(lane)} was retried with other inputs", mark.seq, first.seq)
            continue
        first = mark
        seen = recorded if lane.node < t.plan.ordinary else recorded.as_of(started or mark.seq)
        yield from _first_inputs(t, mark, inputs, seen.inputs(lane, overrides, started or mark.seq, rounds, last))


def _are_same(inputs: Any, others: Any) -> bool:
    """Whether these are the same inputs, the one perhaps in the log and the other in a blob."""
    if isinstance(inputs, Blob) is isinstance(others, Blob):
        return bool(inputs == others)
    blob, told = (inputs, others) if isinstance(inputs, Blob) else (others, inputs)
    return bool(blob.hash == content_hash(told))


def _first_inputs(t: Trace, mark: Mark, inputs: Any, known: tuple[Any, ...]) -> Iterator[Violation]:
    if isinstance(inputs, Blob):
        if known and content_hash(known[0]) != inputs.hash:
            yield t.violation("I-12", f"{t.name(mark)} was given other large inputs than the log makes them", mark.seq)
    elif known and inputs != known[0] and _without_points(inputs) != _without_points(known[0]):
        message = f"{t.name(mark)} was given {inputs!r}; the log makes it {known[0]!r}"
        yield t.violation("I-12", message, mark.seq)


def _output(t: Trace, seq: int, end: ExecutionSucceeded, recorded: "RecordedValues") -> Iterator[Violation]:
    known = recorded.output(seq)
    if known and end.output != known[0] and _without_points(end.output) != _without_points(known[0]):
        yield t.violation("I-12", f"the output is {end.output!r}; the log makes it {known[0]!r}", seq)


def _without_points(value: Any) -> Any:
    """The value with `3` for `3.0` in its texts: earlier versions wrote whole numbers with a point."""
    if isinstance(value, str):
        return _POINT.sub("", value)
    if isinstance(value, list):
        return [_without_points(part) for part in value]
    return {key: _without_points(part) for key, part in value.items()} if isinstance(value, dict) else value


class RecordedValues:
    """What expressions see, from the log alone. An answer is a tuple of one, or empty if the log cannot tell."""

    def __init__(self, t: Trace, graph: Graph) -> None:
        self._trace = t
        self._graph = graph
        self._items: dict[int, list[Any] | None] = {}

    @cached_property
    def _nodes(self) -> RecordedNodes:
        return RecordedNodes(self._trace, self._graph)

    def nodes(self, seq: int) -> RecordedNodes:
        """What is known of nodes at an event; of those that were not mended it is the same at any."""
        if not self._graph.mended:
            return self._nodes
        seen = copy(self._nodes)
        seen.until = seq
        return seen

    def as_of(self, seq: int) -> "RecordedValues":
        """What was known when that event was recorded: what closes an execution sees it as it stands then, and that
        may be reopened later.
        """
        seqs = list(self._trace.seqs)
        place = seqs.index(seq) + 1
        known = Trace(History(self._trace.plan, self._trace.events[:place], seqs=seqs[:place], is_quiescent=False))
        return RecordedValues(known, Graph(known))

    @cached_property
    def _end(self) -> dict[str, Any]:
        """What is told of an outcome that was decided, and not taken back."""
        decided: OutcomeDecided | None = None
        for _, event in self._trace.whole:
            if isinstance(event, OutcomeDecided | ExecutionReopened):
                decided = event if isinstance(event, OutcomeDecided) else None
        if decided is None:
            return {}
        names = [self._trace.plan.ids[node] for node in self._graph.failures]
        failed = [{"node": name, "error": self._nodes[name]["error"]} for name in names]
        return {"outcome": str(decided.outcome), "error": decided.error, "failed": failed}

    @cached_property
    def _started(self) -> str | None:
        return next((rfc3339(event.at) for _, event in self._trace.whole if isinstance(event, ExecutionStarted)), None)

    @cached_property
    def _named(self) -> dict[str, Any]:
        accepted = self._trace.accepted
        is_named = accepted is not None and accepted.rules >= NAMES_WORKFLOW
        return {"workflow": self._trace.plan.definition.document.get("name")} if is_named else {}

    def _chance(self, seq: int, node: int, item: int | None) -> Chance:
        """What a node draws from whose first start since it was last begun anew is that event."""
        accepted = self._trace.accepted
        assert accepted is not None, "only an accepted execution is evaluated"
        place = "" if item is None else item
        return Chance(self._trace.at(seq), f"{accepted.execution} {self._trace.plan.ids[node]} {place}")

    def _scope(self, seq: int, item: Any = None, index: int | None = None, node: int | None = None) -> Scope:
        accepted = self._trace.accepted
        assert accepted is not None, "only an accepted execution is evaluated"
        is_closing = node is not None and node >= self._trace.plan.ordinary
        about = self._end if is_closing else {}
        names = {
            "input": accepted.input,
            "vars": accepted.vars,
            "nodes": self.nodes(seq),
            "item": item,
            "index": index,
            "execution": {"id": accepted.execution, "startedAt": self._started, **self._named, **about},
            "chance": None if node is None else self._chance(seq, node, index),
        }
        if accepted.bounded_by:
            return BoundedScope(accepted.bounded_by, **names)
        return Scope(**names, workspace=accepted.workspace, env=accepted.env)

    def items(self, node: int) -> list[Any] | None:
        """The list a map was evaluated to, if the log can tell."""
        if node not in self._items:
            template = self._trace.plan.for_each[node]
            known = () if template is None else self._resolved(template, self._scope(self._evaluated(node), node=node))
            self._items[node] = known[0] if known and isinstance(known[0], list) else None
        return self._items[node]

    def _evaluated(self, node: int) -> int:
        """The start of the evaluation that gave a map its list."""
        parts = budgets(self._trace.lanes[node, None])
        part = next(part for part in parts if any(mark.kind is Kind.SUCCEED for mark in part))
        return next((mark.seq for mark in part if mark.kind is Kind.START), part[0].seq)

    def inputs(self, lane: Lane, overrides: dict[str, Any] | None, started: int, rounds: int = 0,
               last: Any = None) -> tuple[Any, ...]:  # fmt: skip
        """The node's `with` for this lane, as it was at its start, after so many rounds; the last of them gave that."""
        template = self._trace.plan.with_template(lane.node)
        item = None
        if lane.item is not None and not template.is_constant:
            items = self.items(lane.node)
            if items is None or lane.item >= len(items):
                return ()
            item = items[lane.item]
        if isinstance(last, Blob) and any(path[0] == "last" for path in template.references):
            return ()
        scope = self._scope(started, item, rounds if lane.node in self._trace.plan.repeats else lane.item, lane.node)
        scope.last = last
        known = self._resolved(template, scope)
        return ({**known[0], **overrides},) if known and overrides else known

    def output(self, seq: int) -> tuple[Any, ...]:
        """The `output` expression, else the outputs of the sinks that succeeded, as they were at an end."""
        plan = self._trace.plan
        if plan.output is not None:
            return self._resolved(plan.output, self._scope(seq))
        nodes = self.nodes(seq)
        try:
            sinks = [sink for sink in plan.sinks if nodes.states[sink] is NodeState.SUCCESS]
            return ({plan.ids[sink]: nodes.output(sink) for sink in sinks},)
        except ElsewhereError:
            return ()

    def is_round_true(self, mark: Mark, rounds: int) -> bool | None:
        """Whether the condition of a node holds after the round that ended so; None if the log cannot tell."""
        condition = self._trace.plan.repeats[mark.node].condition
        last = handed_on(mark.event)
        if isinstance(last, Blob) and any(path[0] == "last" for path in condition.references):
            return None
        scope = self._scope(self._seen_from(mark), None, rounds)
        scope.last = last
        known = self._resolved(condition, scope)
        return is_true(known[0]) if known else None

    def is_true(self, when: Template, mark: Mark) -> bool | None:
        """Whether a `when` holds of the failure that a mark is; None if the log cannot tell."""
        event = mark.event
        scope = self._scope(self._seen_from(mark))
        scope.error = self.nodes(mark.seq).error(event.error, mark.number, child=event.child)
        scope.attempt = mark.number
        known = self._resolved(when, scope)
        return is_true(known[0]) if known else None

    def _seen_from(self, mark: Mark) -> int:
        """The event from which on a node sees what it sees: its first start, of a map that of its list."""
        if self._trace.is_expanded(mark.node, mark.seq):
            return self._evaluated(mark.node)
        parts = budgets(self._trace.lanes[mark.node, None])
        part = next(part for part in parts if part[0].seq <= mark.seq <= part[-1].seq)
        return next((each.seq for each in part if each.kind is Kind.START), mark.seq)

    def _resolved(self, template: Any, scope: Scope) -> tuple[Any, ...]:
        try:
            return (template.resolve(scope),)
        except (ElsewhereError, ExpressionError):
            return ()
