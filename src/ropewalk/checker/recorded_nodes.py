"""What expressions see of nodes, from the recorded outcomes."""

from collections.abc import Iterator, Mapping
from typing import Any

from ropewalk.checker.graph import Graph
from ropewalk.checker.lanes import Kind, Lane, Mark, Step, handed_on
from ropewalk.checker.trace import Trace
from ropewalk.core.errors import RunError
from ropewalk.core.events import TELLS_CHILD, TELLS_ERRORS, Blob, NodeFailed, NodesCarriedOver
from ropewalk.core.state import ExecutionState, NodeState


class ElsewhereError(Exception):
    """The value is in a blob, and not for the log to tell."""


class RecordedNodes(Mapping[str, Any]):
    """`nodes`, from the recorded outcomes."""

    def __init__(self, t: Trace, graph: Graph) -> None:
        self._trace = t
        self.states = graph.states
        # Of a map that was mended, only what happened to items before this event.
        self.until: int | None = None
        self._mended = graph.mended
        self._outputs: dict[int, Any] = {}
        self._errors: dict[int, NodeFailed] = {}
        self._carried: dict[str, int] = {}
        for fact in t.facts:
            if fact.step is Step.CARRY and isinstance(fact.event, NodesCarriedOver):
                name, self._carried = t.plan.ids[fact.node], fact.event.rounds
                self._outputs[fact.node] = fact.event.output(name) if name in fact.event.outputs else None
            elif fact.step in (Step.SUCCEED, Step.FIX):
                self._outputs[fact.node] = handed_on(fact.event)
            elif fact.step is Step.FAIL:
                self._errors[fact.node] = fact.event

    def __getitem__(self, node: str) -> dict[str, Any]:
        index = self._trace.plan.index[node]
        state = self.states[index]
        record: dict[str, Any] = {"output": self.output(index), "state": str(state), "error": None}
        if state is NodeState.FAILED:
            failure = self._errors[index]
            record["error"] = self.error(failure.error, failure.attempt, child=failure.child)
        if index in self._trace.plan.repeats:
            record["rounds"] = self._rounds(index)
        if index in self._trace.expanded:
            record["errors"] = self._item_errors(index)
        return record

    def _rounds(self, index: int) -> int:
        lane = self._trace.lanes.get((index, None))
        if lane is None:
            return self._carried.get(self._trace.plan.ids[index], 0)
        marks = sum(mark.kind is Kind.ROUND for mark in lane.marks)
        return marks + (self.states[index] is NodeState.SUCCESS)

    def output(self, index: int) -> Any:
        """What the node gave; of a map, the list of what its items gave."""
        if index in self._trace.expanded:
            return self._item_outputs(index) if self.states[index] is NodeState.SUCCESS else None
        output = self._outputs.get(index)
        if isinstance(output, Blob):
            raise ElsewhereError
        return output

    def _item_outputs(self, index: int) -> list[Any]:
        outputs = [None] * self._trace.expanded[index][1].count
        for item, lane in self._trace.items.get(index, {}).items():
            for mark in self._marks(index, lane):
                if mark.kind in (Kind.SUCCEED, Kind.FIX) and item < len(outputs):
                    if mark.event.blob is not None:
                        raise ElsewhereError
                    outputs[item] = mark.event.output
        return outputs

    def _marks(self, index: int, lane: Lane) -> list[Mark]:
        if self.until is None or index not in self._mended:
            return lane.marks
        return [mark for mark in lane.marks if mark.seq < self.until]

    def _item_errors(self, index: int) -> list[dict[str, Any]]:
        lanes = self._trace.items.get(index, {}).values()
        last = [
            _last([mark for mark in self._marks(index, lane) if mark.kind is not Kind.QUARANTINE]) for lane in lanes
        ]
        marks = [mark for mark in last if mark is not None and mark.kind is Kind.GIVE_UP]
        marks.sort(key=lambda mark: mark.seq)
        return [self.error(mark.event.error, mark.number, mark.item) for mark in marks]

    def error(self, error: RunError, attempts: int, item: int | None = None, *,
              child: ExecutionState | None = None) -> dict[str, Any]:  # fmt: skip
        """An error as the rules of the execution tell it; only a node that is no map tells its detail and body."""
        accepted = self._trace.accepted
        record: dict[str, Any] = {"type": str(error.type), "message": error.message, "attempts": attempts}
        if accepted is not None and accepted.rules >= TELLS_ERRORS:
            record["status"] = error.status
            record |= {"detail": error.detail, "body": error.body} if item is None else {}
        if accepted is not None and accepted.rules >= TELLS_CHILD and item is None:
            record["child"] = None if child is None else str(child)
        return record if item is None else {**record, "index": item}

    def __iter__(self) -> Iterator[str]:
        return iter(self._trace.plan.ids)

    def __len__(self) -> int:
        return len(self._trace.plan)


def _last(marks: list[Mark]) -> Mark | None:
    return marks[-1] if marks else None
