"""Authorization: who asks, in which workspace, and whether they may use the matched route. Only PUBLIC is open.

A workspace in which the caller has no part, and what is in it, does not exist for the caller: 404. A right that the
caller lacks where they may look is 403.
"""

from contextlib import AbstractAsyncContextManager
from typing import Final

import msgspec
from starlette.requests import HTTPConnection

from ropewalk.access.actor import Actor
from ropewalk.access.granting import Giver
from ropewalk.access.reach import may_use
from ropewalk.access.rights import BEYOND, NOTHING, RIGHTS, Right, Role
from ropewalk.api.backend import Backend
from ropewalk.api.doors.authentication import authenticate
from ropewalk.core.errors import Forbidden, InvalidInput, NotFound, Problem
from ropewalk.core.state import ExecutionState
from ropewalk.service import Service
from ropewalk.service.credential_checks import MayUse
from ropewalk.service.reading.recorded import current_caller
from ropewalk.store import acl, dlq, executions, workflows

PUBLIC: Final = frozenset({"getHealth", "getReadiness", "getOpenApi", "openSession", "deliverWebhook"})
"""The operations that answer without a token. There are no others. A webhook has a check of its own."""
WORKSPACE: Final = "workspaceId"
MOST_SHARED: Final = 1_000
"""If more workflows of a workspace are shared with one actor, lists show the first; by id all of them are open."""


class Call:
    """One request of an authorized caller, and what the caller may do here."""

    def __init__(self, backend: Backend, actor: Actor, workspace: str, right: Right, rights: frozenset[Right]) -> None:
        self.backend = backend
        self.actor = actor
        self.workspace = workspace
        self.right = right
        self.rights = rights

    @property
    def bounded_by(self) -> tuple[str, ...]:
        """The caller, if they have the route's right for single workflows alone: what they save or start is bounded."""
        return () if self.right in self.rights else (self.actor.subject,)

    @property
    def service(self) -> Service:
        return self.backend.service(self.workspace)

    async def allow(self, workflow: str, absent: str = "there is no such thing here") -> None:
        """The route's right on what belongs to a workflow; `absent` is what is said where there is no such thing."""
        if self.right in self.rights:
            return
        shared = await self.backend.rights_cache.rights_for(self.actor, self.workspace, workflow)
        if self.right in shared:
            return
        if Right.READ not in self.rights | shared:
            raise NotFound(absent)
        raise Forbidden(f"this needs the right to {self.right}")

    @property
    def may_use(self) -> MayUse | None:
        """What tells whether the caller may use a credential; None if the caller may use any of the workspace."""
        if Right.USE_CREDENTIALS in self.rights:
            return None
        return lambda credential: may_use(self.backend.store, self.actor, self.workspace, credential)

    async def may_read(self, workflow: str) -> bool:
        """Whether the answer may show the payloads of this workflow."""
        if Right.READ_PAYLOADS in self.rights:
            return True
        return Right.READ_PAYLOADS in await self.backend.rights_cache.rights_for(self.actor, self.workspace, workflow)

    async def execution(self, execution: str) -> executions.Execution:
        """An execution this route may be used on."""
        found = await executions.get(self.backend.store, self.workspace, execution)
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
        found = await self.service.workflow_cache.get(workflow)
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

    async def dead_letter(self, letter: str) -> dlq.DeadLetter:
        """A dead letter this route may be used on."""
        found = await dlq.get(self.backend.store, self.workspace, letter)
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
        about = (self.backend.store, self.actor.subject, self.workspace)
        shares = await acl.shared_with(*about, limit=MOST_SHARED)
        return [share.workflow for share in shares if self.right in self.actor.scoped(RIGHTS[Role(share.role)])]

    def turn(self, size: int) -> AbstractAsyncContextManager[object]:
        """Inside the block it is the turn of a document of this size to be checked."""
        return self.backend.documents.turn(self.workspace, self.actor.subject, size)

    @property
    def giver(self) -> Giver:
        """The caller as one who gives rights in the workspace."""
        return self._giver(self.rights)

    async def giver_of(self, workflow: str) -> Giver:
        """The caller as one who gives rights on one workflow."""
        shared = await self.backend.rights_cache.rights_for(self.actor, self.workspace, workflow)
        return self._giver(self.rights | shared)

    def _giver(self, rights: frozenset[Right]) -> Giver:
        # A person outlives the token that proved who they are; a key does not.
        ends = self.actor.expires_at if self.actor.is_key else None
        return Giver(self.actor.subject, self.workspace, rights, ends)


async def authorize(connection: HTTPConnection, right: Right) -> Call:
    """Authorize the caller, or refuse; before a byte of the body is read."""
    if right is Right.COME_IN:
        return await authorize_without_workspace(connection, right)
    actor = await authenticate(connection)
    return await authorize_in_workspace(connection.app.state.backend, actor, _named(connection, actor), right)


async def authorize_by_body(connection: HTTPConnection, right: Right) -> Call:
    """As `authorize`; but a caller whose query names no workspace may do so in the body, and may do nothing before."""
    actor = await authenticate(connection)
    backend: Backend = connection.app.state.backend
    if not connection.scope["query_string"] or WORKSPACE not in connection.query_params:
        return Call(backend, actor, "", right, NOTHING)
    return await authorize_in_workspace(backend, actor, _named(connection, actor), right)


async def authorize_without_workspace(connection: HTTPConnection, right: Right) -> Call:
    """Let a caller in who names no workspace yet, and who has no right before `authorize_in_workspace` gives it."""
    actor = await authenticate(connection)
    return Call(connection.app.state.backend, actor, actor.home or "", right, NOTHING)


async def authorize_in_workspace(backend: Backend, actor: Actor, workspace: str, right: Right) -> Call:
    """The actor's call in this workspace; 404 where the actor has no part in it, or it does not exist."""
    rights = await backend.rights_cache.rights_in(actor, workspace)
    current_caller.set((workspace, actor.subject))
    if right in rights:
        return Call(backend, actor, workspace, right, rights)
    if right not in BEYOND and await backend.rights_cache.has_shares(actor, workspace):
        return Call(backend, actor, workspace, right, rights)
    if not rights:
        raise NotFound(f"there is no workspace {workspace!r}")
    raise Forbidden(f"this needs the right to {right}")


def _named(connection: HTTPConnection, actor: Actor) -> str:
    """The workspace the caller names, else the home of a key. There is no other to fall back on."""
    text = connection.scope["query_string"]
    # To parse a query costs more than to see that it names no workspace; its name may be escaped.
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
    """The refusal of a caller who has no home workspace and names none."""
    return InvalidInput([Problem(field, "say which workspace; you may have a part in several")])
