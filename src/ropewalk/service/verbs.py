"""The verbs: save and start workflows, tell executions things, work off dead letters.

Everything here is durable when it returns, and a refused request has changed nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uuid_utils
from msgspec import Struct

from ropewalk.core.canonical import JSON
from ropewalk.core.definition import Definition, Limits, parse_definition
from ropewalk.core.errors import InvalidInput, InvalidTransition, NotFound, Problem, Unavailable, Unfinished
from ropewalk.core.events import Event, NodesCarriedOver
from ropewalk.core.plan import compile_plan
from ropewalk.core.rerun import carry_over
from ropewalk.core.signals import Decide, Discard, Fix, PersonSignal, Requeue, Retry, Tell
from ropewalk.core.subject import LONGEST_NAME
from ropewalk.engines.base import AT_ONCE, WORKFLOWS, Ended, Engine, StartRequest, Version
from ropewalk.engines.versions import require_startable
from ropewalk.nodes.base import Facilities, Registry
from ropewalk.service import breakers, reading
from ropewalk.service.credential_checks import require_credentials
from ropewalk.service.dead_letters import DeadLetters, require_json
from ropewalk.service.definition_checks import require_known_rate_limits, require_served
from ropewalk.service.document_cache import DocumentCache
from ropewalk.service.node_types import LoadedNodeTypes, NodeTypeLoader
from ropewalk.service.retention import START, Policy, Position, Swept, sweep
from ropewalk.service.starting import MOST_PROBLEMS, KeysUnderWay, Once, answered, check_inputs, said, start_all
from ropewalk.service.telling import SignalVerbs, Told
from ropewalk.service.triggers.backlog import Backlog
from ropewalk.service.triggers.declaring import declare
from ropewalk.service.triggers.events import EventTriggers
from ropewalk.service.triggers.managing import HasTriggers
from ropewalk.service.workflow_cache import WorkflowCache
from ropewalk.store import retention, workflows
from ropewalk.store.access import Store

if TYPE_CHECKING:
    from ropewalk.engines.credentials import StoredCredentials
    from ropewalk.service.credentials import CredentialVerbs

HIGHEST_PRIORITY = 9


class NewStart(Struct, frozen=True):
    """One of several executions to accept together."""

    version: Version
    input: JSON = None
    vars: Mapping[str, JSON] = {}
    priority: int = 5


class Service(SignalVerbs, HasTriggers):
    """What callers may ask of one workspace of a Ropewalk."""

    def __init__(self, store: Store, engine: Engine, types: Registry, env: Mapping[str, str],
                 limits: Limits, workspace: str = "default", loader: NodeTypeLoader | None = None,
                 keys: KeysUnderWay | None = None) -> None:  # fmt: skip
        self.store = store
        self.engine = engine
        self.types = types
        self.workspace = workspace
        self.dead_letters = DeadLetters(store, engine.tell, workspace, types)
        self.env = env
        self._limits = limits
        self._loader = loader
        self.keys_under_way: KeysUnderWay = {} if keys is None else keys
        self.workflow_cache = WorkflowCache(store, workspace, lambda: engine.workflow_changes)
        self.document_cache = DocumentCache(self._save)
        self.event_triggers = EventTriggers(store, lambda: engine.workflow_changes)
        self.backlog = Backlog(store)
        self.queue_troubles: dict[str, str] = {}  # what keeps this server from queues now, by the trigger's id
        # There are none where the wiring gives none.
        self.stored_credentials: StoredCredentials | None = None
        self.facilities: Facilities | None = None

    def of(self, workspace: str) -> "Service":
        """The same for another workspace."""
        if workspace == self.workspace:
            return self  # what it remembers of its workflows is remembered once
        known = (self._loader, self.keys_under_way)
        made = Service(self.store, self.engine, self.types, self.env, self._limits, workspace, *known)
        made.stored_credentials, made.facilities = self.stored_credentials, self.facilities
        made.event_triggers, made.backlog, made.queue_troubles = self.event_triggers, self.backlog, self.queue_troubles
        return made

    @property
    def credentials(self) -> "CredentialVerbs":
        """What is done with the credentials of the workspace."""
        from ropewalk.service.credentials import CredentialVerbs  # here, since most commands have nothing to do with it

        if self.stored_credentials is None:
            raise Unavailable("there are no credentials here")
        return CredentialVerbs(self.store, self.stored_credentials, self.workspace, self.facilities)

    async def manage_credentials(self, request: str, about: dict[str, JSON], by: str = "local") -> JSON:
        """Carry out what a command asks about credentials; see `service/credential_requests.py`."""
        from ropewalk.service.credential_requests import carried_out  # here, as above

        return await carried_out(self.credentials, request, about, by)

    # Workflows

    def check(self, document: JSON) -> Definition:
        """The definition a document describes; InvalidDefinition names everything that keeps it from running here."""
        # What exactly is wrong with a package is for the operator of the server, not for each author of a workflow.
        missing = dict.fromkeys(self.types.missing, "`ropewalk doctor` says why")
        definition = parse_definition(document, self.types.infos(), self._limits, missing)
        require_served(definition, has_pools=self.store.is_shared or self.engine.leasing.is_open)
        require_known_rate_limits(definition, self.engine.rate_limits.known(self.workspace))
        return definition

    def draft(self, definition: Definition, by: str, bounded_by: str | None = None) -> workflows.Draft:
        """What is kept of a definition that was checked."""
        canonical = definition.canonical().decode()
        return workflows.Draft(self.workspace, definition.name, canonical, definition.content_hash, by, bounded_by)

    def forget(self, name: str) -> None:
        """A workflow was changed: it is looked up again, and what was saved under this name may not be published."""
        self.document_cache.forget(name)
        self.changed()

    def changed(self) -> None:
        """A workflow or a trigger was changed: this server and the others look again."""
        self.workflow_cache.forget()
        self.event_triggers.forget()
        self.store.hint(WORKFLOWS)

    async def learn(self, modules: tuple[str, ...], folder: str) -> LoadedNodeTypes:
        """Take the node types of these modules, looked for in `folder` too; a process that takes none says so."""
        if self._loader is not None:
            await self._loader.take(modules, folder, self.engine.publishing, self.workspace)
        return LoadedNodeTypes(modules if self._loader is None else (), tuple(self.types.infos()))

    async def save(self, document: JSON, by: str = "local") -> Version:
        """Keep a definition as the next version of its name and publish it; the same content is the same version.

        A document that was the last one saved here under its name is neither checked nor saved again.
        """
        return self.document_cache.find(document) or await self.document_cache.save(document, by)

    async def _save(self, document: JSON, by: str) -> Version:
        definition = self.check(document)
        known = self.document_cache.latest(definition.name)
        if known is not None and known.hash == definition.content_hash:
            return known
        await require_credentials(self.store, self.workspace, definition, self.types)
        draft = self.draft(definition, by)
        async with self.store.transaction() as tx:
            saved = await workflows.save(tx, draft, str(uuid_utils.uuid7()), self.store.now())
            await workflows.publish(tx, saved.workflow, saved.version)
            if definition.triggers or not saved.is_new or saved.version > 1:
                held = await workflows.lock(tx, self.workspace, draft.name)
                await declare(tx, held, saved.version, by, self.store.now())
        version = Version(saved.workflow, saved.version, draft.hash, compile_plan(definition))
        self.engine.versions.keep(version)
        self.changed()
        return version

    async def publish_version(self, workflow: str, version: int, by: str = "local") -> bool:
        """Starts that name no version take this one of the workflow of this id; whether they did not before."""
        from ropewalk.service import definitions  # here: that module is about this class

        found = await workflows.get(self.store, self.workspace, workflow)
        if found is None:
            raise NotFound(f"there is no workflow {workflow!r}")
        return await definitions.publish(self, found, version, by)

    # Executions

    async def start(self, version: Version, input: JSON = None, vars: Mapping[str, JSON] | None = None,  # noqa: A002
                    actor: str = "local", priority: int = 5, key: str | Once | None = None,
                    trace: str | None = None, bounded_by: tuple[str, ...] = (),
                    execution: str | None = None) -> str:  # fmt: skip
        """Accept an execution; its id. It survives any crash from here on. Once per `key`, if there is one.

        `trace` is the trace it continues, as `read_traceparent` gives it; `bounded_by` is the actor, if that one
        reaches less than the whole workspace; `execution` is the id it is to have, if the caller has made one.
        """
        request = self.request(version, input, vars or {}, actor, priority, trace, bounded_by, execution)
        return await self.accept(request, key)

    async def accept(self, request: StartRequest, key: str | Once | None = None) -> str:
        """The same for a request that was made before."""
        check = request.version.plan.definition.check_input
        try:
            check(request.input, is_brief=True)
        except Unfinished:
            await self.engine.computing.of_caller(self.workspace, request.actor, lambda: check(request.input))
        if key is None:
            return await self.engine.start(request)
        once = key if isinstance(key, Once) else Once(key, [said(request)])
        return (await start_all(self.engine, self.keys_under_way, [request], once))[0]

    async def start_batch(
        self, starts: Sequence[NewStart], actor: str = "local", once: Once | None = None, trace: str | None = None,
        bounded_by: tuple[str, ...] = (),
    ) -> list[str]:  # fmt: skip
        """Accept up to a thousand executions, all or none; their ids in order. Refused ones are named, each of them."""
        wanted: dict[int, StartRequest] = {}
        problems: list[Problem] = []
        for place, start in enumerate(starts):
            try:
                about = (actor, start.priority, trace, bounded_by)
                wanted[place] = self.request(start.version, start.input, start.vars, *about)
            except InvalidInput as error:
                problems += [Problem(("starts", place, *each.path), each.message) for each in error.problems]
        problems += await check_inputs(self.engine.computing, wanted)
        if problems:
            raise InvalidInput(sorted(problems, key=lambda each: each.path[1])[:MOST_PROBLEMS])
        requests = list(wanted.values())
        try:
            return await start_all(self.engine, self.keys_under_way, requests, once)
        except InvalidInput as error:
            raise InvalidInput(await self._unacceptable(requests) or error.problems) from error

    async def _unacceptable(self, requests: Sequence[StartRequest]) -> list[Problem]:
        """Which of them the engine does not take, and why; asked once it is known that there are some."""
        problems: list[Problem] = []
        for place, request in enumerate(requests):
            if place % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
            try:
                request.concurrency_key()
            except InvalidInput as error:
                problems += [Problem(("starts", place, *each.path), each.message) for each in error.problems]
        return problems[:MOST_PROBLEMS]

    async def started(self, once: Once) -> list[str] | None:
        """What a request was answered before under its key, if it was."""
        return await answered(self.store, self.workspace, once, self.store.now())

    def request(self, version: Version, value: JSON, overrides: Mapping[str, JSON], actor: str,
                 priority: int, trace: str | None, bounded_by: tuple[str, ...],
                 execution: str | None = None) -> StartRequest:  # fmt: skip
        """What the engine is asked for; InvalidInput if there is no such variable, or no such priority."""
        definition = version.plan.definition
        if unknown := [name for name in overrides if name not in definition.vars]:
            raise InvalidInput([Problem(("vars", name), "the workflow has no such variable") for name in unknown])
        if not 0 <= priority <= HIGHEST_PRIORITY:
            raise InvalidInput([Problem(("priority",), f"must be from 0 to {HIGHEST_PRIORITY}")])
        if overrides:
            require_json(vars=dict(overrides))
        return StartRequest(
            version=version,
            workspace=self.workspace,
            input=value,
            vars=dict(overrides),
            env=self.env,
            priority=priority,
            actor=actor,
            trace=trace,
            bounded_by=bounded_by,
            execution=execution,
        )

    async def ended(self, execution: str) -> Ended:
        return await self.engine.watching.ended(execution)

    def follow(self, execution: str, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        """Every event after the given number, those recorded and those to come, until the end."""
        return self.engine.watching.follow(execution, after)

    async def tell(self, execution: str | None, signal: PersonSignal, by: str) -> Told:
        match signal:
            case Requeue(letter=str(letter)):
                return Told(await self.dead_letters.requeue(letter, signal.overrides, by), True)
            case Fix(letter=str(letter)):
                return Told(await self.dead_letters.fix(letter, signal.output, by, signal.ports), True)
            case Discard(letter):
                return Told(await self.dead_letters.discard(letter, by, signal.reason), True)
        if execution is None:
            raise InvalidInput([Problem(("execution",), "must be named, unless the signal names a dead letter")])
        match signal:
            case Retry():
                await self._hold(execution)
            case Tell(name, payload):
                require_json(name=name, payload=payload)
                if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
                    raise InvalidInput([Problem(("name",), f"must be a text of 1 to {LONGEST_NAME} characters")])
            case Decide():
                require_json(payload=signal.payload)
        return Told(execution, await self.engine.tell(execution, signal, by))

    async def _hold(self, execution: str) -> None:
        # What has been over for long may be removed at any moment; from here on it stays.
        async with self.store.transaction() as tx:
            if not await retention.hold(tx, execution, self.store.now()):
                raise NotFound(f"there is no execution {execution}")

    async def reset_breaker(self, target: str, by: str = "local") -> bool:
        """Close a breaker by hand, and let the attempts that it holds go on; False if it was closed."""
        return await breakers.reset(self.engine, self.workspace, target, by)

    async def rerun(self, execution: str, node: str, by: str = "local", version: int | None = None,
                    bounded_by: tuple[str, ...] = ()) -> str:  # fmt: skip
        """A new execution that keeps every result but those of `node` and of what is behind it."""
        story = await reading.recorded(self.store, execution)
        accepted = story.accepted
        wanted = await self.engine.versions.version(accepted.workflow, version or accepted.version)
        carried = carry_over(story.folded(), node, wanted.plan, self.store.now())
        return await self._again(story, wanted, by, (carried,), bounded_by)

    async def replay(self, execution: str, by: str = "local", bounded_by: tuple[str, ...] = ()) -> str:
        """A new execution of the same version with the same input; it knows whose output its own is compared with."""
        story = await reading.outlined(self.store, execution)
        if not story.folded().is_ended:
            raise InvalidTransition("cannot replay: the execution has not ended")
        version = await self.engine.versions.version(story.accepted.workflow, story.accepted.version)
        carried = (NodesCarriedOver(self.store.now(), execution, {}),)
        return await self._again(story, version, by, carried, bounded_by)

    async def _again(self, story: reading.Recorded, version: Version, by: str, carried: tuple[Any, ...],
                     bounded_by: tuple[str, ...]) -> str:  # fmt: skip
        accepted = story.accepted
        workflow = await workflows.get(self.store, accepted.workspace, accepted.workflow)
        if workflow is not None:
            require_startable(workflow)
        request = StartRequest(
            version=version,
            workspace=accepted.workspace,
            input=accepted.input,
            vars=accepted.vars,
            # A bounded execution was given none, which says nothing of one that is not.
            env=self.env if accepted.bounded_by else accepted.env,
            trigger=accepted.trigger,
            payload=accepted.payload,
            priority=accepted.priority,
            actor=by,
            carried=carried,
            bounded_by=bounded_by,
        )
        return await self.engine.start(request)

    # Dead letters

    async def note(self, letter: str, text: str, by: str = "local") -> None:
        await self.dead_letters.note(letter, text, by)

    # Retention

    async def sweep(self, policy: Policy, position: Position = START, by: str = "local") -> Swept:
        """Remove some of what is old by this policy, from there on; how much, and where to go on."""
        about, custody = (self.workspace, by), self.engine.custody
        now, step = self.store.now(), policy.step
        return await sweep(self.store, now, policy, position, limit=step, on_behalf=about, custody=custody)
