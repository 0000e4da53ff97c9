"""The gate: who asks, where, and whether the matched route is theirs to use. Nothing is open unless PUBLIC says so.

A workspace somebody has no part in, and what is in it, does not exist for them: 404. A right they lack where they may
look is 403.
"""

from contextlib import AbstractAsyncContextManager
from typing import Final

import msgspec
from starlette.requests import HTTPConnection

from ropewalk.access.actor import Actor
from ropewalk.access.granting import Giver
from ropewalk.access.rights import BEYOND, NOTHING, RIGHTS, Right, Role
from ropewalk.api.office import Office
from ropewalk.api.proofs import authenticate
from ropewalk.core.errors import Forbidden, InvalidInput, NotFound, Problem
from ropewalk.core.state import ExecutionState
from ropewalk.service import Service
from ropewalk.service.reading.recorded import asking
from ropewalk.store import acl, dlq, executions, workflows

PUBLIC: Final = frozenset({"getHealth", "getReadiness", "getOpenApi", "openSession"})
"""The operations that answer without a token. There are no others."""
WORKSPACE: Final = "workspaceId"
MOST_SHARED: Final = 1_000
"""Of more workflows than these that are shared with one in one workspace, lists show the first; ids open them all."""


class Call:
    """One request of somebody who was let in, and what they may do here."""

    def __init__(self, office: Office, actor: Actor, workspace: str, right: Right, rights: frozenset[Right]) -> None:
        self.office = office
        self.actor = actor
        self.workspace = workspace
        self.right = right
        self.rights = rights

    @property
    def bounded_by(self) -> tuple[str, ...]:
        """Who asks, if the route's right is theirs for single workflows alone: what they save or start is bounded."""
        return () if self.right in self.rights else (self.actor.subject,)

    @property
    def service(self) -> Service:
        return self.office.service(self.workspace)

    async def allow(self, workflow: str, absent: str = "there is no such thing here") -> None:
        """The route's right on what belongs to a workflow; `absent` is what is said where there is no such thing."""
        if self.right in self.rights:
            return
        shared = await self.office.standings.rights_for(self.actor, self.workspace, workflow)
        if self.right in shared:
            return
        if Right.READ not in self.rights | shared:
            raise NotFound(absent)
        raise Forbidden(f"this needs the right to {self.right}")

    async def may_read(self, workflow: str) -> bool:
        """Whether the answer may show the payloads of this workflow."""
        if Right.READ_PAYLOADS in self.rights:
            return True
        return Right.READ_PAYLOADS in await self.office.standings.rights_for(self.actor, self.workspace, workflow)

    async def execution(self, execution: str) -> executions.Execution:
        """An execution this route may be used on."""
        found = await executions.get(self.office.store, self.workspace, execution)
        absent = f"there is no execution {execution}"
        if found is None:
            raise NotFound(absent)
        await self.allow(found.workflow, absent)
        return found

    async def has_ended(self, execution: str) -> bool:
        """Whether an execution this route may be used on is over. Nothing is read of one that is under way here."""
        accepted = self.service.engine.under_way(execution)
        if accepted is None or accepted.workspace != self.workspace:
            return ExecutionState((await self.execution(execution)).state).is_ended
        await self.allow(accepted.workflow, f"there is no execution {execution}")
        return False

    async def workflow(self, workflow: str) -> workflows.Workflow:
        """A workflow this route may be used on."""
        found = await self.service.known.get(workflow)
        absent = f"there is no workflow {workflow!r}"
        if found is None:
            raise NotFound(absent)
        await self.allow(found.id, absent)
        return found

    async def chosen(self, workflow: str | None) -> str | None:
        """The id of the workflow that a list is narrowed to, by its id or name; None if it is to none."""
        return None if workflow is None else (await self.workflow(workflow)).id

    def listing(self, name: str, *filters: object) -> str:
        """What a cursor of a list is bound to: the workspace, and what the list is narrowed to."""
        return msgspec.json.encode([name, self.workspace, *filters]).decode()

    async def letter(self, letter: str) -> dlq.DeadLetter:
        """A dead letter this route may be used on."""
        found = await dlq.get(self.office.store, self.workspace, letter)
        absent = f"there is no dead letter {letter}"
        if found is None:
            raise NotFound(absent)
        await self.allow(found.workflow, absent)
        return found

    def require(self) -> None:
        """The route's right in the whole workspace; for what belongs to no workflow."""
        if self.right in self.rights:
            return
        if not self.rights:
            raise NotFound("there is no such thing here")
        raise Forbidden(f"this needs the right to {self.right}")

    async def shared_workflows(self) -> list[str] | None:
        """The workflows a list is narrowed to; None if it is not."""
        if self.right in self.rights:
            return None
        about = (self.office.store, self.actor.subject, self.workspace)
        shares = await acl.shared_with(*about, limit=MOST_SHARED)
        return [share.workflow for share in shares if self.right in self.actor.scoped(RIGHTS[Role(share.role)])]

    def turn(self, size: int) -> AbstractAsyncContextManager[object]:
        """Inside it is the turn of a document of this size to be checked."""
        return self.office.documents.turn(self.workspace, self.actor.subject, size)

    @property
    def giver(self) -> Giver:
        """This one as somebody who gives rights in the workspace."""
        return self._giver(self.rights)

    async def giver_of(self, workflow: str) -> Giver:
        """This one as somebody who gives rights on one workflow."""
        shared = await self.office.standings.rights_for(self.actor, self.workspace, workflow)
        return self._giver(self.rights | shared)

    def _giver(self, rights: frozenset[Right]) -> Giver:
        # A person goes on when the token that proved who they are is over; a key does not.
        ends = self.actor.expires_at if self.actor.is_key else None
        return Giver(self.actor.subject, self.workspace, rights, ends)


async def enter(connection: HTTPConnection, right: Right) -> Call:
    """Let somebody in, or not; before a byte of the body is read."""
    if right is Right.COME_IN:
        return await enter_anywhere(connection, right)
    actor = await authenticate(connection)
    return await enter_workspace(connection.app.state.office, actor, _named(connection, actor), right)


async def enter_by_body(connection: HTTPConnection, right: Right) -> Call:
    """As `enter`; but a caller whose query names no workspace may do so in the body, and may do nothing before."""
    actor = await authenticate(connection)
    office: Office = connection.app.state.office
    if not connection.scope["query_string"] or WORKSPACE not in connection.query_params:
        return Call(office, actor, "", right, NOTHING)
    return await enter_workspace(office, actor, _named(connection, actor), right)


async def enter_anywhere(connection: HTTPConnection, right: Right) -> Call:
    """Let somebody in who asks about no workspace yet; they may do nothing before `enter_workspace` says so."""
    actor = await authenticate(connection)
    return Call(connection.app.state.office, actor, actor.home or "", right, NOTHING)


async def enter_workspace(office: Office, actor: Actor, workspace: str, right: Right) -> Call:
    """The call of this one in this workspace; 404 where they have no part in it, or it does not exist."""
    rights = await office.standings.rights_in(actor, workspace)
    asking.set((workspace, actor.subject))
    if right in rights:
        return Call(office, actor, workspace, right, rights)
    if right not in BEYOND and await office.standings.has_shares(actor, workspace):
        return Call(office, actor, workspace, right, rights)
    if not rights:
        raise NotFound(f"there is no workspace {workspace!r}")
    raise Forbidden(f"this needs the right to {right}")


def _named(connection: HTTPConnection, actor: Actor) -> str:
    """The workspace the caller names, else the home of a key. There is no other to fall back on."""
    text = connection.scope["query_string"]
    # To read a query costs more than to see that it says nothing of this; a name may be escaped.
    named = connection.query_params.getlist(WORKSPACE) if b"workspaceId" in text or b"%" in text else []
    if len(named) > 1:
        raise InvalidInput([Problem(("query", WORKSPACE), "comes more than once")])
    workspace = named[0] if named else actor.home
    if workspace is None:
        raise nowhere("query", WORKSPACE)
    if "\0" in workspace or len(workspace) > 255:
        raise NotFound("there is no such workspace")
    return workspace


def nowhere(*field: str) -> InvalidInput:
    """What somebody without a home is told who names no workspace."""
    return InvalidInput([Problem(field, "say which workspace; you may have a part in several")])
