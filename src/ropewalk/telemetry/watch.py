"""The observer of an engine: turns what is durable into figures, spans and log lines."""

import logging
import time
from typing import Any, Final

from ropewalk.core.duration import SECOND
from ropewalk.core.events import (
    ExecutionAccepted,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionStarted,
    ExecutionSucceeded,
    ExecutionTimedOut,
    ItemFailed,
    ItemsStarted,
    ItemSucceeded,
    NodeFailed,
    NodesStarted,
    NodeSucceeded,
    RoundEnded,
    RunFailed,
    RunStarted,
)
from ropewalk.core.rows.tables import run_id
from ropewalk.core.state import ExecutionState
from ropewalk.core.trace import trace_id
from ropewalk.telemetry.facts import Fact, RunFact, Undispatched
from ropewalk.telemetry.logs import logger
from ropewalk.telemetry.metrics import Metrics
from ropewalk.telemetry.traces import Spans

_ENDS: Final[dict[type[Any], ExecutionState]] = {
    ExecutionSucceeded: ExecutionState.SUCCESS,
    ExecutionFailed: ExecutionState.FAILED,
    ExecutionCancelled: ExecutionState.CANCELLED,
    ExecutionTimedOut: ExecutionState.TIMEOUT,
}
_OF_ITEMS: Final = (ItemSucceeded, ItemFailed)
_LAST_ATTEMPTS: Final = (NodeSucceeded, NodeFailed, *_OF_ITEMS)
MOST_KNOWN: Final = 100_000
"""Of more executions than these at once, log lines say less."""
SAID_AGAIN_AFTER: Final = 10.0
_log = logger("engine")

Place = tuple[str, int | None]


class _Known:
    """What a log line about an execution may want to know, while it is under way here."""

    __slots__ = ("accepted", "started")

    def __init__(self, accepted: ExecutionAccepted) -> None:
        self.accepted = accepted
        # When the attempt under way at a node or an item began.
        self.started: dict[Place, int] = {}


class Watch:
    """Is told by the engine; writes to the metrics, to the log, and to the traces if there are any."""

    def __init__(self, metrics: Metrics, spans: Spans | None = None) -> None:
        self.metrics = metrics
        self._spans = spans
        self._known: dict[str, _Known] = {}
        self._said_full = -SAID_AGAIN_AFTER
        self._started = metrics.started.labels()
        self._delays = metrics.dispatch_delay.labels()
        self._attempts = metrics.attempts.labels()

    # What the engine says

    def committed(self, fact: Fact) -> None:
        """This is durable, and what follows from it has not begun."""
        known = self._known.get(fact.accepted.execution)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[fact.accepted.execution] = _Known(fact.accepted)
        for event in fact.events:
            self._happened(known, event)
        for run in fact.ended_runs():
            self._ended_run(known, run)

    def left(self, execution: str) -> None:
        """The execution is in this worker's memory no more."""
        self._known.pop(execution, None)

    def dispatching(self, execution: str, workspace: str) -> None:
        """A claimed execution is about to be loaded."""
        _log.info("execution.dispatching", executionId=execution, workspaceId=workspace)

    def undispatched(self, failure: Undispatched) -> None:
        """A claimed execution could not be loaded."""
        self.metrics.dispatch_failures.labels().inc()
        _log.error(
            "execution.abandoned" if failure.is_given_up else "execution.dispatch_failed",
            executionId=failure.execution,
            workspaceId=failure.workspace,
            attempts=failure.attempts,
            reason=failure.reason,
        )

    def at_capacity(self) -> None:
        """Something waits, and nothing of it has a slot."""
        self.metrics.claims_at_capacity.labels().inc()
        now = time.monotonic()
        if now - self._said_full > SAID_AGAIN_AFTER:
            self._said_full = now
            _log.info("queue.at_capacity")

    def leased(self, seconds: float) -> None:
        """Runs were leased, in so much time."""
        self.metrics.lease_time.labels().observe(seconds)

    def close(self) -> None:
        """Send what is left."""
        if self._spans is not None:
            self._spans.close()

    # What becomes of it

    def _happened(self, known: _Known, event: Any) -> None:
        kind = type(event)
        if kind is ExecutionAccepted:
            return  # told of by what brings it to its first slot
        if kind is NodesStarted:
            for node in event.nodes:
                known.started[node, None] = event.at
        elif kind is ExecutionStarted:
            self._dispatched(known.accepted, event.at)
        elif kind in _LAST_ATTEMPTS:
            known.started.pop((event.node, event.item if kind in _OF_ITEMS else None), None)
            if event.attempt:
                self._attempts.observe(event.attempt)
        elif kind in _ENDS:
            self._ended(known.accepted, _ENDS[kind], event.at)
        elif kind is RunFailed:
            known.started.pop((event.node, event.item), None)
        elif kind is RoundEnded:
            known.started.pop((event.node, None), None)
        elif kind is RunStarted:
            # One that was handed back or held goes on as the run it was.
            known.started.setdefault((event.node, event.item), event.at)
        elif kind is ItemsStarted:
            known.started |= {(event.node, item): event.at for item in event.items}

    def _dispatched(self, accepted: ExecutionAccepted, at: int) -> None:
        delay = (at - accepted.at) / SECOND
        self._started.inc()
        self._delays.observe(delay)
        _tell("execution.dispatched", accepted, delay=delay)

    def _ended(self, accepted: ExecutionAccepted, state: ExecutionState, at: int) -> None:
        self.metrics.execution_ended(state)
        _tell("execution.ended", accepted, state=str(state))
        if self._spans is not None:
            self._spans.execution(accepted, state, at)

    def _ended_run(self, known: _Known, run: RunFact) -> None:
        self.metrics.run_ended(run.state, run.error_type, ((run.finished_at or 0) - run.started_at) / SECOND)
        if self._spans is not None:
            self._spans.run(known.accepted, run)

    # What log lines want to know

    def identify(self, execution: str, node: str, item: int | None, attempt: int) -> dict[str, str]:
        """The run and the trace of an attempt under way here; nothing if it is another worker's execution."""
        known = self._known.get(execution)
        if known is None:
            return {}
        found = {"traceId": trace_id(execution, known.accepted.trace)}
        started = known.started.get((node, item))
        if started is not None:
            found["runId"] = run_id(execution, node, item, attempt, started)
        return found


def _tell(event: str, accepted: ExecutionAccepted, **more: Any) -> None:
    # Asked first: there may be thousands a second, and mostly no handler wants them.
    if _log.isEnabledFor(logging.INFO):
        _log.info(
            event,
            executionId=accepted.execution,
            workspaceId=accepted.workspace,
            workflowId=accepted.workflow,
            traceId=trace_id(accepted.execution, accepted.trace),
            **more,
        )
