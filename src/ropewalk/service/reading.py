"""What people read: executions, nodes, events, runs and dead letters, as JSON with camelCase names.

Works on any reader of the store, also while another process owns it. A node's state is a fold of the log, so what is
shown is what is recorded, and nothing is stored twice.
"""

from typing import Any

import msgspec

from ropewalk.core import log
from ropewalk.core.errors import NotFound
from ropewalk.core.events import Event, ExecutionAccepted, ExecutionSucceeded
from ropewalk.core.execution import Execution
from ropewalk.core.instant import rfc3339
from ropewalk.core.plan import Plan, load_plan
from ropewalk.core.rows import NodeRow, RunRow, rows
from ropewalk.core.state import Resolution
from ropewalk.store import dlq, executions, workflows
from ropewalk.store import log as stored_log
from ropewalk.store.access import Blobs, Reader

Json = dict[str, Any]


class Recorded(msgspec.Struct):
    """One execution as its log tells it."""

    id: str
    plan: Plan
    events: list[Event]

    @property
    def accepted(self) -> ExecutionAccepted:
        first = self.events[0]
        assert isinstance(first, ExecutionAccepted)
        return first

    def folded(self) -> Execution:
        execution = Execution(self.plan)
        execution.apply(self.events)
        return execution


async def recorded(reader: Reader, execution: str) -> Recorded:
    """The log of an execution and the plan it follows."""
    events = list(log.decode_all(entry for _, entry in await stored_log.entries(reader, execution)))
    if not events:
        raise NotFound(f"there is no execution {execution}")
    accepted = events[0]
    assert isinstance(accepted, ExecutionAccepted)
    version = await workflows.get_version(reader, accepted.workflow, accepted.version)
    if version is None:
        raise NotFound(f"there is no version {accepted.version} of workflow {accepted.workflow}")
    return Recorded(execution, load_plan(version.document.encode()), events)


# Executions


async def list_executions(
    reader: Reader, workspace: str, wanted: executions.Filter, *, before: str = executions.NEWEST, limit: int = 50
) -> list[Json]:
    """Executions of a workspace, newest first; the last id is the cursor to go on."""
    found = await executions.listed(reader, workspace, wanted, before=before, limit=limit)
    names = {row.workflow: "" for row in found}
    for workflow in names:
        known = await workflows.get(reader, workspace, workflow)
        names[workflow] = known.name if known else workflow
    return [_summary(row, names[row.workflow]) for row in found]


def _summary(row: executions.Execution, name: str) -> Json:
    return {
        "id": row.id,
        "workflow": name,
        "workflowId": row.workflow,
        "version": row.version,
        "state": row.state,
        "trigger": row.trigger,
        "parentExecutionId": row.parent,
        "acceptedAt": rfc3339(row.accepted_at),
        "startedAt": _time(row.started_at),
        "finishedAt": _time(row.finished_at),
        "error": row.error,
    }


async def get_execution(reader: Reader, blobs: Blobs, workspace: str, execution: str) -> Json:
    """One execution with its input, output, nodes and what it waits for."""
    row = await executions.get(reader, workspace, execution)
    if row is None:
        raise NotFound(f"there is no execution {execution}")
    story = await recorded(reader, execution)
    folded = story.folded()
    workflow = await workflows.get(reader, workspace, row.workflow)
    return {
        **_summary(row, workflow.name if workflow else row.workflow),
        "input": story.accepted.input,
        "vars": story.accepted.vars,
        "output": await _output(blobs, story.events[-1]),
        "waitingFor": waiting_for(folded),
        "nodes": nodes_of(story),
    }


async def _output(blobs: Blobs, last: Event) -> Any:
    if not isinstance(last, ExecutionSucceeded):
        return None
    return last.output if last.blob is None else msgspec.json.decode(await blobs.get(last.blob.hash))


def waiting_for(execution: Execution) -> str | None:
    """Why nothing is running, in a word: capacity, a timer, an approval …"""
    if execution.is_ended:
        return None
    if execution.state == "PAUSED":
        return "resume"
    if execution.needs_slot:
        return "capacity"
    waits = [msgspec.to_builtins(work.wait)["for"] for work in execution.waiting.values() if work.wait is not None]
    if execution.running or not waits:
        return "retry" if not execution.running and execution.next_timer() is not None else None
    return str(waits[0])


# Nodes, runs, events


def nodes_of(story: Recorded) -> list[Json]:
    """Every node in document order."""
    return [_node(row) for row in rows(story.plan, story.events).nodes]


def _node(row: NodeRow) -> Json:
    return {
        "id": row.node,
        "state": str(row.state),
        "attempts": row.attempts,
        "startedAt": _time(row.started),
        "finishedAt": _time(row.finished),
        "error": None if row.error is None else {"type": str(row.error.type), "message": row.error.message},
    }


async def list_runs(reader: Reader, execution: str) -> list[Json]:
    """Every attempt, in the order they began."""
    story = await recorded(reader, execution)
    return [_run(row) for row in rows(story.plan, story.events).runs]


def _run(row: RunRow) -> Json:
    return {
        "id": row.id,
        "node": row.node,
        "item": row.item,
        "attempt": row.attempt,
        "state": str(row.state),
        "startedAt": _time(row.started),
        "finishedAt": _time(row.finished),
        "retryAfter": _time(row.retry_after),
        "errorType": None if row.error is None else str(row.error.type),
        "error": None if row.error is None else row.error.message,
    }


async def list_events(reader: Reader, execution: str, after: int = 0) -> list[Json]:
    """The log as the outside sees it: one envelope per event."""
    found = []
    for _, entry in await stored_log.entries(reader, execution, start=after + 1):
        first, events = log.decode(entry)
        found += [log.envelope(execution, seq, each) for seq, each in enumerate(events, first) if seq > after]
    if not found and after == 0:
        raise NotFound(f"there is no execution {execution}")
    return found


# Dead letters


async def list_dead_letters(
    reader: Reader, workspace: str, resolution: Resolution, fingerprint: str | None = None, limit: int = 50
) -> list[Json]:
    found = await dlq.listed(reader, workspace, resolution=resolution, fingerprint=fingerprint, limit=limit)
    return [_letter(letter) for letter in found]


async def get_dead_letter(reader: Reader, workspace: str, letter: str) -> Json:
    found = await dlq.get(reader, workspace, letter)
    if found is None:
        raise NotFound(f"there is no dead letter {letter}")
    return _letter(found)


def _letter(letter: dlq.DeadLetter) -> Json:
    return {
        "id": letter.id,
        "executionId": letter.execution,
        "runId": letter.run,
        "node": letter.node,
        "item": letter.item,
        "attempt": letter.attempt,
        "failureType": letter.failure_type,
        "errorType": letter.error_type,
        "reason": letter.reason,
        "fingerprint": letter.fingerprint,
        "inputs": _json(letter.inputs),
        "config": _json(letter.config),
        "createdAt": rfc3339(letter.created_at),
        "resolution": letter.resolution,
        "resolvedAt": _time(letter.resolved_at),
        "reviewedBy": letter.reviewed_by,
        "notes": letter.notes,
    }


def _json(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)


def _time(at: int | None) -> str | None:
    return None if at is None else rfc3339(at)
