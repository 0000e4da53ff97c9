"""An execution as it is drawn: its log folded into one JSON object, kept up event by event.

    {"id", "workflow", "version", "state", "acceptedAt", "startedAt", "finishedAt", "error", "waitingFor", "outcome",
     "nodes": [{"id", "type", "level", "state", "phase", "attempts", "startedAt", "finishedAt", "error",
                "dueAt", "wait", "items": {"total", "done", "failed"}}]}

Times are µs, so that lengths are differences; `error` of a node under way is that of its last attempt.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from ropewalk.core.events import Event, ItemFailed, ItemSucceeded, MapExpanded, NodeFixed, NodeRequeued, RunFailed
from ropewalk.core.execution import Execution
from ropewalk.core.execution.work import Phase, Work
from ropewalk.core.plan import Plan
from ropewalk.core.rows import ExecutionRow, NodeRow, Projection
from ropewalk.core.state import NodeState
from ropewalk.service.reading import Recorded, outcome_of, waiting_for

Json = dict[str, Any]


class Snapshot:
    """What is known of one execution; `add` what happens, ask `json` for how it looks."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seq = 0
        self._machine = Execution(plan)
        self._projection = Projection(plan)
        self._rows: dict[str, NodeRow] = {}
        self._row: ExecutionRow | None = None
        self._done: dict[str, int] = {}
        self._failed: dict[str, dict[int, None]] = {}
        self._last_errors: dict[str, str] = {}
        self._levels = _levels(plan)

    @classmethod
    def of(cls, history: Recorded) -> "Snapshot":
        """The picture of everything recorded."""
        snapshot = cls(history.plan)
        snapshot.add(history.events)
        return snapshot

    @property
    def is_ended(self) -> bool:
        return self._machine.is_ended

    @property
    def state(self) -> str:
        return str(self._machine.state)

    @property
    def running(self) -> int:
        """How many attempts are under way."""
        return self._machine.running

    def add(self, events: Iterable[Event]) -> None:
        """Take in what happened next."""
        for event in events:
            self._machine.apply((event,))
            self._projection.add((event,))
            self._count(event)
            self.seq += 1

    def _count(self, event: Event) -> None:
        match event:
            case MapExpanded():
                self._done[event.node], self._failed[event.node] = 0, {}
            case ItemSucceeded():
                self._done[event.node] += 1
            case ItemFailed():
                self._failed[event.node][event.item] = None
            case NodeRequeued() | NodeFixed() if event.item is not None:
                self._failed[event.node].pop(event.item, None)
                self._done[event.node] += isinstance(event, NodeFixed)
            case RunFailed():
                self._last_errors[event.node] = event.error.message

    def json(self) -> Json:
        """How it looks now."""
        self._take_rows()
        row = self._row
        assert row is not None, "a log begins with the acceptance"
        return {
            "id": row.id,
            "workflow": self.plan.definition.name,
            "version": row.version,
            "state": str(row.state),
            "acceptedAt": row.accepted,
            "startedAt": row.started,
            "finishedAt": row.finished,
            "error": row.error,
            "waitingFor": waiting_for(self._machine),
            "outcome": outcome_of(self._machine),
            "nodes": [self._node(index) for index in self.plan.order],
        }

    def _take_rows(self) -> None:
        changes = self._projection.take_changes()
        self._row = changes.execution or self._row
        self._rows.update((row.node, row) for row in changes.nodes)

    def _node(self, index: int) -> Json:
        name = self.plan.ids[index]
        row = self._rows.get(name) or NodeRow(name)
        work = self._machine.works.get(index)
        is_open = row.state in (NodeState.READY, NodeState.RUNNING)
        return {
            "id": name,
            "type": self.plan.types[index],
            "level": self._levels[index],
            "state": str(row.state),
            "phase": str(work.phase) if work is not None and is_open else None,
            "attempts": row.attempts,
            "rounds": row.rounds,
            "startedAt": row.started,
            "finishedAt": row.finished,
            "error": row.error.message if row.error is not None else self._last_errors.get(name) if is_open else None,
            "dueAt": self._due(index, work),
            "wait": _wait(work),
            "items": self._items(index, name),
        }

    def _due(self, index: int, work: Work | None) -> int | None:
        """When a retry or a timer comes, of a map the earliest of its items."""
        if work is not None and work.due is not None:
            return work.due
        items = self._machine.maps[index].works if index in self._machine.maps else {}
        return min((each.due for each in items.values() if each.due is not None), default=None)

    def _items(self, index: int, name: str) -> Json | None:
        if index not in self._machine.maps:
            return None
        return {
            "total": self._machine.maps[index].count,
            "done": self._done.get(name, 0),
            "failed": len(self._failed.get(name, ())),
        }


def _wait(work: Work | None) -> Json | None:
    if work is None or work.wait is None or work.phase is not Phase.WAITING:
        return None
    wait: Json = msgspec.to_builtins(work.wait)
    return wait


def _levels(plan: Plan) -> list[int]:
    """How many nodes are before each, along the longest way."""
    levels = [0] * len(plan)
    for index in plan.order:
        for target in plan.targets[index]:
            levels[target] = max(levels[target], levels[index] + 1)
    return levels
