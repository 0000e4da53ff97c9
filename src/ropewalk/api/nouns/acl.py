"""With whom a workflow is shared, beyond the members of its workspace."""

from typing import Any, Literal

from ropewalk.access import acl as access
from ropewalk.access.rights import Right, Role
from ropewalk.api.nouns.definitions import DefinitionId
from ropewalk.api.nouns.members import LetGo, Member, Subject, SubjectQuery, shown
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Body, Cursor, Limit, Page, exemplified, page
from ropewalk.store import acl

routes = Routes("/workflow/definitions/{definitionId}/acl", "Sharing")

Shareable = Literal["viewer", "operator", "editor", "admin"]
"""Runners serve pools of a workspace; there is nothing of one workflow for them."""


class ShareBody(Body):
    """A subject, and the role it is to have for this workflow."""

    model_config = exemplified(Body, {"subject": "user:cem", "role": "operator"})

    subject: Subject
    role: Shareable


@routes.get("", Right.ADMINISTER, response_model=Page[Member])
async def list_shares(
    call: Caller, definition_id: DefinitionId, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, Any]:
    """With whom the workflow is shared, by subject."""
    workflow = await call.workflow(definition_id)
    listing = call.listing("acl", workflow.id)
    after = "" if cursor is None else call.backend.cursors.read(listing, cursor)
    found = await acl.listed(call.backend.store, call.workspace, workflow.id, after=after, limit=limit)
    place = found[-1].subject if found else None
    return page(call.backend.cursors, listing, [shown(each) for each in found], limit, place)


@routes.put("", Right.ADMINISTER, response_model=Member)
async def share_definition(call: Caller, definition_id: DefinitionId, body: ShareBody) -> dict[str, Any]:
    """Share the workflow with a subject, or in another role; at most what the caller may do with it."""
    workflow = await call.workflow(definition_id)
    giver = await call.giver_of(workflow.id)
    shared = await access.share(call.backend.store, giver, workflow.id, body.subject, Role(body.role))
    call.backend.forget()
    return shown(shared)


@routes.delete("", Right.ADMINISTER, response_model=LetGo)
async def unshare_definition(call: Caller, definition_id: DefinitionId, subject: SubjectQuery) -> dict[str, Any]:
    """Share it no more: here at once, on every server within five seconds."""
    workflow = await call.workflow(definition_id)
    changed = await access.unshare(call.backend.store, await call.giver_of(workflow.id), workflow.id, subject)
    call.backend.forget()
    return {"subject": subject, "changed": changed}
