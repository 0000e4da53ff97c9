"""The rows of runs, at the least cost: most nodes start once and succeed, and need no more than a start time.

The first event that says anything else hands over to the full projection; the two are held equal by test.
"""

from collections.abc import Iterable

from ropewalk.core.events import (
    Event,
    ExecutionAccepted,
    ExecutionStarted,
    ExecutionSucceeded,
    NodesSkipped,
    NodesStarted,
    NodeSucceeded,
    SignalReceived,
    SlotReleased,
    SlotTaken,
)
from ropewalk.core.plan import Plan
from ropewalk.core.rows.projection import RunProjection
from ropewalk.core.rows.tables import LetterRow, RunRow, first_run_id
from ropewalk.core.state import RunState

_WITHOUT_RUNS = frozenset(
    {ExecutionAccepted, ExecutionStarted, ExecutionSucceeded, NodesSkipped, SignalReceived, SlotReleased, SlotTaken}
)
FirstRun = tuple[str, str, int, int, bool]
"""The run of a node that succeeded at its first attempt: id, node, start, end, whether it has inputs of its own."""


class RunLedger:
    """Runs and dead letters of one execution, as they change."""

    __slots__ = ("_accepted", "_first_runs", "_full", "_plan", "_started", "is_simple")

    def __init__(self, plan: Plan, accepted: ExecutionAccepted) -> None:
        self._plan = plan
        self._accepted = accepted
        self._started: dict[str, int] = {}
        self._first_runs: list[FirstRun] = []
        self._full: RunProjection | None = None
        # Whether nodes have only started and succeeded so far: nothing has waited, failed or been told.
        self.is_simple = True

    def add(self, events: Iterable[Event]) -> None:
        """Take in the next events of the log."""
        if self._full is not None:
            self._full.add(events)
            return
        execution, started, rest = self._accepted.execution, self._started, iter(events)
        for event in rest:
            if type(event) is NodeSucceeded and (at := started.pop(event.node, None)) is not None:
                name = first_run_id(execution, event.node, at)
                self._first_runs.append((name, event.node, at, event.at, event.inputs is not None))
            elif type(event) is NodesStarted and not self._plan.has_maps:
                at = event.at
                for node in event.nodes:
                    started[node] = at
            elif type(event) not in _WITHOUT_RUNS:
                self._hand_over().add((event, *rest))

    def _hand_over(self) -> RunProjection:
        self.is_simple = False
        self._full = RunProjection(self._plan)
        self._full.add((self._accepted, *(NodesStarted(at, (node,)) for node, at in self._started.items())))
        self._full.take()
        return self._full

    def run(self, node: str, item: int | None) -> str | None:
        """The id of the attempt under way at a node or item, if there is one."""
        if self._full is not None:
            lane = self._full.lanes.get((self._plan.index[node], item))
            return None if lane is None else lane.run.id
        started = self._started.get(node)
        return None if started is None else first_run_id(self._accepted.execution, node, started)

    def take_first_runs(self) -> list[FirstRun]:
        """The runs that ended since the last call; while the ledger is simple, no other row has changed."""
        runs, self._first_runs = self._first_runs, []
        return runs

    def take(self) -> tuple[list[RunRow], list[LetterRow]]:
        """The rows that changed since the last call; to be used at once."""
        runs = [_row(run) for run in self.take_first_runs()]
        if self._full is None:
            return runs, []
        more, letters = self._full.take()
        return runs + more, letters


def _row(run: FirstRun) -> RunRow:
    name, node, started, finished, has_inputs = run
    return RunRow(name, node, None, 1, started, RunState.SUCCESS, finished, has_inputs=has_inputs, has_output=True)
