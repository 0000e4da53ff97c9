"""Executions over HTTP: start, list, read, and tell them things."""

from typing import Annotated, Any

from fastapi import Header, Path, Query
from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.gate import Call, enter_workspace
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes import Answer, Body, Cursor, Id, Limit, Page, page
from ropewalk.core.state import ExecutionState, TriggerType
from ropewalk.service import reading
from ropewalk.service.definitions import startable
from ropewalk.store import executions

routes = Routes("/workflow/executions", "Executions")

ExecutionId = Annotated[str, Path(alias="executionId", max_length=64, pattern=r"^[A-Za-z0-9-]+$")]
IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)]


class StartBody(Body):
    """What to start, and with what."""

    workflow_definition_id: Id
    workspace_id: Id | None = None
    input: Any = None
    vars: dict[str, Any] = Field(default_factory=dict)
    priority: int = Field(5, ge=0, le=9)
    version: int | None = Field(None, ge=1)


class Started(Answer):
    """An accepted start: it survives any crash from here on."""

    queue_id: str
    execution_id: str
    status: str


class ExecutionSummary(Answer):
    """One pass through one version of a workflow."""

    id: str
    workflow: str
    workflow_id: str
    version: int
    state: ExecutionState
    trigger: TriggerType
    parent_execution_id: str | None
    accepted_at: str
    started_at: str | None
    finished_at: str | None
    error: str | None


class ReasonBody(Body):
    """Why, for whoever reads the audit log."""

    reason: str | None = Field(None, max_length=1_000)


class Told(Answer):
    """An execution that was told something; `changed` is false if that held already."""

    execution_id: str
    changed: bool


@routes.post("/start", Right.EXECUTE, status_code=202, response_model=Started, problems=(409,))
async def start_execution(call: Caller, body: StartBody, idempotency_key: IdempotencyKey = None) -> dict[str, Any]:
    """Accept an execution durably; under an Idempotency-Key the same request is accepted once."""
    here = await _within(call, body.workspace_id)
    workflow = await here.workflow(body.workflow_definition_id)
    version = await startable(here.service, workflow, body.version)
    execution = await here.service.start(
        version, body.input, body.vars, here.actor.subject, body.priority, idempotency_key
    )
    return {"queueId": execution, "executionId": execution, "status": "PENDING"}


async def _within(call: Call, workspace: str | None) -> Call:
    """The call in the workspace the body names."""
    if workspace is None or workspace == call.workspace:
        return call
    return await enter_workspace(call.office, call.actor, workspace, call.right)


@routes.get("", Right.READ, response_model=Page[ExecutionSummary])
async def list_executions(
    call: Caller,
    workflow_id: Annotated[str | None, Query(alias="workflowId", max_length=64)] = None,
    state: ExecutionState | None = None,
    trigger: TriggerType | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Executions of the workspace, newest first."""
    before = executions.NEWEST if cursor is None else call.office.cursors.read("executions", cursor)
    wanted = executions.Filter(workflow=workflow_id, state=state, trigger=trigger)
    call.require()
    found = await reading.list_executions(call.office.store, call.workspace, wanted, before=before, limit=limit)
    return page(call.office.cursors, "executions", found, limit, found[-1]["id"] if found else None)


@routes.post("/{executionId}/cancel", Right.EXECUTE, status_code=202, response_model=Told, problems=(409,))
async def cancel_execution(call: Caller, execution_id: ExecutionId, body: ReasonBody | None = None) -> dict[str, Any]:
    """Running nodes and children are told to stop; what they report within ten seconds is recorded."""
    await call.execution(execution_id)
    reason = None if body is None else body.reason
    changed = await call.service.cancel(execution_id, call.actor.subject, reason)
    return {"executionId": execution_id, "changed": changed}
