"""Runs as people read them.

What ended or waits has a row; what is under way is in the log of its execution alone, unless it is offered to other
workers. So the runs of an execution that is over are read page by page from the table, and those of one that is not are
folded.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.canonical import content_hash, idempotency_key
from ropewalk.core.errors import ErrorType, NotFound, RunError
from ropewalk.core.events import Blob, Event, ItemSucceeded, MapExpanded, NodeSucceeded, RoundEnded, RunWaiting
from ropewalk.core.instant import moment
from ropewalk.core.rows import Projection, RunRow
from ropewalk.core.state import ExecutionState, RunState
from ropewalk.service.reading.recorded import (
    MANY_EVENTS,
    Json,
    Recorded,
    error_of,
    milliseconds,
    offload,
    outlined,
    tokens_of,
    value_of,
)
from ropewalk.store import executions, explain, live, runs
from ropewalk.store import log as stored_log
from ropewalk.store.access import Blobs, Reader
from ropewalk.store.rows import RunEntry

MOST_SHARED: Final = 10_000
MOST_SEARCHED: Final = 50
MOST_FOLDED: Final = 20_000
"""How many executions, and how many of their events, are looked through for a run that has no row."""

_UNDER_WAY: Final = (RunState.RUNNING, RunState.LEASED, RunState.PENDING)


class Wanted(Struct, frozen=True, kw_only=True):
    """Which runs of an execution are wanted; None is any."""

    node: str | None = None
    state: RunState | None = None


# Lists


async def list_runs(reader: Reader, execution: str) -> list[Json]:
    """Every attempt, in the order they began."""
    story = await outlined(reader, execution)
    return [_run(row, execution, story.trace_id) for row in (await story.rows()).runs]


async def page_of_runs(
    reader: Reader, execution: executions.Execution, wanted: Wanted, *, after: str = "", limit: int = 50
) -> list[Json]:
    """The attempts that are wanted, in the order they began; the last id is the cursor to go on."""
    if ExecutionState(execution.state).is_ended:
        kept = await runs.listed(reader, execution.id, node=wanted.node, state=wanted.state, after=after, limit=limit)
        return [_run(_row(run), execution.id, execution.trace_id) for run in kept]
    story = await outlined(reader, execution.id)
    found = [row for row in await _folded(reader, story) if row.id > after and _fits(row, wanted)]
    return [_run(row, story.id, story.trace_id) for row in sorted(found, key=lambda row: row.id)[:limit]]


async def _folded(reader: Reader, story: Recorded) -> list[RunRow]:
    """Every attempt of an execution that is not over; those that other workers may carry out say how far they are."""
    made = await story.rows()
    shared = {
        (each.node, each.item, each.attempt): RunState(each.state)
        for each in await explain.shared_runs(reader, story.id, MOST_SHARED)
    }
    return [replace(row, state=shared.get((row.node, row.item, row.attempt), row.state)) for row in made.runs]


def _fits(row: RunRow, wanted: Wanted) -> bool:
    return wanted.node in (None, row.node) and wanted.state in (None, row.state)


def _row(run: RunEntry) -> RunRow:
    """What the table has, as the fold would say it."""
    error = None if run.error_type is None else RunError(ErrorType(run.error_type), run.error or "")
    return RunRow(
        run.id, run.node, run.item, run.attempt, run.started_at or 0, RunState(run.state), run.finished_at, error,
        run.retry_after,
    )  # fmt: skip


def _run(row: RunRow, execution: str, trace_id: str | None) -> Json:
    return {
        "id": row.id,
        "executionId": execution,
        "node": row.node,
        "item": row.item,
        "attempt": row.attempt,
        "state": str(row.state),
        "startedAt": moment(row.started),
        "finishedAt": moment(row.finished),
        "durationMs": milliseconds(row.started, row.finished),
        "retryAfter": moment(row.retry_after),
        "errorType": None if row.error is None else str(row.error.type),
        "error": None if row.error is None else row.error.message,
        "traceId": trace_id,
    }


# Where a run is


class Whereabouts(Struct, frozen=True):
    """An attempt, and the execution it is part of; `is_last` if no other came after it."""

    story: Recorded
    run: RunRow
    is_last: bool


async def find_run(reader: Reader, workspace: str, run: str, execution: str | None = None) -> Whereabouts:
    """The run of this id; one that is under way is found at once if its execution is named.

    An offer's id is its run's too. Without a name, some of the executions that have a slot are looked through.
    """
    for candidate in [execution] if execution is not None else await _candidates(reader, workspace, run):
        if await executions.get(reader, workspace, candidate) is not None:
            found = await _find(reader, candidate, run)
            if found is not None:
                return found
    raise no_run(run)


def no_run(run: str) -> NotFound:
    """What is said where there is no such run, or none that the caller may see."""
    return NotFound(f"there is no run {run}; one that is under way is found with the id of its execution")


async def _candidates(reader: Reader, workspace: str, run: str) -> list[str]:
    kept = await runs.get(reader, run)
    if kept is not None:
        return [kept.execution]
    offered = await runs.offered(reader, run)
    return await _under_way(reader, workspace) if offered is None else [offered.execution]


async def _under_way(reader: Reader, workspace: str) -> list[str]:
    """Executions that have a slot, those accepted first before the others, as far as folding them is cheap."""
    holders = [each.execution for each in await explain.slot_holders(reader, workspace, MOST_SEARCHED)]
    lengths = await stored_log.heads(reader, holders) if holders else {}
    chosen, events = [], 0
    for holder in holders:
        events += lengths.get(holder, 0)
        if events > MOST_FOLDED:
            break
        chosen.append(holder)
    return chosen


async def _find(reader: Reader, execution: str, run: str) -> Whereabouts | None:
    story = await outlined(reader, execution)
    made = (await story.rows()).runs
    offered = await runs.offered(reader, run)
    for row in made:
        if row.id == run or offered == runs.Attempt(execution, row.node, row.item, row.attempt):
            last = max(each.attempt for each in made if (each.node, each.item) == (row.node, row.item))
            return Whereabouts(story, row, is_last=row.attempt == last)
    return None


# One run


class Told(Struct):
    """What the log tells of one attempt beyond its row."""

    inputs: Any = None
    output: Any = None
    blob: Blob | None = None
    wait: Json | None = None
    tokens: int | None = None
    round: int | None = None


async def get_run(reader: Reader, blobs: Blobs, found: Whereabouts, *, largest: int | None = None) -> Json:
    """One run with everything that is known of it; an output of more than `largest` bytes is named only."""
    story, row = found.story, found.run
    told = await _told(reader, found)
    state, lease = await _lease(reader, story, row)
    return {
        **_run(replace(row, state=state), story.id, story.trace_id),
        **_hashes(story, row, await _inputs(blobs, told.inputs, largest), told),
        **await _output(blobs, told, largest),
        **error_of(row.error),
        "round": told.round,
        "tokenCost": told.tokens,
        "waitingFor": told.wait["for"] if told.wait is not None and state is RunState.WAITING else None,
        **lease,
    }


async def _told(reader: Reader, found: Whereabouts) -> Told:
    """What the events of this attempt say. The log is read again, with the values of this node or item and no other."""
    row = found.run
    story = await outlined(reader, found.story.id, lambda event: _is_about(event, row))
    return await offload(lambda: _told_by(story, row), is_large=len(story.events) > MANY_EVENTS)


def _is_about(event: Event, row: RunRow) -> bool:
    return getattr(event, "node", None) == row.node and getattr(event, "item", None) == row.item


def _told_by(story: Recorded, row: RunRow) -> Told:
    """Inputs are recorded once and are the later attempts' too."""
    told, projection, key = Told(), Projection(story.plan), (story.plan.index[row.node], row.item)
    if key[0] in story.plan.repeats:
        told.round = sum(type(each) is RoundEnded and each.node == row.node and each.attempt < row.attempt
                         for each in story.events)  # fmt: skip
    for event in story.events:
        before = projection.lanes.get(key)
        projection.add([event])
        lane = projection.lanes.get(key, before)
        if lane is None or lane.run.attempt != row.attempt or getattr(event, "node", None) != row.node:
            continue
        if lane.inputs is not None:
            told.inputs = lane.inputs
        if getattr(event, "item", None) == row.item and (tokens := tokens_of(event)) is not None:
            told.tokens = tokens
        if isinstance(event, RunWaiting) and event.item == row.item:
            told.wait = msgspec.to_builtins(event.wait)
        elif isinstance(event, NodeSucceeded | ItemSucceeded | RoundEnded) and _is_of(event, row):
            told.output, told.blob = event.output, event.blob
        elif isinstance(event, MapExpanded) and row.item is None:
            told.output = {"items": event.count}
    return told


def _is_of(event: NodeSucceeded | ItemSucceeded | RoundEnded, row: RunRow) -> bool:
    item = event.item if isinstance(event, ItemSucceeded) else None
    return (event.attempt, item) == (row.attempt, row.item)


async def _inputs(blobs: Blobs, inputs: Any, largest: int | None) -> Any:
    """What the attempt was given; null if that is too much to be shown."""
    if not isinstance(inputs, Blob):
        return inputs
    return await value_of(blobs, inputs.hash) if largest is None or inputs.size <= largest else None


def _hashes(story: Recorded, row: RunRow, inputs: Any, told: Told) -> Json:
    """The inputs and what follows from them; null as long as they are not known. A map's list has none."""
    plan, index = story.plan, story.plan.index[row.node]
    config = plan.config_hash(index)
    place = told.round or row.item
    if isinstance(told.inputs, Blob):
        return _keyed(story, row, inputs, told.inputs.hash, place)
    if inputs is None and not plan.definition.nodes[index].get("with"):
        inputs = {}
    if inputs is None or (plan.for_each[index] is not None and row.item is None):
        return {"inputs": None, "inputsHash": None, "configHash": config, "idempotencyKey": None}
    return _keyed(story, row, inputs, content_hash(inputs), place)


def _keyed(story: Recorded, row: RunRow, inputs: Any, digest: str, place: int | None) -> Json:
    config = story.plan.config_hash(story.plan.index[row.node])
    key = idempotency_key(story.accepted.workspace, story.id, row.node, place, digest, config)
    return {"inputs": inputs, "inputsHash": digest, "configHash": config, "idempotencyKey": key}


async def _output(blobs: Blobs, told: Told, largest: int | None) -> Json:
    blob = told.blob
    if blob is None:
        return {"output": told.output, "outputReference": None}
    is_here = largest is None or blob.size <= largest
    output = await value_of(blobs, blob.hash) if is_here else None
    return {"output": output, "outputReference": {"hash": blob.hash, "size": blob.size}}


async def kept_output(reader: Reader, found: Whereabouts) -> bytes | Blob:
    """The output of a run as JSON text, or where that lies; NotFound if it has none."""
    if found.run.state is not RunState.SUCCESS:
        raise NotFound(f"run {found.run.id} has no output")
    told = await _told(reader, found)
    return msgspec.json.encode(told.output) if told.blob is None else told.blob


async def _lease(reader: Reader, story: Recorded, row: RunRow) -> tuple[RunState, Json]:
    """Which worker has an attempt that is under way: the one that leased it, else the one that owns its execution."""
    if row.state not in _UNDER_WAY:
        return row.state, _held(None, None)
    lease = await runs.lease(reader, runs.Attempt(story.id, row.node, row.item, row.attempt))
    if lease is None:
        owner = await live.get(reader, story.id)
        return row.state, _held(None if owner is None else owner.owner, None)
    return RunState.PENDING if lease.leased_by is None else RunState.LEASED, _held(lease.leased_by, lease)


def _held(worker: str | None, lease: runs.Lease | None) -> Json:
    return {
        "worker": worker,
        "pool": None if lease is None else lease.pool,
        "leasedBy": None if lease is None else lease.leased_by,
        "leaseUntil": None if lease is None else moment(lease.lease_until),
        "fence": None if lease is None else lease.fence,
        "heartbeatAt": None if lease is None else moment(lease.heartbeat_at),
    }
