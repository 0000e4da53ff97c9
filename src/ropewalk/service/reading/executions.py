"""Executions, their nodes and their events as people read them."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ropewalk.core.canonical import canonical, content_hash
from ropewalk.core.duration import DAY
from ropewalk.core.errors import NotFound, Unreadable
from ropewalk.core.events import Blob, Event, ExecutionSucceeded
from ropewalk.core.execution import Execution
from ropewalk.core.instant import moment, rfc3339
from ropewalk.core.rows import ExecutionRow, Rows, RunRow
from ropewalk.core.state import ExecutionState, NodeState
from ropewalk.service.reading.nodes import detail_of, failed_items, node_of
from ropewalk.service.reading.recorded import (
    MANY_EVENTS,
    CachedVersion,
    Json,
    Recorded,
    last_event,
    milliseconds,
    no_cached_version,
    offload,
    outlined,
    tokens_of,
    value_of,
)
from ropewalk.store import executions
from ropewalk.store.access import Blobs, Reader
from ropewalk.store.ids import first_id

# Lists


async def list_executions(
    reader: Reader, workspace: str, wanted: executions.Filter, *, before: str = executions.NEWEST, limit: int = 50
) -> list[Json]:
    """Executions of a workspace, newest first; the last id is the cursor to go on."""
    found = await executions.listed(reader, workspace, _bounded(wanted), before=_begin(wanted, before), limit=limit)
    names = await executions.workflow_names(reader, [row.workflow for row in found]) if found else {}
    return [summary_of(row, names.get(row.workflow, row.workflow)) for row in found]


def _begin(wanted: executions.Filter, before: str) -> str:
    """Where to begin. Ids are by the clock of the accepting process, times by the store's: hence a day to spare."""
    is_open = wanted.until == executions.ANY.until
    return before if is_open else min(before, first_id(wanted.until + DAY))


def _bounded(wanted: executions.Filter) -> executions.Filter:
    """The same, looking through nothing that is older than was asked for."""
    return wanted if wanted.since <= DAY else replace(wanted, oldest=first_id(wanted.since - DAY))


def summary_of(row: executions.Execution, name: str) -> Json:
    """An execution as its row alone tells it."""
    return {
        "id": row.id,
        "workflow": name,
        "workflowId": row.workflow,
        "version": row.version,
        "state": row.state,
        "trigger": row.trigger,
        "parentExecutionId": row.parent,
        "acceptedAt": rfc3339(row.accepted_at),
        "startedAt": moment(row.started_at),
        "finishedAt": moment(row.finished_at),
        "error": row.error,
        "traceId": row.trace_id,
    }


# One execution


async def get_execution(
    reader: Reader, blobs: Blobs, workspace: str, execution: str, *, largest: int | None = None
) -> Json:
    """One execution with everything it keeps, its nodes, and what it waits for.

    An output of more than `largest` bytes is named only.
    """
    told, story, made = await _told(reader, blobs, workspace, execution, largest)
    items = failed_items(made.nodes, made.runs)
    return {**told, "nodes": [node_of(each, story, items) for each in made.nodes]}


async def tell_execution(
    reader: Reader, blobs: Blobs, workspace: str, execution: str, *, largest: int, cached_version: CachedVersion
) -> Json:
    """The same without its nodes."""
    return (await _told(reader, blobs, workspace, execution, largest, cached_version))[0]


async def _told(
    reader: Reader,
    blobs: Blobs,
    workspace: str,
    execution: str,
    largest: int | None,
    cached_version: CachedVersion = no_cached_version,
) -> tuple[Json, Recorded, Rows]:
    """All of it from the log: a row that is read beside it may say what the log did not say yet."""
    story = await outlined(reader, execution, _is_end, cached_version)
    made = await story.rows()
    whole = _execution(made)
    if whole.workspace != workspace:
        raise NotFound(f"there is no execution {execution}")
    # What succeeded waits for nothing, and has no failure to tell of.
    is_over = whole.state is ExecutionState.SUCCESS
    folded = None if is_over else await offload(story.folded, is_large=len(story.events) > MANY_EVENTS)
    told = {
        **_summary(whole, story),
        "workspaceId": whole.workspace,
        **_given(story),
        **await _gave(blobs, whole, largest),
        "errorDetail": None if folded is None else _error_detail(folded, made, failed_items(made.nodes, made.runs)),
        "waitingFor": None if folded is None else waiting_for(folded),
        "outcome": str(whole.state) if folded is None else outcome_of(folded),
        "sourceExecutionId": story.source,
        "sameOutput": await _same_output(reader, blobs, story, whole),
        "metrics": _metrics(whole, story, made),
    }
    return told, story, made


def _summary(whole: ExecutionRow, story: Recorded) -> Json:
    """The same as `summary_of` the row in the store, which is made of the log as well."""
    return {
        "id": whole.id,
        "workflow": story.plan.definition.name,
        "workflowId": whole.workflow,
        "version": whole.version,
        "state": whole.state,
        "trigger": whole.trigger,
        "parentExecutionId": None if whole.parent is None else whole.parent.execution,
        "acceptedAt": rfc3339(whole.accepted),
        "startedAt": moment(whole.started),
        "finishedAt": moment(whole.finished),
        "error": whole.error,
        "traceId": story.trace_id,
    }


def _is_end(event: Event) -> bool:
    """Of all values, the output of the whole is the one that is shown."""
    return isinstance(event, ExecutionSucceeded)


def _execution(made: Rows) -> ExecutionRow:
    assert made.execution is not None, "a log begins with the acceptance"
    return made.execution


def _given(story: Recorded) -> Json:
    accepted = story.accepted
    return {
        "priority": accepted.priority,
        "concurrencyKey": accepted.concurrency_key,
        "triggerPayload": accepted.payload,
        "input": accepted.input,
        "vars": accepted.vars,
    }


async def _gave(blobs: Blobs, made: ExecutionRow, largest: int | None) -> Json:
    """The output, or where it is."""
    blob = made.blob
    is_here = blob is None or largest is None or blob.size <= largest
    output = made.output if blob is None else await value_of(blobs, blob.hash) if is_here else None
    is_known = made.state is ExecutionState.SUCCESS and is_here
    return {
        "output": output,
        "outputHash": content_hash(output) if is_known else None,
        "outputReference": None if blob is None else {"hash": blob.hash, "size": blob.size},
    }


def _error_detail(folded: Execution, made: Rows, items: Mapping[str, RunRow]) -> str | None:
    """What the first unhandled failure has to tell beyond its message."""
    failed = next(iter(folded.unhandled), None)
    return None if failed is None else detail_of(made.nodes[failed], items)


def _metrics(whole: ExecutionRow, story: Recorded, made: Rows) -> Json:
    counts = Counter(node.state for node in made.nodes)
    return {
        "durationMs": milliseconds(whole.started, whole.finished),
        "queueDelayMs": milliseconds(whole.accepted, whole.started),
        "nodes": {str(state): counts[state] for state in NodeState if counts[state]},
        "attempts": len(made.runs),
        "tokens": _tokens(story),
    }


def _tokens(story: Recorded) -> int | None:
    """What its runs said they used up together; None where none said anything."""
    told = [tokens for event in story.events if (tokens := tokens_of(event)) is not None]
    return sum(told) if told else None


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


def outcome_of(execution: Execution) -> str | None:
    """How it ended, or how it was decided to end while nodes are yet to close it; None if that is open."""
    if execution.is_ended:
        return str(execution.state)
    return None if execution.closing is None else str(execution.closing.outcome)


# What it gave


async def kept_output(reader: Reader, execution: str) -> bytes | Blob:
    """The output of an execution as JSON text, or where that lies; NotFound if it has none."""
    last = await last_event(reader, execution)
    if not isinstance(last, ExecutionSucceeded):
        raise NotFound(f"execution {execution} has no output")
    return msgspec.json.encode(last.output) if last.blob is None else last.blob


async def _same_output(reader: Reader, blobs: Blobs, story: Recorded, made: ExecutionRow) -> bool | None:
    """Whether it gave what the execution gave that it does again; None if one of them has not ended, or is gone."""
    if story.source is None or not made.state.is_ended:
        return None
    source = await executions.get(reader, made.workspace, story.source)
    if source is None or not ExecutionState(source.state).is_ended:
        return None
    if made.state is not ExecutionState.SUCCESS and source.state != ExecutionState.SUCCESS:
        return None  # neither has an output
    try:
        last = await last_event(reader, source.id)
    except Unreadable:
        return None  # what is wrong with the other is told by itself
    if made.state is not ExecutionState.SUCCESS or not isinstance(last, ExecutionSucceeded):
        return False
    return await _is_same(blobs, (made.output, made.blob), (last.output, last.blob))


async def _is_same(blobs: Blobs, one: tuple[Any, Blob | None], other: tuple[Any, Blob | None]) -> bool:
    if one[1] is None and other[1] is None:
        return canonical(one[0]) == canonical(other[0])
    # Equal values are of one size as text, however their keys are ordered: only then is it worth reading them.
    if one[1] is None or other[1] is None or one[1].size != other[1].size:
        return False
    if one[1].hash == other[1].hash:
        return True
    texts = [await blobs.get(each.hash) for each in (one[1], other[1])]
    return await offload(lambda: len({canonical(msgspec.json.decode(text)) for text in texts}) == 1, is_large=True)
