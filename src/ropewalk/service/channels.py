"""What a live stream is read from: its latest messages, kept once and encoded once for everyone who reads it.

Nobody has a buffer of his own. A reader has a place in the channel; one who falls behind what the channel keeps is cut
off by that alone, whatever the others do.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
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
from ropewalk.service.payloads import EXECUTION, NODE, shown, shown_event
from ropewalk.service.reading.recorded import apart
from ropewalk.store import log as stored_log
from ropewalk.store import streams
from ropewalk.store.access import Store

MOST_KEPT: Final = 10_000
MOST_BYTES: Final = 4 * 1024 * 1024
PAGE: Final = 100
READ_AT_ONCE: Final = 1024 * 1024
SENT_AT_ONCE: Final = 64 * 1024
LEFT_ALONE: Final = 2.0
"""How long readers are left alone after each round, in rounds: a crowd leaves the engine its share of the loop."""
LONGEST_ALONE: Final = 0.0002
"""The most for each reader (s): a round may have been held up by something else, which is not to be paid for twice."""
SNAPSHOT_AGE: Final = 1.0
RETRY: Final = 1.0

_log = logging.getLogger("ropewalk.stream")


class Message:
    """One event of one execution, and its texts, each made when it is first wanted."""

    __slots__ = ("_event", "_frames", "_sse", "_texts", "execution", "id", "seq")

    def __init__(self, execution: str, seq: int, event: Event, id: str | None = None) -> None:  # noqa: A002
        self.execution = execution
        self.seq = seq
        self.id = str(seq) if id is None else id
        self._event = event
        self._texts: dict[bool, bytes] = {}
        self._sse: dict[bool, bytes] = {}
        self._frames: dict[bool, str] = {}

    @property
    def size(self) -> int:
        return len(self._text(True))

    def sse(self, payloads: bool) -> bytes:
        """As a server-sent event."""
        known = self._sse.get(payloads)
        if known is None:
            known = self._sse[payloads] = b"id: %b\ndata: %b\n\n" % (self.id.encode(), self._text(payloads))
        return known

    def frame(self, payloads: bool) -> str:
        """As a message of a WebSocket."""
        known = self._frames.get(payloads)
        if known is None:
            text = self._text(payloads).decode()
            known = self._frames[payloads] = f'{{"kind":"event","id":"{self.id}","event":{text}}}'
        return known

    def _text(self, payloads: bool) -> bytes:
        known = self._texts.get(payloads)
        if known is None:
            envelope = log.envelope(self.execution, self.seq, self._event)
            visible = envelope if payloads else shown_event(envelope, may_read=False)
            known = self._texts[payloads] = msgspec.json.encode(visible)
        return known


class Batch:
    """Messages that follow one another; whoever is at the same place shares it. `last` is where it ends."""

    __slots__ = ("_sse", "last", "messages")

    def __init__(self, messages: list[Message], last: int) -> None:
        self.messages = messages
        self.last = last
        self._sse: dict[bool, bytes] = {}

    @property
    def id(self) -> str:
        return self.messages[-1].id

    def sse(self, payloads: bool) -> bytes:
        """All of them as server-sent events."""
        known = self._sse.get(payloads)
        if known is None:
            known = self._sse[payloads] = b"".join([message.sse(payloads) for message in self.messages])
        return known


class Channel(ABC):
    """The latest messages of one stream, numbered without gaps."""

    def __init__(self, most: int = MOST_KEPT, most_bytes: int = MOST_BYTES) -> None:
        self.head = 0
        self.readers = 0
        self.beats = 0
        # How often what was told turned out not to be so: then everyone needs a new snapshot.
        self.renewals = 0
        self._most = most
        self._most_bytes = most_bytes
        self._kept: list[Message] = []
        self._size = 0
        # By the number they follow; until the next message comes.
        self._batches: dict[int, Batch] = {}
        self._news = asyncio.Event()
        self._waking: asyncio.TimerHandle | None = None
        self._has_more = False
        self._quiet_until = 0.0

    @property
    def floor(self) -> int:
        """The number before the first that is kept: whoever is here or further on has missed nothing."""
        return self.head - len(self._kept)

    @property
    def state(self) -> ExecutionState | None:
        """How it ended, if what is told here has an end and this is it."""
        return None

    def put(self, message: Message) -> None:
        """The next message."""
        self._kept.append(message)
        self._batches.clear()
        self.head += 1
        self._size += message.size
        if len(self._kept) > self._most or self._size > self._most_bytes:
            self._trim()
        self.wake()

    def _trim(self) -> None:
        """Drop a quarter at once, so that dropping is cheap; the newest message stays, however large."""
        while len(self._kept) > 1 and (len(self._kept) > self._most or self._size > self._most_bytes):
            dropped = self._kept[: max(1, len(self._kept) // 4)]
            del self._kept[: len(dropped)]
            self._size -= sum(message.size for message in dropped)

    def renew(self, head: int) -> None:
        """What was told is not so any more; go on after this number."""
        self._kept.clear()
        self._batches.clear()
        self._size, self.head = 0, head
        self.renewals += 1
        self.wake()

    def after(self, number: int) -> Batch:
        """What follows this number, as much as is sent at once; it must be kept."""
        known = self._batches.get(number)
        if known is None:
            start, size = number - self.floor, 0
            end = start
            while end < len(self._kept) and size < SENT_AT_ONCE:
                size += self._kept[end].size
                end += 1
            known = self._batches[number] = Batch(self._kept[start:end], number + end - start)
        return known

    async def news(self) -> None:
        """Wait until there is a reason to look."""
        await self._news.wait()

    def wake(self) -> None:
        """There is a reason to look: soon, and not before those who look already are through."""
        if self._waking is not None:
            self._has_more = True
        else:
            loop = asyncio.get_running_loop()
            self._waking = loop.call_at(max(loop.time(), self._quiet_until), self._wake_now)

    def _wake_now(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        news, self._news = self._news, asyncio.Event()
        news.set()
        # In line behind everyone who was woken just now.
        loop.call_soon(self._round_over, began)

    def _round_over(self, began: float) -> None:
        now = asyncio.get_running_loop().time()
        alone = min(LEFT_ALONE * (now - began), LONGEST_ALONE * self.readers)
        self._waking, self._quiet_until = None, now + alone
        if self._has_more:
            self._has_more = False
            self.wake()

    async def earlier(self, number: int) -> Batch | None:
        """What follows this number and is not kept any more; None if nobody has it."""
        return None

    @abstractmethod
    async def open(self) -> None:
        """From here on nothing is missed."""

    async def close(self) -> None:
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None

    @abstractmethod
    async def snapshot(self, payloads: bool) -> tuple[int, str, bytes]:
        """How things stand: at which number, its id for whoever comes back, and the text with or without payloads."""


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

    # What the engine tells

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

    # What readers ask

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
        """Whether there is an event of this number; asked of the log where it is ahead of us."""
        return number <= self.head or number <= (await streams.last_event(self._store, self.execution))[0]

    async def snapshot(self, payloads: bool) -> tuple[int, str, bytes]:
        """One for everyone who comes within a second, as long as what follows it is kept."""
        async with self._taking:
            now = asyncio.get_running_loop().time()
            taken = self._snapshots.get(payloads)
            if taken is None or now - taken[0] > SNAPSHOT_AGE or taken[1] < self.floor:
                story = await reading.outlined(self._store, self.execution)
                text = await apart(lambda: _pictured(story, payloads), is_large=True)
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
