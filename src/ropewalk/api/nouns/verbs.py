"""What executions may be told over HTTP.

202: it was told. 200: that held already. 409: not in this state.
"""

from typing import Any, Final

from fastapi import Response
from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.nouns.executions import LATEST_POSSIBLE, NODE, ExecutionId
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, exemplified
from ropewalk.api.shapes.executions import AN_ID, ANOTHER_ID, Started
from ropewalk.core.errors import Invalid
from ropewalk.core.subject import LONGEST_NAME
from ropewalk.service import payloads

routes = Routes("/workflow/executions", "Executions")

LARGEST_ITEM: Final = 100_000


class Told(Answer):
    """An execution that was told something; `changed` is false if that held already."""

    model_config = exemplified(Answer, {"executionId": AN_ID, "changed": True})

    execution_id: str
    changed: bool


class StartedAgain(Started):
    """A new execution that does another again; a later look at it says whether both gave the same output."""

    model_config = exemplified(Answer, {
        "queueId": AN_ID, "executionId": AN_ID, "status": "PENDING", "sourceExecutionId": ANOTHER_ID,
        "sameOutput": None,
    })  # fmt: skip

    source_execution_id: str
    same_output: bool | None


class ReasonBody(Body):
    """Why, for those who read the log."""

    model_config = exemplified(Body, {"reason": "the shop is closed"})

    reason: str | None = Field(None, max_length=1_000)


class RerunBody(Body):
    """From which node on; in which version if not the same."""

    model_config = exemplified(Body, {"node": "pay"})

    node: str = Field(pattern=NODE)
    version: int | None = Field(None, ge=1, le=LATEST_POSSIBLE)


class SignalBody(Body):
    """What the execution is told."""

    model_config = exemplified(Body, {"name": "paid", "payload": {"amount": 12}})

    name: str = Field(min_length=1, max_length=LONGEST_NAME)
    payload: Any = None


class DecisionBody(Body):
    """The answer to an approval; `item` if it is one of a map."""

    model_config = exemplified(Body, {"node": "ask", "approved": True, "payload": {"note": "fine"}})

    node: str = Field(pattern=NODE)
    approved: bool
    payload: Any = None
    item: int | None = Field(None, ge=0, le=LARGEST_ITEM)


VERB: Final[dict[str, Any]] = {
    "status_code": 202,
    "response_model": Told,
    "problems": (409,),
    "responses": {200: {"description": "That held already; nothing has changed.", "model": Told}},
}


@routes.post("/{executionId}/cancel", Right.EXECUTE, **VERB)
async def cancel_execution(
    call: Caller, execution_id: ExecutionId, response: Response, body: ReasonBody | None = None
) -> dict[str, Any]:
    """Running nodes and children are told to stop; what they report within ten seconds is recorded."""
    await call.execution(execution_id)
    reason = None if body is None else body.reason
    return told(response, execution_id, await call.service.cancel(execution_id, call.actor.subject, reason))


@routes.post("/{executionId}/pause", Right.EXECUTE, **VERB)
async def pause_execution(
    call: Caller, execution_id: ExecutionId, response: Response, body: ReasonBody | None = None
) -> dict[str, Any]:
    """Nothing new starts; what runs finishes and is recorded."""
    await call.execution(execution_id)
    reason = None if body is None else body.reason
    return told(response, execution_id, await call.service.pause(execution_id, call.actor.subject, reason))


@routes.post("/{executionId}/resume", Right.EXECUTE, **VERB)
async def resume_execution(call: Caller, execution_id: ExecutionId, response: Response) -> dict[str, Any]:
    """A paused execution goes on."""
    await call.execution(execution_id)
    return told(response, execution_id, await call.service.resume(execution_id, call.actor.subject))


@routes.post("/{executionId}/retry", Right.EXECUTE, **VERB)
async def retry_execution(call: Caller, execution_id: ExecutionId, response: Response) -> dict[str, Any]:
    """An execution that failed or timed out goes on with every failed node that nothing handled."""
    await call.execution(execution_id)
    return told(response, execution_id, await call.service.retry(execution_id, call.actor.subject))


@routes.post("/{executionId}/signal", Right.EXECUTE, **VERB)
async def signal_execution(
    call: Caller, execution_id: ExecutionId, body: SignalBody, response: Response
) -> dict[str, Any]:
    """Tell an execution something by name; kept until a node waits for it."""
    await call.execution(execution_id)
    who = call.actor.subject
    return told(response, execution_id, await call.service.signal(execution_id, body.name, body.payload, who))


@routes.post("/{executionId}/approve", Right.EXECUTE, **VERB)
async def approve_execution(
    call: Caller, execution_id: ExecutionId, body: DecisionBody, response: Response
) -> dict[str, Any]:
    """Answer an approval with yes or no; the first answer counts, any other is too late."""
    await call.execution(execution_id)
    changed = await call.service.decide(
        execution_id, body.node, approved=body.approved, by=call.actor.subject, payload=body.payload, item=body.item
    )
    return told(response, execution_id, changed)


def told(response: Response, execution: str, changed: bool) -> dict[str, Any]:
    """The answer to a verb; the status says whether anything has changed."""
    if not changed:
        response.status_code = 200
    return {"executionId": execution, "changed": changed}


@routes.post("/{executionId}/rerun", Right.EXECUTE, status_code=202, response_model=StartedAgain, problems=(409,))
async def rerun_execution(call: Caller, execution_id: ExecutionId, body: RerunBody) -> dict[str, Any]:
    """A new execution that keeps every result of one that ended but those of a node and of what is behind it."""
    row = await call.execution(execution_id)
    about = (call.actor.subject, body.version, call.bounded_by)
    try:
        rerun = await call.service.rerun(execution_id, body.node, *about)
    except Invalid as error:
        # Another version may not take the input that is stored.
        raise payloads.said_problems(error, may_read=await call.may_read(row.workflow)) from error
    return _again(execution_id, rerun)


@routes.post("/{executionId}/replay", Right.EXECUTE, status_code=202, response_model=StartedAgain, problems=(409,))
async def replay_execution(call: Caller, execution_id: ExecutionId) -> dict[str, Any]:
    """A new execution of the same version with the input of one that ended."""
    await call.execution(execution_id)
    return _again(execution_id, await call.service.replay(execution_id, call.actor.subject, call.bounded_by))


def _again(source: str, execution: str) -> dict[str, Any]:
    about = {"queueId": execution, "executionId": execution, "status": "PENDING"}
    return {**about, "sourceExecutionId": source, "sameOutput": None}
