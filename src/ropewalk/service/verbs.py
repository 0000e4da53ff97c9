"""The verbs: save and start workflows, tell executions things, work off dead letters.

Everything here is durable when it returns, and a refused request has changed nothing.
"""

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import uuid_utils

from ropewalk.core.canonical import JSON, json_problems
from ropewalk.core.definition import Definition, Limits, parse_definition
from ropewalk.core.errors import Conflict, InvalidDefinition, InvalidInput, InvalidTransition, NotFound, Problem
from ropewalk.core.events import Event
from ropewalk.core.plan import compile_plan
from ropewalk.core.rerun import carry_over
from ropewalk.core.signals import Cancel, Decide, Fix, GiveUp, Pause, Requeue, Resume, Retry, Signal, Tell
from ropewalk.core.state import Resolution
from ropewalk.engines.base import Ended, StartRequest, Version
from ropewalk.engines.native.engine import NativeEngine
from ropewalk.engines.native.publishing import publish
from ropewalk.nodes.base import Registry
from ropewalk.service import reading
from ropewalk.store import audit, dlq, workflows
from ropewalk.store.rows import AuditEntry, DeadLetterResolution
from ropewalk.store.sqlite import SqliteStore

HIGHEST_PRIORITY = 9
_SUBJECT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def require_json(**given: JSON) -> None:
    """Refuses, naming every place, what no log could hold."""
    problems = [problem for name, value in given.items() for problem in json_problems(value, (name,))]
    if problems:
        raise InvalidInput(problems)


def _refuse_unserved(definition: Definition) -> None:
    """What a definition may ask for and one process on one file cannot give is refused, not ignored."""
    problems = [
        Problem(("nodes", index, field), f"the embedded engine has no {what}; leave the field out")
        for index, node in enumerate(definition.nodes)
        for field, what in (("pool", "worker pools"), ("credentials", "credentials"))
        if field in node
    ]
    if problems:
        raise InvalidDefinition(problems)


class Service:
    """What may be asked of a Ropewalk, by whoever asks."""

    def __init__(self, store: SqliteStore, engine: NativeEngine, types: Registry, env: Mapping[str, str],
                 limits: Limits, workspace: str = "default") -> None:  # fmt: skip
        self.store = store
        self.engine = engine
        self.types = types
        self.workspace = workspace
        self._env = env
        self._limits = limits
        # The latest version of each name, so that whoever saves before every start need not wait for the disk.
        self._saved: dict[str, Version] = {}

    # Workflows

    async def save(self, document: JSON, by: str = "local") -> Version:
        """Keep a definition as the next version of its name and publish it; the same content is the same version."""
        definition = parse_definition(document, self.types.infos(), self._limits)
        _refuse_unserved(definition)
        known = self._saved.get(definition.name)
        if known is not None and known.hash == definition.content_hash:
            return known
        draft = workflows.Draft(
            self.workspace, definition.name, definition.canonical().decode(), definition.content_hash, by
        )
        async with self.store.transaction() as tx:
            saved = await workflows.save(tx, draft, str(uuid_utils.uuid7()), self.store.now())
            await workflows.publish(tx, saved.workflow, saved.version)
        version = Version(saved.workflow, saved.version, draft.hash, compile_plan(definition))
        self.engine.memory.keep(version)
        self._saved[draft.name] = version
        return version

    # Executions

    async def start(self, version: Version, input: JSON = None, vars: Mapping[str, JSON] | None = None,  # noqa: A002
                    actor: str = "local", priority: int = 5) -> str:  # fmt: skip
        """Accept an execution; its id. It survives any crash from here on."""
        request = self._request(version, input, vars or {}, actor, priority)
        return await self.engine.start(request)

    def _request(self, version: Version, value: JSON, overrides: Mapping[str, JSON], actor: str,
                 priority: int) -> StartRequest:  # fmt: skip
        definition = version.plan.definition
        unknown = [name for name in overrides if name not in definition.vars]
        if unknown:
            raise InvalidInput([Problem(("vars", name), "the workflow has no such variable") for name in unknown])
        if not 0 <= priority <= HIGHEST_PRIORITY:
            raise InvalidInput([Problem(("priority",), f"must be from 0 to {HIGHEST_PRIORITY}")])
        require_json(vars=dict(overrides))
        definition.check_input(value)
        return StartRequest(
            version=version,
            workspace=self.workspace,
            input=value,
            vars=dict(overrides),
            env=self._env,
            priority=priority,
            actor=actor,
        )

    async def ended(self, execution: str) -> Ended:
        return await self.engine.ended(execution)

    def follow(self, execution: str, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        """Every event after the given number, those recorded and those to come, until the end."""
        return self.engine.follow(execution, after)

    async def cancel(self, execution: str, by: str = "local", reason: str | None = None) -> bool:
        return await self._tell(execution, Cancel(by, reason), by)

    async def pause(self, execution: str, by: str = "local", reason: str | None = None) -> bool:
        return await self._tell(execution, Pause(by, reason), by)

    async def resume(self, execution: str, by: str = "local") -> bool:
        return await self._tell(execution, Resume(by), by)

    async def retry(self, execution: str, by: str = "local") -> bool:
        return await self._tell(execution, Retry(by), by)

    async def signal(self, execution: str, name: str, payload: JSON = None, by: str = "local") -> bool:
        require_json(name=name, payload=payload)
        return await self._tell(execution, Tell(name, payload), by)

    async def publish(self, subject: str, payload: JSON = None) -> int:
        """Tell every execution that waits for such an event; how many were. Durable when it returns."""
        problems = json_problems(payload, ("payload",))
        if not _SUBJECT.fullmatch(subject):
            problems.append(Problem(("subject",), "must be words with dots between them, like order.paid"))
        if problems:
            raise InvalidInput(problems)
        return await publish(self.engine, self.workspace, subject, payload)

    async def decide(self, execution: str, node: str, *, approved: bool, by: str = "local", payload: JSON = None,
                     item: int | None = None) -> bool:  # fmt: skip
        require_json(payload=payload)
        return await self._tell(execution, Decide(node, approved, by, payload, item), by)

    async def give_up(self, execution: str, node: str, item: int | None = None, by: str = "local",
                      reason: str | None = None) -> bool:  # fmt: skip
        return await self._tell(execution, GiveUp(node, by, item, reason), by)

    async def _tell(self, execution: str, signal: Signal, by: str) -> bool:
        return await self.engine.tell(execution, signal, by)

    async def rerun(self, execution: str, node: str, by: str = "local", version: int | None = None) -> str:
        """A new execution that keeps every result but those of `node` and of what is behind it."""
        story = await reading.recorded(self.store, execution)
        accepted = story.accepted
        wanted = await self.engine.memory.version(accepted.workflow, version or accepted.version)
        carried = carry_over(story.folded(), node, wanted.plan, self.store.now())
        return await self._again(story, wanted, by, (carried,))

    async def replay(self, execution: str, by: str = "local") -> str:
        """A new execution of the same version with the same input."""
        story = await reading.recorded(self.store, execution)
        if not story.folded().is_ended:
            raise InvalidTransition("cannot replay: the execution has not ended")
        version = await self.engine.memory.version(story.accepted.workflow, story.accepted.version)
        return await self._again(story, version, by, ())

    async def _again(self, story: reading.Recorded, version: Version, by: str, carried: tuple[Any, ...]) -> str:
        accepted = story.accepted
        request = StartRequest(
            version=version,
            workspace=accepted.workspace,
            input=accepted.input,
            vars=accepted.vars,
            env=accepted.env,
            trigger=accepted.trigger,
            payload=accepted.payload,
            priority=accepted.priority,
            actor=by,
            carried=carried,
        )
        return await self.engine.start(request)

    # Dead letters

    async def requeue(self, letter: str, overrides: dict[str, JSON] | None = None, by: str = "local") -> str:
        """Try a dead letter again, with other inputs if wanted; the id of its execution, which goes on."""
        require_json(overrides=overrides)
        found = await self._pending_letter(letter)
        await self._tell(found.execution, Requeue(found.node, by, found.item, overrides), by)
        return found.execution

    async def fix(self, letter: str, output: JSON, by: str = "local", ports: tuple[str, ...] = ()) -> str:
        """Supply the output a dead letter failed to give; the id of its execution, which goes on."""
        require_json(output=output, ports=list(ports))
        found = await self._pending_letter(letter)
        await self._tell(found.execution, Fix(found.node, by, output, ports, found.item), by)
        return found.execution

    async def discard(self, letter: str, by: str = "local", notes: str | None = None) -> None:
        """Close a dead letter without doing anything about it."""
        await self._pending_letter(letter)
        resolution = DeadLetterResolution(Resolution.DISCARDED, self.store.now(), by, notes, letter)
        entry = AuditEntry(
            str(uuid_utils.uuid7()), resolution.resolved_at, self.workspace, by, "discard", letter, None, None, notes
        )
        async with self.store.transaction() as tx:
            if not await dlq.resolve(tx, resolution):
                raise Conflict(f"dead letter {letter} was resolved by someone else just now")
            await audit.append(tx, entry)

    async def _pending_letter(self, letter: str) -> dlq.DeadLetter:
        found = await dlq.get(self.store, self.workspace, letter)
        if found is None:
            raise NotFound(f"there is no dead letter {letter}")
        if found.resolution != Resolution.PENDING:
            raise Conflict(f"dead letter {letter} was {found.resolution} by {found.reviewed_by or 'someone'} already")
        return found
