"""Executions over HTTP: start and read them."""

from typing import Annotated, Any, Final

from fastapi import Header, Path, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ropewalk.access.rights import Right
from ropewalk.api.doors.authorization import Call, authorize_in_workspace, nowhere
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Body, Cursor, Id, Limit, Named, Page, exemplified, page
from ropewalk.api.shapes.executions import (
    AN_ID,
    ExecutionDetails,
    ExecutionEvent,
    ExecutionNode,
    Explanation,
    Started,
    StartedBatch,
)
from ropewalk.api.shapes.runs import RunSummary
from ropewalk.api.streaming.downloads import raw_json
from ropewalk.api.streaming.waiting import Wait, once_ended, until_all_ended
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import InvalidInput, InvalidTransition, NotFound, Problem
from ropewalk.core.state import RunState
from ropewalk.core.trace import read_traceparent
from ropewalk.engines.base import Version
from ropewalk.service import explaining, payloads, reading
from ropewalk.service.facts import Visibility
from ropewalk.service.reading import executions as stories
from ropewalk.service.reading.runs import Wanted
from ropewalk.service.starting import LARGEST_BATCH, MOST_PROBLEMS, Once
from ropewalk.service.verbs import NewStart
from ropewalk.store.workflows import Workflow

routes = Routes("/workflow/executions", "Executions")

LARGEST_INLINE: Final = 1024 * 1024
"""A larger output is named, and has a route of its own."""
LATEST_POSSIBLE: Final = 2**53
ID: Final = r"^[A-Za-z0-9-]+$"
NODE: Final = r"^[A-Za-z][A-Za-z0-9_]{0,63}$"
RAW: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The value as it is.", "content": {"application/json": {"schema": {}}}}
}

ExecutionId = Annotated[str, Path(alias="executionId", max_length=64, pattern=ID)]
IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=255, pattern=r"^[ -~]+$",
           description="The same request under the same key is done once, and answered the same, for a day."),
]  # fmt: skip
Traceparent = Annotated[
    str | None, Header(alias="traceparent", description="The trace that is continued; ignored if it is malformed.")
]
NodeName = Annotated[str | None, Query(max_length=64, pattern=NODE)]


class NewExecution(Body):
    """What to start, and with what."""

    model_config = exemplified(Body, {"workflowDefinitionId": AN_ID, "input": {"orderId": "A-7"}})

    workflow_definition_id: Named
    input: Any = None
    vars: dict[str, Any] = Field(default_factory=dict)
    priority: int = Field(5, ge=0, le=9)
    version: int | None = Field(None, ge=1, le=LATEST_POSSIBLE, description="The published one if it is left out.")


class StartBody(NewExecution):
    """What to start, and with what."""

    workspace_id: Id | None = None


class StartBatchBody(Body):
    """What to start, all or none."""

    model_config = exemplified(Body, {"starts": [{"workflowDefinitionId": AN_ID, "input": {"orderId": "A-7"}}]})

    starts: list[NewExecution] = Field(min_length=1, max_length=LARGEST_BATCH)
    workspace_id: Id | None = None


# Starting


@routes.post("/start", Right.EXECUTE, status_code=202, response_model=Started, response_model_exclude_unset=True,
             problems=(409,), by_body=True)  # fmt: skip
async def start_execution(
    call: Caller, request: Request, body: StartBody, idempotency_key: IdempotencyKey = None,
    traceparent: Traceparent = None, wait: Wait = None,
) -> dict[str, Any]:  # fmt: skip
    """Accept an execution durably; under an Idempotency-Key the same request is accepted once.

    With `wait`, the answer has the execution as GET shows it, when it has ended or the time is over.
    """
    here = await _within(call, body.workspace_id)
    execution = await _start(here, body, idempotency_key, traceparent)
    return _started(execution) if wait is None else (await _awaited(here, request, [execution], wait))[0]


async def _start(here: Call, body: StartBody, idempotency_key: str | None, traceparent: str | None) -> str:
    workflow = await here.workflow(body.workflow_definition_id)
    once = None if idempotency_key is None else Once(idempotency_key, _asked(body))
    # Before the rest is checked: what was accepted stays accepted, also if it could not be started any more.
    known = None if once is None else await here.service.started(once)
    if known is not None:
        return known[0]
    version = await here.service.engine.versions.startable(workflow, body.version)
    about = (here.actor.subject, body.priority, once, read_traceparent(traceparent), here.bounded_by)
    return await here.service.start(version, body.input, body.vars, *about)


@routes.post("/start-batch", Right.EXECUTE, status_code=202, response_model=StartedBatch,
             response_model_exclude_unset=True, problems=(409,), by_body=True)  # fmt: skip
async def start_executions(
    call: Caller, request: Request, body: StartBatchBody, idempotency_key: IdempotencyKey = None,
    traceparent: Traceparent = None, wait: Wait = None,
) -> dict[str, Any]:  # fmt: skip
    """Accept up to a thousand executions in one transaction, all or none; every start that cannot be is named.

    With `wait`, the answer has the executions as GET shows them, when all have ended or the time is over.
    """
    here = await _within(call, body.workspace_id)
    ids = await _start_all(here, body, idempotency_key, traceparent)
    started = [_started(each) for each in ids] if wait is None else await _awaited(here, request, ids, wait)
    return {"started": started, "count": len(ids)}


async def _start_all(
    here: Call, body: StartBatchBody, idempotency_key: str | None, traceparent: str | None
) -> list[str]:
    known = await _workflows(here, body.starts)
    once = None if idempotency_key is None else Once(idempotency_key, _asked(body), "start-batch")
    ids = None if once is None else await here.service.started(once)
    if ids is None:
        versions = await _versions(here, body.starts, known)
        starts = [
            NewStart(version, each.input, each.vars, each.priority)
            for version, each in zip(versions, body.starts, strict=True)
        ]
        about = (here.actor.subject, once, read_traceparent(traceparent), here.bounded_by)
        ids = await here.service.start_batch(starts, *about)
    return ids


async def _within(call: Call, workspace: str | None) -> Call:
    """The call in the workspace the body names, else the query, else the home of the key."""
    if call.workspace and workspace in (None, call.workspace):
        return call
    named = workspace or call.actor.home
    if named is None:
        raise nowhere("workspaceId")
    return await authorize_in_workspace(call.backend, call.actor, named, call.right)


def _asked(body: Body) -> Any:
    """What was asked, in the client's words."""
    return body.model_dump(mode="json", by_alias=True, exclude={"workspace_id"})


def _started(execution: str) -> dict[str, str]:
    return {"queueId": execution, "executionId": execution, "status": "PENDING"}


async def _awaited(call: Call, request: Request, ids: list[str], wait: float) -> list[dict[str, Any]]:
    """Accepted starts with their executions, as they are when all have ended or the time is over."""
    await until_all_ended(call, request, ids, wait)
    found = [await _details(call, each) for each in ids]
    return [{**_started(each["id"]), "status": each["state"], "execution": each} for each in found]


async def _workflows(call: Call, starts: list[NewExecution]) -> dict[str, Workflow]:
    """Every workflow these name; those that are not there are all named."""
    found: dict[str, Workflow] = {}
    missing: dict[str, str] = {}
    for name in dict.fromkeys(each.workflow_definition_id for each in starts):
        try:
            found[name] = await call.workflow(name)
        except NotFound as error:
            missing[name] = str(error)
    _refuse([
        Problem(("starts", place, "workflowDefinitionId"), missing[each.workflow_definition_id])
        for place, each in enumerate(starts)
        if each.workflow_definition_id in missing
    ])  # fmt: skip
    return found


async def _versions(call: Call, starts: list[NewExecution], known: dict[str, Workflow]) -> list[Version]:
    """The version each of these takes; those that have none are all named."""
    found: dict[tuple[str, int | None], Version] = {}
    problems: list[Problem] = []
    for place, each in enumerate(starts):
        wanted = (each.workflow_definition_id, each.version)
        if wanted not in found:
            try:
                found[wanted] = await call.service.engine.versions.startable(known[wanted[0]], each.version)
            except (InvalidTransition, NotFound) as error:
                problems.append(Problem(("starts", place, "version"), str(error)))
    _refuse(problems)
    return [found[each.workflow_definition_id, each.version] for each in starts]


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise InvalidInput(problems[:MOST_PROBLEMS])


# Reading


@routes.get("/{executionId}", Right.READ, response_model=ExecutionDetails)
async def get_execution(call: Caller, request: Request, execution_id: ExecutionId, wait: Wait = None) -> dict[str, Any]:
    """One execution with everything it keeps; its nodes, events and runs have lists of their own."""
    await (once_ended(call, request, execution_id, wait) if wait else call.execution(execution_id))
    return await _details(call, execution_id)


async def _details(call: Call, execution: str) -> dict[str, Any]:
    """An execution as the caller may see it."""
    store, cached_version = call.backend.store, call.service.engine.versions.version_at_hand
    about = (store, store.blobs, call.workspace, execution)
    found = await reading.tell_execution(*about, largest=LARGEST_INLINE, cached_version=cached_version)
    return payloads.marked(found, payloads.EXECUTION, may_read=await call.may_read(found["workflowId"]))


@routes.get("/{executionId}/output", Right.READ_PAYLOADS, status_code=200, response_class=Response, responses=RAW)
async def get_execution_output(call: Caller, execution_id: ExecutionId) -> Response:
    """The output of an execution that succeeded, alone and of any size."""
    await call.execution(execution_id)
    return raw_json(call, await stories.kept_output(call.backend.store, execution_id))


@routes.get("/{executionId}/nodes", Right.READ, response_model=Page[ExecutionNode])
async def list_execution_nodes(
    call: Caller, execution_id: ExecutionId, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, Any]:
    """The nodes of an execution, in the order of its definition."""
    row = await call.execution(execution_id)
    listing = call.listing("nodes", execution_id)
    start = 0 if cursor is None else call.backend.cursors.read(listing, cursor)
    found = await reading.list_nodes(call.backend.store, execution_id, start=start, limit=limit)
    may_read = await call.may_read(row.workflow)
    shown = [payloads.marked(each, payloads.NODE, may_read=may_read) for each in found]
    return page(call.backend.cursors, listing, shown, limit, start + limit)


@routes.get("/{executionId}/events", Right.READ, response_model=Page[ExecutionEvent])
async def list_execution_events(
    call: Caller,
    execution_id: ExecutionId,
    after: Annotated[int, Query(ge=0, le=LATEST_POSSIBLE, description="Only those after this number.")] = 0,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """The log of an execution: every recorded fact, numbered from 1 without gaps."""
    row = await call.execution(execution_id)
    listing = call.listing("events", execution_id)
    start = after if cursor is None else call.backend.cursors.read(listing, cursor)
    may_read = await call.may_read(row.workflow)
    found, has_more = await reading.page_of_events(call.backend.store, execution_id, start, limit, values=may_read)
    shown = [payloads.shown_event(each, may_read=may_read) for each in found]
    # A page of large events is shorter than was asked for, and goes on all the same.
    return page(
        call.backend.cursors, listing, shown, len(shown) if has_more else limit + 1, found[-1]["seq"] if found else None
    )


@routes.get("/{executionId}/runs", Right.READ, response_model=Page[RunSummary])
async def list_execution_runs(
    call: Caller,
    execution_id: ExecutionId,
    node: NodeName = None,
    state: RunState | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """The attempts of an execution, in the order they began."""
    row = await call.execution(execution_id)
    listing = call.listing("runs", execution_id, node, state)
    after = "" if cursor is None else call.backend.cursors.read(listing, cursor)
    wanted = Wanted(node=node, state=state)
    found = await reading.page_of_runs(call.backend.store, row, wanted, after=after, limit=limit)
    may_read = await call.may_read(row.workflow)
    shown = [payloads.shown(each, payloads.RUN, may_read=may_read) for each in found]
    return page(call.backend.cursors, listing, shown, limit, found[-1]["id"] if found else None)


@routes.get("/{executionId}/explain", Right.READ, response_model=Explanation)
async def explain_execution(call: Caller, execution_id: ExecutionId, node: NodeName = None) -> dict[str, Any]:
    """Exactly why an execution, or one node of it, is not running now."""
    row = await call.execution(execution_id)
    store = call.backend.store
    visibility = Visibility(
        payloads=await call.may_read(row.workflow),
        others=call.right in call.rights,
        payloads_of_others=Right.READ_PAYLOADS in call.rights,
    )
    # On a store of one process that is the one which answers here.
    alive = None if store.is_shared else lambda _: True
    lease = round(store.lease_seconds * SECOND)
    return await explaining.explain(
        store,
        call.workspace,
        execution_id,
        store.now(),
        node=node,
        alive=alive,
        lease=lease,
        visibility=visibility,
        accepts_only=call.service.engine.accepts_only,
        custody=call.service.engine.custody,
    )
