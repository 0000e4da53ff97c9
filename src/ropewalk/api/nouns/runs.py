"""Runs over HTTP: every attempt at every node, and giving one up by hand."""

from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.doors.authorization import Call
from ropewalk.api.nouns.executions import ID, LARGEST_INLINE, RAW, NodeName, list_execution_runs
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, Cursor, Limit, Page, exemplified
from ropewalk.api.shapes.executions import AN_ID, ANOTHER_ID
from ropewalk.api.shapes.runs import RunDetails, RunSummary
from ropewalk.api.streaming.downloads import raw_json
from ropewalk.core.errors import InvalidTransition, NotFound
from ropewalk.core.state import RunState
from ropewalk.service import payloads, reading
from ropewalk.service.reading.runs import Whereabouts, kept_output, no_run

routes = Routes("/workflow/runs", "Runs")

RunId = Annotated[str, Path(alias="runId", max_length=64, pattern=ID)]
OfExecution = Annotated[str, Query(alias="executionId", max_length=64, pattern=ID)]
InExecution = Annotated[
    str | None,
    Query(alias="executionId", max_length=64, pattern=ID,
          description="Where it is; a run that is under way may not be found without."),
]  # fmt: skip


class GiveUpBody(Body):
    """Why, for those who read the dead letter."""

    model_config = exemplified(Body, {"reason": "the supplier has closed"})

    reason: str | None = Field(None, min_length=1, max_length=1_000)


class GivenUp(Answer):
    """A run that became a dead letter by hand; `changed` is false if it was one."""

    model_config = exemplified(Answer, {"runId": ANOTHER_ID, "executionId": AN_ID, "changed": True})

    run_id: str
    execution_id: str
    changed: bool


@routes.get("", Right.READ, response_model=Page[RunSummary])
async def list_runs(
    call: Caller,
    execution_id: OfExecution,
    node: NodeName = None,
    state: RunState | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """The attempts of an execution, in the order they began."""
    return await list_execution_runs(call, execution_id, node, state, limit, cursor)


@routes.get("/{runId}", Right.READ, response_model=RunDetails)
async def get_run(call: Caller, run_id: RunId, execution_id: InExecution = None) -> dict[str, Any]:
    """One attempt with everything that is known of it."""
    found, workflow = await _find(call, run_id, execution_id)
    store = call.backend.store
    details = await reading.get_run(store, store.blobs, found, largest=LARGEST_INLINE)
    return payloads.marked(details, payloads.RUN, may_read=await call.may_read(workflow))


@routes.get("/{runId}/output", Right.READ_PAYLOADS, status_code=200, response_class=Response, responses=RAW)
async def get_run_output(call: Caller, run_id: RunId, execution_id: InExecution = None) -> Response:
    """The output of an attempt that succeeded, alone and of any size."""
    found, _ = await _find(call, run_id, execution_id)
    return raw_json(call, await kept_output(call.backend.store, found))


@routes.post("/{runId}/dead-letter", Right.EXECUTE, status_code=202, response_model=GivenUp, problems=(409,),
             responses={200: {"description": "It was one already.", "model": GivenUp}})  # fmt: skip
async def give_up_run(
    call: Caller,
    run_id: RunId,
    response: Response,
    execution_id: InExecution = None,
    body: GiveUpBody | None = None,
) -> dict[str, Any]:
    """Give a run up by hand that is under way, waits, or is to be tried again: it becomes a dead letter."""
    found, _ = await _find(call, run_id, execution_id)
    run, execution = found.run, found.story.id
    changed = run.state is not RunState.DLQ
    if changed and not found.is_last:
        raise InvalidTransition(f"run {run_id} is over: another attempt came after it")
    if changed:
        reason = None if body is None else body.reason
        await call.service.give_up(execution, run.node, run.item, call.actor.subject, reason)
    else:
        response.status_code = 200
    return {"runId": run.id, "executionId": execution, "changed": changed}


async def _find(call: Call, run: str, execution: str | None) -> tuple[Whereabouts, str]:
    """A run this route may be used on, and its workflow."""
    found = await reading.find_run(call.backend.store, call.workspace, run, execution)
    try:
        return found, (await call.execution(found.story.id)).workflow
    except NotFound as error:
        # In the words for a run: those for an execution would name one.
        raise no_run(run) from error
