"""Members: who has which role in a workspace.

Subjects come in the body or the query, not in the path: an issuer may put any character into one.
"""

from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import Field

from ropewalk.access import members as access
from ropewalk.access.rights import RIGHTS, Right, Role
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, Cursor, Limit, Page, exemplified, page
from ropewalk.core.errors import Forbidden
from ropewalk.core.instant import rfc3339
from ropewalk.store import members
from ropewalk.store.acl import Share

routes = Routes("/members", "Members")

SUBJECT: Final = r"^(user:[^\x00-\x1f\x7f]+|key:[0-9a-f]{32})$"
Subject = Annotated[str, Field(max_length=255, pattern=SUBJECT, description="`user:<sub of the token>` or `key:<id>`")]
SubjectQuery = Annotated[str, Query(max_length=255, pattern=SUBJECT)]
_A_MEMBER: Final = {
    "subject": "user:ann",
    "role": "editor",
    "createdAt": "2026-11-16T08:00:00.000000Z",
    "createdBy": "user:bob",
}


class PutMemberBody(Body):
    """A subject, and the role it is to have."""

    model_config = exemplified(Body, {"subject": "user:ann", "role": "editor"})

    subject: Subject
    role: Role = Field(strict=False)


class Member(Answer):
    """A member and its role."""

    model_config = exemplified(Answer, _A_MEMBER)

    subject: str
    role: Role
    created_at: str
    created_by: str


class LetGo(Answer):
    """A subject that has no role any more; `changed` is false if it had none."""

    model_config = exemplified(Answer, {"subject": "user:ann", "changed": True})

    subject: str
    changed: bool


@routes.get("", Right.ADMINISTER, response_model=Page[Member])
async def list_members(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> dict[str, Any]:
    """The members of the workspace by subject. Keys at home here are among the keys."""
    call.require()
    listing = call.listing("members")
    after = "" if cursor is None else call.backend.cursors.read(listing, cursor)
    found = await members.listed(call.backend.store, call.workspace, after=after, limit=limit)
    place = found[-1].subject if found else None
    return page(call.backend.cursors, listing, [shown(each) for each in found], limit, place)


@routes.put("", Right.ADMINISTER, response_model=Member)
async def put_member(call: Caller, body: PutMemberBody) -> dict[str, Any]:
    """Give a subject a role in the workspace, or another one; at most what the caller may do."""
    call.require()
    if call.actor.pools is not None and Right.RUN in RIGHTS[body.role]:
        # A member's pools are all there are.
        raise Forbidden("a caller cannot give what it lacks: other pools than its own")
    member = await access.put(call.backend.store, call.giver, body.subject, body.role)
    call.backend.forget()
    return shown(member)


@routes.delete("", Right.ADMINISTER, response_model=LetGo)
async def remove_member(call: Caller, subject: SubjectQuery) -> dict[str, Any]:
    """Remove a member: here at once, on every server within five seconds. What is shared with it stays shared."""
    call.require()
    changed = await access.remove(call.backend.store, call.giver, subject)
    call.backend.forget()
    return {"subject": subject, "changed": changed}


def shown(member: members.Member | Share) -> dict[str, Any]:
    """A subject and its role, in a workspace or for one workflow."""
    return {
        "subject": member.subject,
        "role": member.role,
        "createdAt": rfc3339(member.created_at),
        "createdBy": member.created_by,
    }
