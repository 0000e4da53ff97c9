"""What waits for a person, over HTTP, and who may answer."""

from typing import Any, Final

from pydantic import Field

from ropewalk.access.answering import answerers
from ropewalk.access.rights import Right
from ropewalk.api.doors.authorization import Call
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, ChosenWorkflow, Cursor, Limit, Page, exemplified
from ropewalk.api.shapes.executions import A_MOMENT, AN_ID, ANOTHER_ID
from ropewalk.service import payloads
from ropewalk.service.reading.approvals import START, waiting_approvals
from ropewalk.service.reading.scans import scan_reader
from ropewalk.store.executions import Filter

routes = Routes("/workflow/approvals", "Executions")

AN_APPROVAL: Final = {
    "executionId": AN_ID, "workflow": "refund", "workflowId": ANOTHER_ID, "node": "ask", "item": None,
    "title": "Refund A-7?", "details": None, "since": A_MOMENT, "expiresAt": None, "mayAnswer": True,
    "answerers": {"roles": ["operator", "editor", "admin"], "subjects": ["user:ann"]}, "payloads": True,
}  # fmt: skip


class Answerers(Answer):
    """Who may answer: any of these roles in the workspace, or for the workflow."""

    roles: list[str]
    subjects: list[str] | None = Field(description="Who has one of them; null for callers who may not administer.")


class Approval(Answer):
    """A node that waits for a person; POST `/workflow/executions/{executionId}/approve` answers it."""

    model_config = exemplified(Answer, AN_APPROVAL)

    execution_id: str
    workflow: str
    workflow_id: str
    node: str
    item: int | None
    title: str
    details: Any
    since: str | None
    expires_at: str | None
    may_answer: bool = Field(description="Whether the caller may.")
    answerers: Answerers
    payloads: bool


@routes.get("", Right.READ, response_model=Page[Approval])
async def list_approvals(
    call: Caller, workflow_id: ChosenWorkflow = None, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, Any]:
    """The approvals that are not answered yet, those of the newest executions first.

    A page may be shorter than `limit` and go on all the same: then `next` is not null.
    """
    workflow = await call.chosen(workflow_id)
    listing = call.listing("approvals", workflow)
    place = START if cursor is None else tuple(call.backend.cursors.read(listing, cursor))
    shared = await call.shared_workflows()
    wanted = Filter(workflow, among=None if shared is None else tuple(shared))
    found, rest = await waiting_approvals(
        scan_reader(call.backend.store), call.workspace, wanted, (place[0], place[1]), limit
    )
    known = {each: await _about(call, each) for each in dict.fromkeys(each["workflowId"] for each in found)}
    shown = [await _shown(call, {**each, **known[each["workflowId"]]}) for each in found]
    return {"items": shown, "next": None if rest is None else call.backend.cursors.write(listing, list(rest))}


async def _about(call: Call, workflow: str) -> dict[str, Any]:
    """Who may answer what a workflow asks, as far as the caller may know."""
    rights = call.rights | await call.backend.rights_cache.rights_for(call.actor, call.workspace, workflow)
    named = Right.ADMINISTER in call.rights
    return {
        "mayAnswer": Right.EXECUTE in rights,
        "answerers": await answerers(call.backend.store, call.workspace, workflow, is_named=named),
    }


async def _shown(call: Call, approval: dict[str, Any]) -> dict[str, Any]:
    return payloads.marked(approval, payloads.APPROVAL, may_read=await call.may_read(approval["workflowId"]))
