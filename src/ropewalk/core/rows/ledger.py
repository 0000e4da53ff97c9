"""The rows of runs, at the least cost: most nodes start once and succeed, and need no more than a start time.

The first event that says anything else hands over to the full projection; the two are held equal by test.
"""

from collections.abc import Iterable, Sequence

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
FirstRun = tuple[str, str, str, int, int]
"""The run of a node that succeeded at its first attempt: id, execution, node, start, end."""


class RunLedger:
    """Runs and dead letters of one execution, as they change."""

    __slots__ = ("_accepted", "_ended", "_full", "_plan", "_started")

    def __init__(self, plan: Plan, accepted: ExecutionAccepted) -> None:
        self._plan = plan
        self._accepted = accepted
        self._started: dict[str, int] = {}
        self._ended: Sequence[FirstRun] = ()
        self._full: RunProjection | None = None

    def add(self, events: Iterable[Event]) -> list[FirstRun] | None:
        """Take in the next events of the log; the runs that ended with them, while that is all there is to tell.

        None from the first event on that says anything but that nodes have started and succeeded: ask `take` then.
        """
        if self._full is not None:
            self._full.add(events)
            return None
        execution, started, rest = self._accepted.execution, self._started, iter(events)
        ended: list[FirstRun] = []
        for event in rest:
            if type(event) is NodeSucceeded and (at := started.pop(event.node, None)) is not None:
                node = event.node
                ended.append((first_run_id(execution, node, at), execution, node, at, event.at))
            elif type(event) is NodesStarted and not self._plan.has_maps:
                at = event.at
                for node in event.nodes:
                    started[node] = at
            elif type(event) not in _WITHOUT_RUNS:
                self._ended = ended
                self._hand_over().add((event, *rest))
                return None
        return ended

    def _hand_over(self) -> RunProjection:
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

    def take(self) -> tuple[list[RunRow], list[LetterRow]]:
        """The rows that changed since the last call and were not told by `add`; to be used at once."""
        if self._full is None:
            return [], []
        first, self._ended = [_row(run) for run in self._ended], ()
        runs, letters = self._full.take()
        return first + runs, letters


def _row(run: FirstRun) -> RunRow:
    name, _, node, started, finished = run
    return RunRow(name, node, None, 1, started, RunState.SUCCESS, finished)
