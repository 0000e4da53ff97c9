"""The gate: who asks, where, and whether the matched route is theirs to use. Nothing is open unless PUBLIC says so.

A workspace somebody has no part in, and what is in it, does not exist for them: 404. A right they lack where they may
look is 403.
"""

from typing import Final

from starlette.requests import HTTPConnection

from ropewalk.access.actor import Actor
from ropewalk.access.rights import NOTHING, Right
from ropewalk.api.office import Office
from ropewalk.core.errors import Forbidden, InvalidInput, NotFound, Problem, Unauthenticated
from ropewalk.service import Service
from ropewalk.store import acl, dlq, executions, workflows, workspaces

PUBLIC: Final = frozenset({"getHealth", "getReadiness", "getOpenApi", "openSession"})
"""The operations that answer without a token. There are no others."""
WORKSPACE: Final = "workspaceId"


class Call:
    """One request of somebody who was let in, and what they may do here."""

    def __init__(self, office: Office, actor: Actor, workspace: str, right: Right, rights: frozenset[Right]) -> None:
        self.office = office
        self.actor = actor
        self.workspace = workspace
        self.right = right
        self.rights = rights

    @property
    def service(self) -> Service:
        return self.office.service(self.workspace)

    @property
    def is_member(self) -> bool:
        """Whether the whole of the workspace is open, or only what is shared."""
        return bool(self.rights)

    async def allow(self, workflow: str, right: Right | None = None) -> None:
        """The route's right (or this one) on what belongs to a workflow."""
        needed = right or self.right
        if needed in self.rights:
            return
        shared = await self.actor.rights_for(self.office.store, self.workspace, workflow)
        if needed in shared:
            return
        if Right.READ not in self.rights | shared:
            raise NotFound("there is no such thing here")
        raise Forbidden(f"this needs the right to {needed}")

    async def may(self, workflow: str, right: Right) -> bool:
        """Whether this right is there too, for what an answer shows or leaves out."""
        if right in self.rights:
            return True
        return right in await self.actor.rights_for(self.office.store, self.workspace, workflow)

    async def execution(self, execution: str) -> executions.Execution:
        """An execution this route may be used on."""
        found = await executions.get(self.office.store, self.workspace, execution)
        if found is None:
            raise NotFound(f"there is no execution {execution}")
        await self.allow(found.workflow)
        return found

    async def workflow(self, workflow: str) -> workflows.Workflow:
        """A workflow this route may be used on."""
        found = await workflows.get(self.office.store, self.workspace, workflow)
        if found is None:
            raise NotFound(f"there is no workflow {workflow}")
        await self.allow(found.id)
        return found

    async def letter(self, letter: str) -> dlq.DeadLetter:
        """A dead letter this route may be used on."""
        found = await dlq.get(self.office.store, self.workspace, letter)
        if found is None:
            raise NotFound(f"there is no dead letter {letter}")
        await self.allow(found.workflow)
        return found

    def require(self) -> None:
        """The route's right in the whole workspace; for what belongs to no workflow."""
        require(self.right, self.rights)

    async def shared_workflows(self) -> list[str] | None:
        """The workflows a list is narrowed to; None if it is not."""
        if self.right in self.rights:
            return None
        shares = await acl.shared_with(self.office.store, self.actor.subject, self.workspace)
        return [share.workflow for share in shares]


def require(right: Right, rights: frozenset[Right]) -> None:
    """What belongs to a whole workspace needs a right in the whole of it."""
    if right not in rights:
        raise Forbidden(f"this needs the right to {right}") if rights else NotFound("there is no such workspace")


async def authenticate(connection: HTTPConnection) -> Actor:
    """Who asks; there is no one to be taken for if nothing is said."""
    office: Office = connection.app.state.office
    kind, _, token = connection.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token:
        actor = await office.actor(token.strip())
    else:
        actor = await office.session_actor(connection)
    if actor is None:
        raise Unauthenticated("say who you are: Authorization: Bearer <API key or token>")
    return actor


async def enter(connection: HTTPConnection, right: Right) -> Call:
    """Let somebody in, or not; before a byte of the body is read."""
    actor = await authenticate(connection)
    return await enter_workspace(connection.app.state.office, actor, _named(connection, actor), right)


async def enter_workspace(office: Office, actor: Actor, workspace: str, right: Right) -> Call:
    """The call of this one in this workspace; 404 where they have no part in it, or it does not exist."""
    rights = await actor.rights_in(office.store, workspace)
    if right is Right.OPERATE:
        require(right, rights)
        return Call(office, actor, workspace, right, rights)
    is_there = bool(rights) or bool(await acl.shared_with(office.store, actor.subject, workspace, limit=1))
    if not is_there or (rights != NOTHING and await _is_missing(office, actor, workspace)):
        raise NotFound(f"there is no workspace {workspace!r}")
    if rights and right not in rights and not await acl.shared_with(office.store, actor.subject, workspace, limit=1):
        raise Forbidden(f"this needs the right to {right}")
    return Call(office, actor, workspace, right, rights)


async def _is_missing(office: Office, actor: Actor, workspace: str) -> bool:
    """Root keys may name any workspace; what does not exist is not theirs either."""
    return actor.is_root and await workspaces.get(office.store, workspace) is None


def _named(connection: HTTPConnection, actor: Actor) -> str:
    """The workspace the caller names, else the home of a key. There is no other to fall back on."""
    named = connection.query_params.getlist(WORKSPACE)
    if len(named) > 1:
        raise InvalidInput([Problem(("query", WORKSPACE), "comes more than once")])
    workspace = named[0] if named else actor.home
    if workspace is None:
        raise InvalidInput([Problem(("query", WORKSPACE), "say which workspace; you may have a part in several")])
    if "\0" in workspace or len(workspace) > 255:
        raise NotFound("there is no such workspace")
    return workspace
