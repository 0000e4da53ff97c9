"""The verbs: save and start workflows, tell executions things, work off dead letters.

Everything here is durable when it returns, and a refused request has changed nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

import uuid_utils
from msgspec import Struct

from ropewalk.core.canonical import JSON, json_problems
from ropewalk.core.definition import Definition, Limits, parse_definition
from ropewalk.core.errors import InvalidDefinition, InvalidInput, InvalidTransition, NotFound, Problem, Unfinished
from ropewalk.core.events import Event, NodesCarriedOver
from ropewalk.core.plan import compile_plan
from ropewalk.core.rerun import carry_over
from ropewalk.core.signals import Cancel, Decide, Discard, GiveUp, Pause, Resume, Retry, Signal, Tell
from ropewalk.core.subject import LONGEST_NAME, is_subject
from ropewalk.engines.base import AT_ONCE, WORKFLOWS, Ended, Engine, StartRequest, Version
from ropewalk.engines.versions import require_startable
from ropewalk.nodes.base import Registry
from ropewalk.service import breakers, reading
from ropewalk.service.dead_letters import DeadLetters, require_json
from ropewalk.service.known import KnownWorkflows
from ropewalk.service.learning import Learning, Learnt
from ropewalk.service.retention import START, Policy, Position, Swept, sweep
from ropewalk.service.saved import SavedDocuments
from ropewalk.service.starting import MOST_PROBLEMS, KeysUnderWay, Once, answered, check_inputs, said, start_all
from ropewalk.store import retention, workflows
from ropewalk.store.access import Store

HIGHEST_PRIORITY = 9


class NewStart(Struct, frozen=True):
    """One of several executions to accept together."""

    version: Version
    input: JSON = None
    vars: Mapping[str, JSON] = {}
    priority: int = 5


def _refuse_unserved(definition: Definition, *, has_pools: bool) -> None:
    """What a definition may ask for and this engine cannot give is refused, not ignored."""
    missing = {"credentials": "there are no credentials yet"}
    if not has_pools:
        missing["pool"] = "one process on one file has no worker pools, and nobody else can reach it"
    problems = [
        Problem(("nodes", index, field), f"{why}; leave the field out")
        for index, node in enumerate(definition.nodes)
        for field, why in missing.items()
        if field in node
    ]
    if problems:
        raise InvalidDefinition(problems)


def _refuse_unknown_limits(definition: Definition, known: Collection[str]) -> None:
    """A rate limit that is named and not known is a slip of the pen: its runs would wait until there is one."""
    there_are = f"there are {', '.join(sorted(known)[:MOST_PROBLEMS])}" if known else "there are none"
    problems = [
        Problem(("nodes", index, "rateLimit"), f"there is no rate limit {node['rateLimit']!r}; {there_are}")
        for index, node in enumerate(definition.nodes)
        if node.get("rateLimit", "") and node["rateLimit"] not in known
    ]
    if problems:
        raise InvalidDefinition(problems[:MOST_PROBLEMS])


class Service:
    """What may be asked of a Ropewalk, by whoever asks."""

    def __init__(self, store: Store, engine: Engine, types: Registry, env: Mapping[str, str],
                 limits: Limits, workspace: str = "default", learning: Learning | None = None,
                 keys: KeysUnderWay | None = None) -> None:  # fmt: skip
        self.store = store
        self.engine = engine
        self.types = types
        self.workspace = workspace
        self.letters = DeadLetters(store, self._tell, workspace, types)
        self._env = env
        self._limits = limits
        self._learning = learning
        self.keys_under_way: KeysUnderWay = {} if keys is None else keys
        self.known = KnownWorkflows(store, workspace, lambda: engine.workflow_changes)
        self.saved = SavedDocuments(self._save)

    def of(self, workspace: str) -> "Service":
        """The same for another workspace."""
        if workspace == self.workspace:
            return self  # what it remembers of its workflows is remembered once
        known = (self._learning, self.keys_under_way)
        return Service(self.store, self.engine, self.types, self._env, self._limits, workspace, *known)

    # Workflows

    def check(self, document: JSON) -> Definition:
        """The definition a document describes; InvalidDefinition names everything that keeps it from running here."""
        # What exactly is wrong with a package is for those who run the server, not for everyone who saves a workflow.
        missing = dict.fromkeys(self.types.missing, "`ropewalk doctor` says why")
        definition = parse_definition(document, self.types.infos(), self._limits, missing)
        _refuse_unserved(definition, has_pools=self.store.is_shared or self.engine.leasing.is_open)
        _refuse_unknown_limits(definition, self.engine.rate_limits.known(self.workspace))
        return definition

    def draft(self, definition: Definition, by: str, bounded_by: str | None = None) -> workflows.Draft:
        """What is kept of a definition that was checked."""
        canonical = definition.canonical().decode()
        return workflows.Draft(self.workspace, definition.name, canonical, definition.content_hash, by, bounded_by)

    def forget(self, name: str) -> None:
        """A workflow was changed: it is looked up again, and what was saved under this name may not be published."""
        self.saved.forget(name)
        self._changed()

    def _changed(self) -> None:
        self.known.forget()
        self.store.hint(WORKFLOWS)

    async def learn(self, modules: tuple[str, ...], folder: str) -> Learnt:
        """Take the node types of these modules, looked for in `folder` too; a process that takes none says so."""
        if self._learning is not None:
            await self._learning.take(modules, folder, self.engine.publishing, self.workspace)
        return Learnt(modules if self._learning is None else (), tuple(self.types.infos()))

    async def save(self, document: JSON, by: str = "local") -> Version:
        """Keep a definition as the next version of its name and publish it; the same content is the same version.

        A document that was the last one saved here under its name is neither checked nor saved again.
        """
        return self.saved.find(document) or await self.saved.save(document, by)

    async def _save(self, document: JSON, by: str) -> Version:
        definition = self.check(document)
        known = self.saved.latest(definition.name)
        if known is not None and known.hash == definition.content_hash:
            return known
        draft = self.draft(definition, by)
        async with self.store.transaction() as tx:
            saved = await workflows.save(tx, draft, str(uuid_utils.uuid7()), self.store.now())
            await workflows.publish(tx, saved.workflow, saved.version)
        version = Version(saved.workflow, saved.version, draft.hash, compile_plan(definition))
        self.engine.versions.keep(version)
        self._changed()
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
        request = self._request(version, input, vars or {}, actor, priority, trace, bounded_by, execution)
        definition = version.plan.definition
        try:
            definition.check_input(input, is_brief=True)
        except Unfinished:
            await self.engine.computing.of_caller(self.workspace, actor, lambda: definition.check_input(input))
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
                wanted[place] = self._request(start.version, start.input, start.vars, *about)
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

    def _request(self, version: Version, value: JSON, overrides: Mapping[str, JSON], actor: str,
                 priority: int, trace: str | None, bounded_by: tuple[str, ...],
                 execution: str | None = None) -> StartRequest:  # fmt: skip
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
            env=self._env,
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

    async def cancel(self, execution: str, by: str = "local", reason: str | None = None) -> bool:
        return await self._tell(execution, Cancel(by, reason), by)

    async def pause(self, execution: str, by: str = "local", reason: str | None = None) -> bool:
        return await self._tell(execution, Pause(by, reason), by)

    async def resume(self, execution: str, by: str = "local") -> bool:
        return await self._tell(execution, Resume(by), by)

    async def retry(self, execution: str, by: str = "local") -> bool:
        # What has been over for long may be removed at any moment; from here on it stays.
        async with self.store.transaction() as tx:
            if not await retention.hold(tx, execution, self.store.now()):
                raise NotFound(f"there is no execution {execution}")
        return await self._tell(execution, Retry(by), by)

    async def signal(self, execution: str, name: str, payload: JSON = None, by: str = "local") -> bool:
        require_json(name=name, payload=payload)
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
            raise InvalidInput([Problem(("name",), f"must be a text of 1 to {LONGEST_NAME} characters")])
        return await self._tell(execution, Tell(name, payload), by)

    async def publish(self, subject: str, payload: JSON = None, by: str = "local") -> int:
        """Tell every execution that waits for such an event; how many were. Durable when it returns."""
        problems = json_problems(payload, ("payload",))
        if not isinstance(subject, str) or not is_subject(subject):
            words = f"must be words with dots between them, like order.paid, of at most {LONGEST_NAME} characters"
            problems.append(Problem(("subject",), words))
        if problems:
            raise InvalidInput(problems)
        return await self.engine.publishing.publish(self.workspace, subject, payload, by)

    async def reset_breaker(self, target: str, by: str = "local") -> bool:
        """Close a breaker by hand, and let the attempts that it holds go on; False if it was closed."""
        return await breakers.reset(self.engine, self.workspace, target, by)

    async def decide(self, execution: str, node: str, *, approved: bool, by: str = "local", payload: JSON = None,
                     item: int | None = None) -> bool:  # fmt: skip
        require_json(payload=payload)
        return await self._tell(execution, Decide(node, approved, by, payload, item), by)

    async def give_up(self, execution: str, node: str, item: int | None = None, by: str = "local",
                      reason: str | None = None) -> bool:  # fmt: skip
        return await self._tell(execution, GiveUp(node, by, item, reason), by)

    async def _tell(self, execution: str, signal: Signal | Discard, by: str) -> bool:
        return await self.engine.tell(execution, signal, by)

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
            env=self._env if accepted.bounded_by else accepted.env,
            trigger=accepted.trigger,
            payload=accepted.payload,
            priority=accepted.priority,
            actor=by,
            carried=carried,
            bounded_by=bounded_by,
        )
        return await self.engine.start(request)

    # Dead letters

    async def requeue(self, letter: str, overrides: dict[str, JSON] | None = None, by: str = "local") -> str:
        return await self.letters.requeue(letter, overrides, by)

    async def fix(self, letter: str, output: JSON, by: str = "local", ports: tuple[str, ...] = ()) -> str:
        return await self.letters.fix(letter, output, by, ports)

    async def discard(self, letter: str, by: str = "local", notes: str | None = None) -> None:
        await self.letters.discard(letter, by, notes)

    async def note(self, letter: str, text: str, by: str = "local") -> None:
        await self.letters.note(letter, text, by)

    # Retention

    async def sweep(self, policy: Policy, position: Position = START, by: str = "local") -> Swept:
        """Remove some of what is old by this policy, from there on; how much, and where to go on."""
        about, custody = (self.workspace, by), self.engine.custody
        now, step = self.store.now(), policy.step
        return await sweep(self.store, now, policy, position, limit=step, on_behalf=about, custody=custody)
