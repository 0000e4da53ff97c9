"""The resource names of the first API: our own handlers under their old paths.

Our JSON, plus `taskId` where there is a node; lists are bare arrays, with where to go on in a Link header; verbs answer
200.
"""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from ropewalk.access.rights import Right
from ropewalk.api.nouns import dead_letters, execution_lists, executions, leases, runs, verbs
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, ChosenWorkflow, Cursor, Limit, exemplified
from ropewalk.api.shapes.dead_letters import A_DEAD_LETTER, DeadLetter, Requeued
from ropewalk.api.shapes.executions import ExecutionDetails, ExecutionSummary
from ropewalk.api.shapes.runs import A_RUN, A_RUN_IN_DETAIL, RunDetails, RunSummary
from ropewalk.core.state import ExecutionState, Resolution, RunState

routes = Routes("/v1", "Resources")

Handler = Callable[..., Any]
TaskId = Annotated[str | None, Query(alias="taskId", max_length=64, pattern=executions.NODE)]
TASK: Final = {"taskId": "pay"}
LINK: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "A part of the list.",
        "headers": {"Link": {"description": 'Where to go on: rel="next".', "schema": {"type": "string"}}},
    }
}


class RunResource(RunSummary):
    """One attempt at one node; `taskId` is the node."""

    model_config = exemplified(Answer, A_RUN | TASK)

    task_id: str


class RunDetailsResource(RunDetails):
    """A run with everything that is known of it; `taskId` is the node."""

    model_config = exemplified(Answer, A_RUN_IN_DETAIL | TASK)

    task_id: str


class DeadLetterResource(DeadLetter):
    """A run that gave up; `taskId` is the node."""

    model_config = exemplified(Answer, A_DEAD_LETTER | TASK)

    task_id: str


# Lists


@routes.get("/WorkflowExecution", Right.READ, response_model=list[ExecutionSummary], responses=LINK)
async def list_workflow_executions(
    call: Caller,
    request: Request,
    response: Response,
    workflow_id: ChosenWorkflow = None,
    state: ExecutionState | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> list[dict[str, Any]]:
    """Executions, newest first."""
    found = await execution_lists.list_executions(call, workflow_id, state, limit=limit, cursor=cursor)
    return _bare(found, request, response)


@routes.get("/Run", Right.READ, response_model=list[RunResource], responses=LINK)
async def list_run_resources(
    call: Caller,
    request: Request,
    response: Response,
    execution_id: runs.OfExecution,
    task_id: TaskId = None,
    state: RunState | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> list[dict[str, Any]]:
    """The attempts of an execution, in the order they began."""
    found = await runs.list_runs(call, execution_id, task_id, state, limit, cursor)
    return [_tasked(each) for each in _bare(found, request, response)]


@routes.get("/DeadLetterQueue", Right.READ, response_model=list[DeadLetterResource], responses=LINK)
async def list_dead_letter_queue(
    call: Caller,
    request: Request,
    response: Response,
    resolution: Resolution | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> list[dict[str, Any]]:
    """Dead letters, newest first."""
    found = await dead_letters.list_dead_letters(call, resolution, limit=limit, cursor=cursor)
    return [_tasked(each) for each in _bare(found, request, response)]


def _bare(found: dict[str, Any], request: Request, response: Response) -> list[dict[str, Any]]:
    """The items alone; the answer says in a header where to go on."""
    if found["next"] is not None:
        asked = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
        where = urlencode([*asked, ("cursor", found["next"])])
        response.headers["Link"] = f'<{request.scope["path"]}?{where}>; rel="next"'
    items: list[dict[str, Any]] = found["items"]
    return items


def _tasked(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "taskId": answer["node"]}


# One of them


@routes.get("/Run/{runId}", Right.READ, response_model=RunDetailsResource)
async def get_run_resource(call: Caller, run_id: runs.RunId, execution_id: runs.InExecution = None) -> dict[str, Any]:
    """One attempt with everything that is known of it."""
    return _tasked(await runs.get_run(call, run_id, execution_id))


@routes.get("/DeadLetterQueue/{letterId}", Right.READ, response_model=DeadLetterResource)
async def get_dead_letter_entry(call: Caller, letter_id: dead_letters.LetterId) -> dict[str, Any]:
    """One dead letter with everything that is known of it."""
    return _tasked(await dead_letters.get_dead_letter(call, letter_id))


@routes.post("/DeadLetterQueue/{letterId}/requeue", Right.EXECUTE, response_model=Requeued, problems=(409,))
async def requeue_dead_letter_entry(
    call: Caller, letter_id: dead_letters.LetterId, overrides: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Try a dead letter again; the body is what replaces its inputs, by name."""
    return await dead_letters.requeue_dead_letter(call, letter_id, dead_letters.RequeueBody(overrides=overrides))


@routes.post("/DeadLetterQueue/{letterId}/discard", Right.EXECUTE, response_model=DeadLetterResource, problems=(409,))
async def discard_dead_letter_entry(call: Caller, letter_id: dead_letters.LetterId) -> dict[str, Any]:
    """Close a dead letter without doing anything about it."""
    return _tasked(await dead_letters.discard_dead_letter(call, letter_id))


# What is the same in all but its path


def _named(name: str, handler: Handler) -> Handler:
    """The handler under another name, which is that of its operation."""

    @wraps(handler)
    async def called(**given: Any) -> Any:
        return await handler(**given)

    called.__name__ = name
    return called


EXECUTION: Final = "/WorkflowExecution/{executionId}"
VERBS: Final = {
    f"{EXECUTION}/cancel": _named("cancel_workflow_execution", verbs.cancel_execution),
    f"{EXECUTION}/pause": _named("pause_workflow_execution", verbs.pause_execution),
    f"{EXECUTION}/resume": _named("resume_workflow_execution", verbs.resume_execution),
}

_get_execution = _named("get_workflow_execution", executions.get_execution)
_heartbeat = _named("update_run_heartbeat", leases.heartbeat_run)
routes.get(EXECUTION, Right.READ, response_model=ExecutionDetails)(_get_execution)
routes.post("/Run/{runId}/heartbeat", Right.RUN, response_model=leases.Kept, problems=(409,))(_heartbeat)
for _path, _handler in VERBS.items():
    routes.post(_path, Right.EXECUTE, response_model=verbs.Told, problems=(409,))(_handler)
