"""What nodes say to other executions, with the rights of the execution that they are part of."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from msgspec.structs import replace

from ropewalk.core import log
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import Forbidden, InvalidTransition, NotFound, RopewalkError, Unavailable, reading_of
from ropewalk.core.events import ExecutionAccepted
from ropewalk.core.kinship import depth_below
from ropewalk.core.reach import refusal, workflow_remedy
from ropewalk.core.signals import Cancel, Tell
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.speaking import Speaker
from ropewalk.service.starting import Once
from ropewalk.service.triggers import events
from ropewalk.service.verbs import Service
from ropewalk.store import executions, workflows
from ropewalk.store import log as stored_log

ROUTE: Final = "node"
"""Of the idempotency keys that are works of runs: no caller from outside has the same."""


class SpokenExecutions:
    """The executions of the store behind a service, of all its workspaces."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def start(self, speaker: Speaker, workflow: str, input: JSON, version: int | None, priority: int) -> str:  # noqa: A002
        service = self._service.of(speaker.workspace)
        once = Once(speaker.work, [workflow, version, input, priority], ROUTE)
        async with _told_as_failures():
            # First of all: what was started then may not be startable any more.
            if known := await service.started(once):
                return known[0]
            accepted = await self._accepted(speaker.execution)
            await self._require_reach(speaker, workflow)
            wanted = await service.engine.versions.of_name(speaker.workspace, workflow, version)
            about = (speaker.name, priority, accepted.trace, speaker.bounded_by)
            request = replace(service.request(wanted, input, {}, *about), depth=depth_below(accepted))
            return await service.accept(request, once)

    async def emit(self, speaker: Speaker, subject: str, payload: JSON) -> int:
        async with _told_as_failures():
            depth = depth_below(await self._accepted(speaker.execution))
            service = self._service.of(speaker.workspace)
            published = await events.publish(service, subject, payload, speaker.name, speaker.work, depth=depth)
            return published.told

    async def signal(self, speaker: Speaker, execution: str, name: str, payload: JSON) -> bool:
        return await self._tell(speaker, execution, Tell(name, payload, speaker.work))

    async def cancel(self, speaker: Speaker, execution: str, reason: str | None) -> bool:
        return await self._tell(speaker, execution, Cancel(speaker.name, reason))

    async def pause(self, speaker: Speaker, reason: str) -> None:
        async with _told_as_failures():
            with suppress(InvalidTransition):
                await self._service.of(speaker.workspace).pause(speaker.execution, speaker.name, reason)

    async def _tell(self, speaker: Speaker, execution: str, signal: Tell | Cancel) -> bool:
        """Whether it was told, now or by an earlier attempt; not if it refuses."""
        async with _told_as_failures():
            await self._require_execution(speaker, execution)
            try:
                await self._service.of(speaker.workspace).tell(execution, signal, speaker.name)
            except InvalidTransition:
                return False
            return True

    async def _accepted(self, execution: str) -> ExecutionAccepted:
        """How the speaker's execution was accepted; it may be under way elsewhere, and only its run is here."""
        engine = self._service.engine
        if (known := engine.under_way(execution)) is not None:
            return known
        entries = await stored_log.entries(engine.store, execution, limit=1)
        with reading_of(execution):
            return log.acceptance([event for _, entry in entries for event in log.decode(entry)[1]])

    async def _require_execution(self, speaker: Speaker, execution: str) -> None:
        """Refuses an execution of another workspace, and one of a workflow that is out of reach."""
        found = await executions.get(self._service.store, speaker.workspace, execution)
        for actor in speaker.bounded_by:
            if found is None or not await self._may_call(actor, speaker.workspace, found.workflow):
                raise Forbidden(refusal(f"the execution {execution!r}", (actor,)))
        if found is None:
            raise NotFound(f"there is no execution {execution!r}")

    async def _require_reach(self, speaker: Speaker, named: str) -> None:
        """Refuses, whether there is such a workflow or not, what is not shared with all who bound the speaker."""
        if not speaker.bounded_by:
            return
        found = await workflows.find(self._service.store, speaker.workspace, named)
        for actor in speaker.bounded_by:
            if found is None or not await self._may_call(actor, speaker.workspace, found.id):
                raise Forbidden(refusal(f"the workflow {named!r}", (actor,), workflow_remedy(named)))

    async def _may_call(self, actor: str, workspace: str, workflow: str) -> bool:
        return await self._service.engine.reaches.may_call(actor, workspace, workflow)


@asynccontextmanager
async def _told_as_failures() -> AsyncIterator[None]:
    """A refusal fails the node for good; a store that cannot be reached may be reached next time."""
    try:
        yield
    except Unavailable as error:
        raise NodeFailure.transient(str(error)) from error
    except RopewalkError as error:
        raise NodeFailure.permanent(str(error)) from error
