"""The rule about how an execution is closed: I-43."""

from collections.abc import Iterator
from typing import Final

from ropewalk.checker.history import Violation
from ropewalk.checker.trace import TERMINAL, Trace
from ropewalk.core.events import (
    Event,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionReopened,
    ExecutionStarted,
    ExecutionSucceeded,
    ExecutionTimedOut,
    ItemsStarted,
    NodeFailed,
    NodeFixed,
    NodesStarted,
    NodeSucceeded,
    OutcomeDecided,
    RunStarted,
)
from ropewalk.core.state import ExecutionState

_ENDS: Final[dict[ExecutionState, type]] = {
    ExecutionState.SUCCESS: ExecutionSucceeded,
    ExecutionState.FAILED: ExecutionFailed,
    ExecutionState.CANCELLED: ExecutionCancelled,
    ExecutionState.TIMEOUT: ExecutionTimedOut,
}


def closing_is_in_order(t: Trace) -> Iterator[Violation]:
    """I-43: an execution that has begun and has nodes to close it ends by a decision, and as was decided.

    Until then none of these nodes starts, and after it no other does. Unless it succeeds, every node that it has
    finished itself and that can be undone is undone, once, the last one first; then the nodes of `finally` run in
    document order. Each has its outcome before the next one starts, and the last before the end, unless there is a time
    for all of it, which is over. What has undone something is not reopened.
    """
    if t.plan.has_closing or t.has(OutcomeDecided):
        closing = _Closing(t)
        for seq, event in zip(t.seqs, t.events, strict=False):
            for message in closing.after(event):
                yield t.violation("I-43", message, seq, closing.seq)
            closing.seq = seq if isinstance(event, OutcomeDecided) else closing.seq


class _Closing:
    """How far the closing has come."""

    def __init__(self, t: Trace) -> None:
        self.seq: int | None = None
        self._plan = t.plan
        self._has_begun = False
        self._is_started = False
        self._decided: OutcomeDecided | None = None
        self._done: list[str] = []
        self._line: list[str] = []
        self._current: str | None = None

    def after(self, event: Event) -> Iterator[str]:
        """What is wrong with this event at this place."""
        match event:
            case ExecutionStarted():
                self._has_begun = self._is_started = True
            case OutcomeDecided():
                yield from self._decide(event)
            case NodesStarted(nodes=nodes):
                for node in nodes:
                    yield from self._start(node)
            case ItemsStarted(node=node) | RunStarted(node=node):
                if self._decided is not None and node != self._current:
                    yield f"{node} starts again after the outcome was decided, out of its turn"
            case NodeSucceeded(node=node) | NodeFailed(node=node) | NodeFixed(node=node):
                yield from self._settle(event, node)
            case ExecutionReopened():
                yield from self._reopen()
            case _ if isinstance(event, TERMINAL):
                yield from self._end(event)
            case _:
                pass

    def _decide(self, event: OutcomeDecided) -> Iterator[str]:
        if self._decided is not None:
            yield "the outcome was decided twice"
        expected = [*self._undoing(event.outcome), *(self._plan.ids[node] for node in self._plan.last)]
        if list(event.nodes) != expected:
            yield f"it is closed by {', '.join(event.nodes)}, not by {', '.join(expected)}"
        if (event.until is None) != (event.outcome in (ExecutionState.SUCCESS, ExecutionState.FAILED)):
            yield "the time to be closed is limited where it must not be, or the reverse"
        self._decided, self._line, self._current = event, list(event.nodes), None

    def _undoing(self, outcome: ExecutionState) -> list[str]:
        if outcome is ExecutionState.SUCCESS:
            return []
        ids, undoing = self._plan.ids, self._plan.compensations
        return [ids[undoing[node]] for name in reversed(self._done) if (node := self._plan.index[name]) in undoing]

    def _closes(self, node: str) -> bool:
        return self._plan.index.get(node, -1) >= self._plan.ordinary

    def _start(self, node: str) -> Iterator[str]:
        if not self._closes(node):
            if self._decided is not None:
                yield f"{node} started after the outcome was decided"
        elif self._decided is None:
            yield f"{node} started before the outcome was decided"
        elif self._current is not None or self._line[:1] != [node]:
            yield f"{node} started out of its turn"
        else:
            self._current = self._line.pop(0)

    def _settle(self, event: NodeSucceeded | NodeFailed | NodeFixed, node: str) -> Iterator[str]:
        if node == self._current:
            self._current = None
        elif self._decided is not None:
            yield f"{node} has an outcome after that of the execution was decided"
        elif not isinstance(event, NodeFailed) and getattr(event, "item", None) is None:
            self._done.append(node)

    def _end(self, event: Event) -> Iterator[str]:
        decided = self._decided
        if decided is None:
            if self._has_begun and (self._is_started or not isinstance(event, ExecutionFailed)):
                yield "it ended, and its outcome was not decided before"
            return
        if type(event) is not _ENDS[decided.outcome]:
            yield f"{decided.outcome} was decided, and it ended otherwise"
        elif isinstance(event, ExecutionFailed) and event.error != decided.error:
            yield "it failed for another reason than was decided"
        elif isinstance(event, ExecutionSucceeded) and (event.output, event.blob) != (decided.output, decided.blob):
            yield "it has another output than was decided"
        is_late = decided.until is not None and event.at >= decided.until
        if (self._line or self._current is not None) and not is_late:
            yield f"it ended before {self._current or self._line[0]} had its outcome"

    def _reopen(self) -> Iterator[str]:
        if self._decided is not None and self._decided.undone:
            yield "it was reopened although it had undone something"
        self._decided, self._line, self._current, self._is_started = None, [], None, False
