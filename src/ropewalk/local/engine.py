"""A store that this process executes on, and what can be asked of it."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

import uuid_utils

from ropewalk.core.canonical import JSON
from ropewalk.core.errors import NotFound, RopewalkError
from ropewalk.core.state import ExecutionState, TriggerType
from ropewalk.engines.base import Version
from ropewalk.local.credentials import CredentialVerbs
from ropewalk.local.definitions import DefinitionVerbs, Source
from ropewalk.local.dlq import DeadLetterVerbs
from ropewalk.local.execution import LocalExecution
from ropewalk.local.listing import Json, id_of, id_of_workflow, micros, paged, word
from ropewalk.service import Service, reading
from ropewalk.service.queue import queue_item
from ropewalk.service.start_batches import start_many
from ropewalk.store import executions
from ropewalk.workflow import Workflow

if TYPE_CHECKING:
    from ropewalk.client.answers import ExecutionSummary, QueueItem


class LocalEngine(DefinitionVerbs, DeadLetterVerbs, CredentialVerbs):
    """A store that this process executes on. The verbs have the names that the client has for them."""

    def __init__(self, service: Service) -> None:
        self.service = service
        # The version of a workflow, and the revision of the workflow that was saved as it.
        self._known: WeakKeyDictionary[Workflow, tuple[int, Version]] = WeakKeyDictionary()

    # Starting

    async def start(
        self, workflow: str | Source, input: JSON = None, *,  # noqa: A002
        vars: Mapping[str, JSON] | None = None, priority: int = 5, version: int | None = None,  # noqa: A002
        key: str | None = None,
    ) -> LocalExecution:  # fmt: skip
        """Accept an execution durably; from here on it survives any crash. Once per `key`, if there is one.

        A document or `Workflow` is saved and published if it is not the last one saved here under its name; a text is
        the id or the name of one that is saved, and takes its published version or the one that is named.
        """
        service, wanted = self.service, await self._version(workflow, version)
        if key is not None:
            accepted = await service.start(wanted, input, vars, priority=priority, key=key)
            return LocalExecution(service, accepted)
        execution = str(uuid_utils.uuid7())
        # Before the start: it may have ended when that returns.
        end = service.engine.watching.expect(execution)
        await service.start(wanted, input, vars, priority=priority, execution=execution)
        return LocalExecution(service, execution, end)

    async def start_many(
        self, workflow: str | Source, inputs: Iterable[JSON], *,
        vars: Mapping[str, JSON] | None = None, priority: int = 5, version: int | None = None,  # noqa: A002
    ) -> list[LocalExecution]:  # fmt: skip
        """Accept an execution for each input, in this order; any number, a thousand in one transaction.

        Every input is checked before the first is accepted. Of each thousand, all are accepted or none: if the store
        goes away after the first, those are accepted and `Unavailable` is raised.
        """
        service, wanted = self.service, await self._version(workflow, version)
        given = _listed(inputs)
        expect, started = service.engine.watching.expect, []
        async for accepted in start_many(service, wanted, given, vars or {}, priority):
            started += [LocalExecution(service, each, expect(each)) for each in accepted]
        return started

    async def _version(self, workflow: str | Source, number: int | None) -> Version:
        """The version to start; one that was the last saved here under its name is not saved again."""
        if isinstance(workflow, str):
            return await self._named(workflow, number)
        if number is not None:
            raise TypeError("version is for a workflow that is named; a document is the version it is saved as")
        if isinstance(workflow, Workflow):
            known = self._known.get(workflow)
            if known is not None and known[0] == workflow.revision and self.service.document_cache.is_last(known[1]):
                return known[1]
            revision, document = workflow.revision, self.document_of(workflow)
            saved = await self.service.save(document)
            self._known[workflow] = (revision, saved)
            return saved
        return await self.service.save(self.document_of(workflow))

    async def _named(self, name: str, number: int | None) -> Version:
        found = await self.service.workflow_cache.get(name)
        if found is None:
            raise NotFound(f"there is no workflow {name!r}; Workflow.load reads one from a file")
        return await self.service.engine.versions.startable(found, number)

    def document_of(self, workflow: Source) -> dict[str, JSON]:
        """The document to be checked, with the functions of a workflow made known before."""
        require_workflow(workflow)
        if not isinstance(workflow, Workflow):
            return workflow if isinstance(workflow, dict) else dict(workflow)
        for each in workflow.node_types:
            known = self.service.types.get(each.name)
            if known is None:
                self.service.types.register(each)
                self.service.engine.publishing.learnt(self.service.workspace, each.name)
            elif known is not each:
                raise RopewalkError(f"two different node types are named {each.name!r}; rename one of them")
        return workflow.document()

    # Executions

    def execution(self, execution: str) -> LocalExecution:
        """An execution by its id."""
        return LocalExecution(self.service, execution)

    async def executions(self, *, workflow: str | None = None, state: str | None = None, trigger: str | None = None,
                         since: str | None = None, until: str | None = None,
                         limit: int | None = None) -> "AsyncIterator[ExecutionSummary]":  # fmt: skip
        """Executions, the newest first; `workflow` is an id or a name, times are RFC 3339."""
        store, workspace = self.service.store, self.service.workspace
        wanted = executions.Filter(
            await id_of_workflow(self.service, workflow),
            word(ExecutionState, state, "state"),
            word(TriggerType, trigger, "trigger"),
            micros(since, "since", 0),
            micros(until, "until", executions.ANY.until),
        )

        async def read(before: str, size: int) -> list[Json]:
            return await reading.list_executions(store, workspace, wanted, before=before, limit=size)

        async for each in paged(read, executions.NEWEST, limit, id_of):
            yield each

    async def queue_item(self, execution: str) -> "QueueItem":
        """Where an accepted start stands."""
        return cast("QueueItem", await queue_item(self.service.store, self.service.workspace, execution))

    async def signal(self, execution: str, name: str, payload: JSON = None) -> None:
        """Tell an execution something it waits for."""
        await self.service.signal(execution, name, payload)

    async def publish_event(self, subject: str, payload: JSON = None) -> int:
        """Tell every execution that waits for such an event; how many waits it ended."""
        return await self.service.publish(subject, payload)

    async def publish(self, subject: str, payload: JSON = None) -> int:
        """The same as `publish_event`."""
        return await self.publish_event(subject, payload)


def require_workflow(given: object) -> None:
    if not isinstance(given, Workflow | Mapping):
        raise TypeError(f"a workflow or its document is needed, not {given!r}; Workflow.load reads one from a file")


def _listed(inputs: Iterable[JSON]) -> list[JSON]:
    if isinstance(inputs, str | bytes | Mapping):
        raise TypeError("inputs must be a list with one input for each execution")
    return list(inputs)
