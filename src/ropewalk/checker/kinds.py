"""What the kind of a failure decides, worked out again: if it is worth another attempt, and the way it goes, I-43."""

from collections.abc import Iterator

from ropewalk.checker.graph import Graph
from ropewalk.checker.history import Violation
from ropewalk.checker.inputs import RecordedValues
from ropewalk.checker.lanes import Kind, Mark, Step
from ropewalk.checker.trace import Trace
from ropewalk.core.error_ways import ErrorWay
from ropewalk.core.errors import ErrorType
from ropewalk.core.events import NodeFailed
from ropewalk.core.retry import is_retryable
from ropewalk.core.state import GaveUp


class Worth:
    """Which failures are worth another attempt, by the policy of their node and what the log says."""

    def __init__(self, t: Trace, graph: Graph) -> None:
        self._plan = t.plan
        self._recorded = RecordedValues(t, graph)

    def has_kinds(self, node: int) -> bool:
        """Whether the node itself says which failures are worth it."""
        return self._plan.retries[node].on is not None or node in self._plan.retry_when

    def is_given(self, mark: Mark) -> bool | None:
        """Whether another attempt may follow; None if the log cannot tell."""
        error, on, when = mark.event.error, self._plan.retries[mark.node].on, self._plan.retry_when.get(mark.node)
        if on is None and when is None:
            return is_retryable(error.type)
        if error.type is ErrorType.CIRCUIT_OPEN:
            return False
        if on is not None and str(error.type) not in on and not _has_status(on, error.status):
            return False
        if when is None:
            return True
        return False if _has_fault(mark, "retry.when") else self._recorded.is_true(when, mark)


def _has_status(on: tuple[str, ...], status: int | None) -> bool:
    return status is not None and (f"status:{status}" in on or f"status:{str(status)[0]}xx" in on)


def _has_fault(mark: Mark, place: str) -> bool:
    return any(fault.startswith(f"{place}:") for fault in getattr(mark.event, "faults", ()))


def failures_go_their_way(t: Trace, graph: Graph) -> Iterator[Violation]:
    """I-43: a failure takes the first of its node's error edges whose `when` is true of it, in the order of the
    document, and none if none is; an expression that could not be evaluated is not true.

    What a person gave up takes none. Where a value is in a blob, the log cannot tell.
    """
    if not t.plan.error_ways or not t.has(NodeFailed):
        return
    recorded = RecordedValues(t, graph)
    for fact in t.facts:
        ways = t.plan.error_ways.get(fact.node)
        if fact.step is Step.FAIL and ways is not None and fact.event.gave_up is not GaveUp.MANUAL:
            mark = Mark(fact.seq, Kind.GIVE_UP, fact.node, None, fact.event.attempt, 0, fact.event)
            yield from _other_way(t, mark, _ways_of(ways, mark, recorded))


def _ways_of(ways: tuple[ErrorWay, ...], mark: Mark, recorded: RecordedValues) -> list[int | None] | None:
    """The edges that may be the first taken: one, or None for none; nothing if the log cannot tell."""
    for way in ways:
        if way.when is None:
            return [way.edge]
        if _has_fault(mark, f"edges[{way.edge}].when"):
            continue
        answer = recorded.is_true(way.when, mark)
        if answer is None:
            return None
        if answer:
            return [way.edge]
    return [None]


def _other_way(t: Trace, mark: Mark, known: list[int | None] | None) -> Iterator[Violation]:
    event: NodeFailed = mark.event
    if known is not None and (event.edge, event.handled) != (known[0], known[0] is not None):
        taken, due = ("no edge" if edge is None else f"edges[{edge}]" for edge in (event.edge, known[0]))
        yield t.violation("I-43", f"{event.node} failed and took {taken}; the log makes it {due}", mark.seq)
