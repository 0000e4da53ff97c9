"""The stream of one execution: its log as it grows, and snapshots of it."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ropewalk.core import log
from ropewalk.core.errors import NotFound, RopewalkError, reading_of
from ropewalk.core.events import Event
from ropewalk.core.instant import moment, rfc3339
from ropewalk.core.kinship import ENDS
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import Appended
from ropewalk.engines.watching import Watching
from ropewalk.service import reading
from ropewalk.service.channels import Batch, Channel, Message
from ropewalk.service.payloads import EXECUTION, NODE, shown
from ropewalk.service.reading.recorded import offload
from ropewalk.store import log as stored_log
from ropewalk.store import streams
from ropewalk.store.access import Store

PAGE: Final = 100
READ_AT_ONCE: Final = 1024 * 1024
SNAPSHOT_AGE: Final = 1.0
RETRY: Final = 1.0

_log = logging.getLogger("ropewalk.stream")


class ExecutionChannel(Channel):
    """The log of one execution as it grows; numbers are those of its events."""

    def __init__(self, store: Store, watching: Watching, execution: str, **limits: int) -> None:
        super().__init__(**limits)
        self.execution = execution
        self._store = store
        self._watching = watching
        self._state: ExecutionState | None = None
        self._is_behind = self._is_outdated = False
        self._filling: asyncio.Task[None] | None = None
        # By whether they show payloads.
        self._snapshots: dict[bool, tuple[float, int, bytes]] = {}
        self._taking = asyncio.Lock()

    @property
    def state(self) -> ExecutionState | None:
        return self._state

    async def open(self) -> None:
        # Watched before it is asked: what is committed between the two is behind, and read at once.
        self._watching.watch(self.execution, self)
        try:
            self.head, last = await streams.last_event(self._store, self.execution)
        except BaseException:
            self._watching.unwatch(self.execution, self)
            raise
        self._state = ENDS.get(type(last))
        if self._is_behind:
            self._fall_behind()

    async def close(self) -> None:
        await super().close()
        self._watching.unwatch(self.execution, self)
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)

    # Called by the engine

    def told(self, appended: Appended) -> None:
        if self.head and not self._is_behind and appended.first_seq <= self.head + 1:
            self._add(appended.first_seq, appended.events)
        else:
            self._fall_behind()

    def moved(self, execution: str | None, head: int | None) -> None:
        if head is None or head > self.head:
            self._fall_behind()

    def begin_anew(self) -> None:
        self._is_outdated = True
        self._fall_behind()

    def _add(self, first: int, events: Sequence[Event]) -> None:
        for seq, event in enumerate(events, first):
            if seq == self.head + 1:
                self._state = ENDS.get(type(event))
                self.put(Message(self.execution, seq, event))

    def _fall_behind(self) -> None:
        """The log has what is missing here."""
        self._is_behind = True
        if self.head and (self._filling is None or self._filling.done()):
            self._filling = asyncio.get_running_loop().create_task(self._fill())

    async def _fill(self) -> None:
        while self._is_behind:
            self._is_behind = False
            try:
                if self._is_outdated:
                    await self._renew()
                for _, entry in await stored_log.entries(self._store, self.execution, start=self.head + 1):
                    self._add(*log.decode(entry))
            except RopewalkError as error:
                _log.warning("execution %s cannot be read on for now: %s", self.execution, error)
                self._is_behind = True
                await asyncio.sleep(RETRY)

    async def _renew(self) -> None:
        self._is_outdated, self._snapshots = False, {}
        try:
            head, last = await streams.last_event(self._store, self.execution)
        except NotFound:
            self.renew(0)  # readers are told so when they ask for their snapshot
            return
        except RopewalkError:
            self._is_outdated = True
            raise
        self._state = ENDS.get(type(last))
        self.renew(head)

    # Called by readers

    async def earlier(self, number: int) -> Batch | None:
        found = await stored_log.entries(self._store, self.execution, start=number + 1, limit=PAGE)
        messages, size = [], 0
        with reading_of(self.execution):
            numbered = [pair for _, entry in found for pair in _numbered(entry)]
        for seq, event in numbered:
            if seq > number and size < READ_AT_ONCE:
                messages.append(Message(self.execution, seq, event))
                size += messages[-1].size
        return Batch(messages, messages[-1].seq) if messages else None

    async def has(self, number: int) -> bool:
        """Whether there is an event of this number; asked of the log where that is ahead of the channel."""
        return number <= self.head or number <= (await streams.last_event(self._store, self.execution))[0]

    async def snapshot(self, payloads: bool) -> tuple[int, str, bytes]:
        """One snapshot for all readers that come within a second, as long as what follows it is kept."""
        async with self._taking:
            now = asyncio.get_running_loop().time()
            taken = self._snapshots.get(payloads)
            if taken is None or now - taken[0] > SNAPSHOT_AGE or taken[1] < self.floor:
                story = await reading.outlined(self._store, self.execution)
                text = await offload(lambda: _pictured(story, payloads), is_large=True)
                taken = self._snapshots[payloads] = (now, len(story.events), text)
        return taken[1], str(taken[1]), taken[2]


def _numbered(entry: bytes) -> list[tuple[int, Event]]:
    first, events = log.decode(entry)
    return list(enumerate(events, first))


def _pictured(story: reading.Recorded, may_read: bool) -> bytes:
    """The execution and its nodes, without what was given and made: a reader who may see that asks for it."""
    found = story.projected().execution
    if found is None:
        raise NotFound(f"there is no execution {story.id}")
    picture: dict[str, Any] = {
        "id": found.id,
        "workflow": story.plan.definition.name,
        "workflowId": found.workflow,
        "version": found.version,
        "state": found.state,
        "trigger": found.trigger,
        "parentExecutionId": None if found.parent is None else found.parent.execution,
        "acceptedAt": rfc3339(found.accepted),
        "startedAt": moment(found.started),
        "finishedAt": moment(found.finished),
        "error": found.error,
        "traceId": story.trace_id,
        "waitingFor": reading.waiting_for(story.folded()),
    }
    nodes = [shown(_without_detail(node), NODE, may_read=may_read) for node in reading.nodes_of(story)]
    visible = {**shown(picture, EXECUTION, may_read=may_read), "nodes": nodes}
    return msgspec.json.encode({"seq": len(story.events), "execution": visible})


def _without_detail(node: dict[str, Any]) -> dict[str, Any]:
    error = node["error"]
    return node if error is None else {**node, "error": {"type": error["type"], "message": error["message"]}}
