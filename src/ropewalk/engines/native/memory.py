"""The executions in this worker's memory, and how they get there: by acceptance, or by folding their log."""

import asyncio
from collections import OrderedDict
from typing import Any

import msgspec
import uuid_utils

from ropewalk.core import log
from ropewalk.core.errors import InvalidInput, NotFound, Problem
from ropewalk.core.events import Blob, ExecutionAccepted
from ropewalk.core.expression import ExpressionError, Scope
from ropewalk.core.plan import load_plan
from ropewalk.engines.base import StartRequest, Version
from ropewalk.engines.native.live import Live, Written, blobs_of
from ropewalk.store import events, workflows
from ropewalk.store import log as stored_log
from ropewalk.store.sqlite import SqliteStore

MOST_VERSIONS = 1_000


class Memory:
    """Loads executions and the versions they execute, each once."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._versions: OrderedDict[tuple[str, int], Version] = OrderedDict()
        self._loading: dict[str, asyncio.Future[None]] = {}
        self.lives: dict[str, Live] = {}

    def owns(self, live: Live) -> bool:
        return self.lives.get(live.id) is live

    def is_under_way(self, execution: str) -> bool:
        """Whether its end, if it comes, will be told from here."""
        live = self.lives.get(execution)
        return live is not None and not live.execution.is_ended

    def forget(self, live: Live) -> None:
        if self.owns(live):
            del self.lives[live.id]

    # Accepting

    def accept(self, request: StartRequest, now: int) -> Live:
        """A new execution, with its first event; durable with the next commit."""
        version = request.version
        accepted = ExecutionAccepted(
            now,
            request.execution or str(uuid_utils.uuid7()),
            request.workspace,
            version.workflow,
            version.version,
            version.hash,
            request.trigger,
            request.payload,
            request.input,
            {**version.plan.definition.vars, **request.vars},
            dict(request.env),
            request.parent,
            request.priority,
            _concurrency_key(version, request.input),
        )
        live = Live(version, accepted)
        # Taken over now, whenever that was looked up: time does not go back within a log.
        live.events = [accepted, *(msgspec.structs.replace(event, at=now) for event in request.carried)]
        live.execution.apply(live.events)
        self.lives[live.id] = live
        return live

    # Loading

    async def load(self, execution: str) -> Live:
        """The execution, from memory or from its log; ended ones too."""
        # Looked up again after every wait: what was loaded may have been used and forgotten by someone faster, and two
        # copies of an execution would write two histories.
        while (live := self.lives.get(execution)) is None:
            if execution not in self._loading:
                self._loading[execution] = asyncio.ensure_future(self._load(execution))
            await asyncio.shield(self._loading[execution])
        return live

    async def _load(self, execution: str) -> None:
        """Fold its log; nobody else does so meanwhile."""
        try:
            self.lives[execution] = await self._fold(execution)
        finally:
            del self._loading[execution]

    async def _fold(self, execution: str) -> Live:
        events = list(log.decode_all(entry for _, entry in await stored_log.entries(self._store, execution)))
        if not events:
            raise NotFound(f"there is no execution {execution}")
        accepted = events[0]
        assert isinstance(accepted, ExecutionAccepted)
        live = Live(await self.version(accepted.workflow, accepted.version), accepted)
        live.execution.apply(events)
        live.ledger.add(events)
        live.ledger.take()
        live.written = await self._written(execution)
        live.has_blobs = any(blobs_of(output) for output in live.execution.outputs.values())
        live.has_key = bool(live.written.live and live.written.live[3])
        await self._load_final(live)
        return live

    async def _written(self, execution: str) -> Written:
        row = await self._store.fetch_one("written_rows", execution)
        assert row is not None, "whoever writes a log writes the execution's row with it"
        state, started_at, finished_at, error, owner, _, wake_at, has_slot, has_key, queued = row
        live = None if has_slot is None else (owner, wake_at, has_slot, has_key)
        waits = await events.of_execution(self._store, execution)
        return Written((state, started_at, finished_at, error), live, queued is not None, waits)

    async def _load_final(self, live: Live) -> None:
        """The large results an execution's output is made of must be at hand when its last node ends."""
        if live.has_blobs and not live.execution.is_ended:
            await live.load_output_blobs(self.load_blob)

    async def version(self, workflow: str, version: int) -> Version:
        """A version of a workflow, compiled once."""
        key = (workflow, version)
        if key not in self._versions:
            found = await workflows.get_version(self._store, workflow, version)
            if found is None:
                raise NotFound(f"there is no version {version} of workflow {workflow}")
            self.keep(Version(workflow, version, found.hash, load_plan(found.document.encode())))
        self._versions.move_to_end(key)
        return self._versions[key]

    def keep(self, version: Version) -> None:
        self._versions[version.workflow, version.version] = version
        while len(self._versions) > MOST_VERSIONS:
            self._versions.popitem(last=False)

    async def published(self, workspace: str, name: str, version: int | None) -> Version:
        """The version a start of this name takes: the one asked for, else the one published."""
        found = await workflows.get_by_name(self._store, workspace, name) or await workflows.get(
            self._store, workspace, name
        )
        if found is None or found.archived_at is not None:
            raise NotFound(f"there is no workflow {name!r}")
        wanted = found.published if version is None else version
        if wanted is None:
            raise NotFound(f"workflow {name!r} has no published version")
        return await self.version(found.id, wanted)

    async def left_running(self) -> list[str]:
        """The executions that have a slot: their last owner left them running."""
        return [row[0] for row in await self._store.fetch("slot_holders")]

    async def key_holders(self) -> list[str]:
        """The parked executions that keep a concurrency key."""
        return [row[0] for row in await self._store.fetch("key_holders")]

    async def load_blob(self, blob: Blob) -> Any:
        return msgspec.json.decode(await self._store.blobs.get(blob.hash))


def _concurrency_key(version: Version, value: Any) -> str | None:
    """Evaluated at acceptance, on the input only."""
    template = version.plan.concurrency_key
    if template is None:
        return None
    try:
        key = template.resolve(Scope(input=value))
    except ExpressionError as error:
        raise InvalidInput([Problem(("concurrencyKey",), str(error))]) from error
    return key if isinstance(key, str) else msgspec.json.encode(key).decode()
