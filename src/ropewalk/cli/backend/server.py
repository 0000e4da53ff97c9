"""A server in place of a store: the same looks and verbs, asked for over HTTP."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, Final, cast

import msgspec

from ropewalk.cli.backend.profiles import Server, token_for
from ropewalk.cli.backend.queries import Json, Search
from ropewalk.client import AsyncClient
from ropewalk.client.answers import DeadLetterProgress, Worker
from ropewalk.client.dlq import STOPPED
from ropewalk.client.refusals import path_of
from ropewalk.core import log
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import Invalid, InvalidDefinition, NotFound, Problem, RopewalkError
from ropewalk.core.events import Event
from ropewalk.core.instant import EPOCH
from ropewalk.core.plan import load_plan
from ropewalk.core.state import ExecutionState, Resolution
from ropewalk.service.dead_letter_bulk import DeadLetterVerbs, Outcome, Pace, Progress
from ropewalk.service.reading import Recorded
from ropewalk.service.retention import START, Policy, Position, Swept
from ropewalk.store.dlq import Wanted

ALLOW_HTTP: Final = "ROPEWALK_ALLOW_HTTP"
PATIENCE: Final = 5.0
"""How long (s) a command waits for a server that does not answer: a person sits before it."""
RESTART: Final = 120.0
"""How long (s) a command that follows an execution waits for its server to come back: it may be being replaced."""


@asynccontextmanager
async def connected(server: Server, token: str | None = None) -> AsyncIterator["ServerQueries"]:
    """The server, spoken to with this token, or with the one that is known for it."""
    token = token_for(server.url) if token is None else token
    allow_http = os.environ.get(ALLOW_HTTP) == "1"
    async with AsyncClient(server.url, token, server.workspace, patience=PATIENCE, allow_http=allow_http) as client:
        yield ServerQueries(client)


class ServerQueries:
    """What a server shows."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client

    async def workflow_id(self, name: str) -> str:
        return (await self.client.definition(name))["id"]

    # Executions

    async def executions(self, wanted: Search) -> list[Json]:
        found = self.client.executions(
            workflow=wanted.workflow, state=wanted.state, limit=wanted.limit, search=wanted.search,
            waiting=wanted.waiting, before=wanted.before, id_part=wanted.id_part,
        )  # fmt: skip
        return [_listed(each, is_waiting=wanted.waiting) async for each in found]

    async def execution(self, execution: str) -> Json:
        handle = self.client.execution(execution)
        details = _as_stored(await handle.details())
        if details["outputReference"] is not None:
            details["output"] = await handle.output()
        return {**details, "nodes": [_as_stored(each) async for each in handle.nodes()]}

    async def files(self, execution: str) -> list[Json]:
        return [each async for each in self.client.files(execution)]

    async def save_file(self, execution: str, digest: str, path: str) -> None:
        await self.client.download(execution, digest, path)

    async def state(self, execution: str) -> ExecutionState | None:
        try:
            return ExecutionState((await self.client.execution(execution).details())["state"])
        except (NotFound, Invalid):
            return None

    async def runs(self, execution: str) -> list[Json]:
        return [_as_stored(each) async for each in self.client.execution(execution).runs()]

    async def history(self, execution: str) -> Recorded:
        handle = self.client.execution(execution)
        details = await handle.details()
        version = await self.client.version(details["workflowId"], details["version"])
        events = [event_of(each) async for each in handle.recorded()]
        return Recorded(execution, load_plan(msgspec.json.encode(version["document"])), events)

    async def events(self, execution: str, after: int) -> list[Json]:
        return [_as_stored(each) async for each in self.client.execution(execution).recorded(after)]

    async def follow(self, execution: str, after: int) -> AsyncIterator[Json]:
        async for each in self.client.execution(execution).events(after, patience=RESTART):
            yield _as_stored(each)

    async def over(self, execution: str) -> None:
        await self.client.execution(execution).wait()

    async def explanation(self, execution: str, node: str | None) -> Json:
        return cast(Json, await self.client.execution(execution).explain(node))

    # Dead letters

    async def letters(self, resolution: Resolution, fingerprint: str | None, limit: int) -> list[Json]:
        found = self.client.dead_letters(resolution, fingerprint=fingerprint, limit=limit)
        return [_as_stored(each) async for each in found]

    async def letters_named(self, id_part: str, limit: int) -> list[Json]:
        return [_as_stored(each) async for each in self.client.dead_letters(None, id_part=id_part, limit=limit)]

    async def letter(self, letter: str) -> Json:
        return _as_stored(await self.client.dead_letter(letter))

    async def pending_letters(self, execution: str, limit: int) -> list[str]:
        return sorted([each["id"] async for each in self.client.dead_letters(execution=execution, limit=limit)])

    async def groups(self, limit: int) -> list[Json]:
        return [cast(Json, each) async for each in self.client.dead_letter_groups(limit)]

    async def breakers(self, limit: int) -> list[Json]:
        found: list[Json] = []
        async for each in self.client.breakers():
            found.append(_as_stored(each))
            if len(found) == limit:
                break
        return found

    async def workers(self, *, is_all: bool) -> list[Json]:
        return [cast(Json, each) async for each in self.client.workers() if is_all or _is_wanted(each)]

    # Many dead letters

    async def requeue_all(self, verbs: DeadLetterVerbs, wanted: Wanted, pace: Pace, by: str) -> AsyncIterator[Progress]:
        failures, left = 0, pace.limit
        async for fingerprint in self._alike(wanted):
            most = None if pace.stop_after_failures is None else pace.stop_after_failures - failures
            if most == 0:
                yield _progress(STOPPED)
                return
            async for each in self.client.requeue_all(
                fingerprint, rate=pace.rate, stop_after_failures=most, limit=left
            ):
                yield _progress(each)
                if each["outcome"] == Outcome.STOPPED:
                    return
                failures += each["outcome"] == Outcome.FAILED
                left = _less(left, each)

    async def discard_all(self, verbs: DeadLetterVerbs, wanted: Wanted, by: str, notes: str | None, limit: int | None
                          ) -> AsyncIterator[Progress]:  # fmt: skip
        async for fingerprint in self._alike(wanted):
            async for each in self.client.discard_all(fingerprint, notes, limit=limit):
                yield _progress(each)
                limit = _less(limit, each)

    async def _alike(self, wanted: Wanted) -> AsyncIterator[str]:
        """What is wanted, one fingerprint after the other: a server works off what failed alike."""
        groups = [each async for each in self.client.dead_letter_groups()]
        for group in groups:
            asked = (wanted.fingerprint, wanted.workflow, wanted.node, wanted.failure_type)
            found = (group["fingerprint"], group["workflowId"], group["node"], group["failureType"])
            if all(one is None or one == other for one, other in zip(asked, found, strict=True)):
                yield group["fingerprint"]


def _is_wanted(worker: Worker) -> bool:
    """Not who has left, nor commands that only tell something; the one worker of a file has no slots of its own."""
    return worker["isAlive"] or (worker["slots"] > 0 and worker["silence"] is not None)


def _progress(each: DeadLetterProgress) -> Progress:
    return Progress(each["id"] or "", each["executionId"] or "", Outcome(each["outcome"]), each["reason"])


def _less(left: int | None, each: DeadLetterProgress) -> int | None:
    """How many may still be taken up; one that fails again was before."""
    return left if left is None or each["outcome"] == Outcome.FAILED else left - 1


async def check_document(server: Server, document: JSON) -> None:
    """Raises everything the server finds wrong with a document."""
    async with connected(server) as there:
        verdict = await there.client.validate(document)
    if not verdict["valid"]:
        raise InvalidDefinition([Problem(path_of(each["field"]), each["message"]) for each in verdict["problems"]])


def _listed(summary: Mapping[str, Any], *, is_waiting: bool) -> Json:
    """An execution of a list as a store would give it, which looks up what it waits for where that is asked."""
    return {name: value for name, value in summary.items() if is_waiting or name != "waitingFor"}


def _as_stored(answer: Mapping[str, Any]) -> Json:
    """An answer as a store would give it, which hides nothing."""
    return {name: value for name, value in answer.items() if name != "payloads"}


def event_of(envelope: Mapping[str, Any]) -> Event:
    """The event in an envelope, brought up to what this Ropewalk knows."""
    data = dict(envelope["data"])
    if envelope.get("payloads") is False:
        data = _readable(data)
    at = (datetime.fromisoformat(envelope["at"]) - EPOCH) // timedelta(microseconds=1)
    event = {"type": envelope["type"], "at": at, **data}
    entry = {"v": envelope["v"], "seq": envelope["seq"], "events": [event]}
    return log.decode(msgspec.json.encode(entry))[1][0]


def _readable(data: Json) -> Json:
    """What cannot be left out of an event, in the place of what was hidden."""
    if "source" in data:
        data.setdefault("outputs", {})
    return data


class SavedThere(msgspec.Struct, frozen=True):
    """What a server has saved."""

    workflow: str
    version: int


class ServerVerbs:
    """The verbs of a server. The token says in whose name they are asked, so `by` is not sent."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def save(self, document: JSON, by: str = "") -> SavedThere:
        saved = await self._client.save(document, publish=True)
        return SavedThere(saved["id"], saved["version"])

    async def publish_version(self, workflow: str, version: int, by: str = "") -> bool:
        return (await self._client.publish(workflow, version))["changed"]

    async def start(self, version: SavedThere, input: JSON = None, vars: Mapping[str, JSON] | None = None,  # noqa: A002
                    actor: str = "", priority: int = 5) -> str:  # fmt: skip
        started = await self._client.start(
            version.workflow, input, vars=vars, priority=priority, version=version.version
        )  # fmt: skip
        return started.id

    async def cancel(self, execution: str, by: str = "", reason: str | None = None) -> bool:
        return (await self._client.execution(execution).cancel(reason))["changed"]

    async def pause(self, execution: str, by: str = "", reason: str | None = None) -> bool:
        return (await self._client.execution(execution).pause(reason))["changed"]

    async def resume(self, execution: str, by: str = "") -> bool:
        return (await self._client.execution(execution).resume())["changed"]

    async def retry(self, execution: str, by: str = "") -> bool:
        return (await self._client.execution(execution).retry())["changed"]

    async def signal(self, execution: str, name: str, payload: JSON = None, by: str = "") -> bool:
        return (await self._client.execution(execution).signal(name, payload))["changed"]

    async def publish(self, subject: str, payload: JSON = None, by: str = "") -> int:
        return await self._client.publish_event(subject, payload)

    async def decide(self, execution: str, node: str, *, approved: bool, by: str = "", payload: JSON = None,
                     item: int | None = None) -> bool:  # fmt: skip
        handle = self._client.execution(execution)
        decide = handle.approve if approved else handle.reject
        return (await decide(node, payload, item))["changed"]

    async def reset_breaker(self, target: str, by: str = "") -> bool:
        return await self._client.reset_breaker(target)

    async def manage_credentials(self, request: str, about: dict[str, JSON], by: str = "") -> Any:
        from ropewalk.cli.backend.server_credentials import carried_out  # here, since most commands have none to do

        return await carried_out(self._client, request, about)

    async def trigger(self, action: str, arguments: Mapping[str, JSON], by: str = "") -> JSON:
        given = {"dry_run" if name == "dryRun" else name: value for name, value in arguments.items()}
        return await getattr(self._client, f"{action}_trigger")(**given)

    async def rerun(self, execution: str, node: str, by: str = "", version: int | None = None) -> str:
        return await self._client.execution(execution).rerun(node, version)

    async def replay(self, execution: str, by: str = "") -> str:
        return await self._client.execution(execution).replay()

    async def requeue(self, letter: str, overrides: dict[str, JSON] | None = None, by: str = "") -> str:
        return await self._client.requeue(letter, overrides)

    async def fix(self, letter: str, output: JSON, by: str = "", ports: tuple[str, ...] = ()) -> str:
        return await self._client.fix(letter, output, ports)

    async def discard(self, letter: str, by: str = "", notes: str | None = None) -> None:
        await self._client.discard(letter, notes)

    async def note(self, letter: str, text: str, by: str = "") -> None:
        await self._client.note(letter, text)

    async def sweep(self, policy: Policy, position: Position = START, by: str = "") -> Swept:
        raise RopewalkError("a server sweeps by itself, as its configuration says")

    async def follow(self, execution: str, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        async for each in self._client.execution(execution).events(after, patience=RESTART):
            yield each["seq"], event_of(each)
