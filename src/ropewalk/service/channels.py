"""What a live stream is read from: its latest messages, kept once and encoded once for all of its readers.

No reader has a buffer of its own. A reader has a place in the channel; one that falls behind what the channel keeps is
cut off by that alone, and the other readers do not notice.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Final

import msgspec

from ropewalk.core import log
from ropewalk.core.events import Event
from ropewalk.core.state import ExecutionState
from ropewalk.service.payloads import shown_event

MOST_KEPT: Final = 10_000
MOST_BYTES: Final = 4 * 1024 * 1024
SENT_AT_ONCE: Final = 64 * 1024
LEFT_ALONE: Final = 2.0
"""How long readers are left alone after each round, in rounds: a crowd leaves the engine its share of the loop."""
LONGEST_ALONE: Final = 0.0002
"""The most for each reader (s): a round may have been held up by something else, which is not to be paid for twice."""

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
    """Messages that follow one another; readers at the same place share it. `last` is where it ends."""

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
        # How often messages turned out to be undone (the database went back): then every reader needs a new snapshot.
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
        """The number before the first that is kept: a reader that is here or further on has missed nothing."""
        return self.head - len(self._kept)

    @property
    def state(self) -> ExecutionState | None:
        """How the execution ended, if this is the stream of one and it has."""
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
        """Wait until the channel wakes its readers."""
        await self._news.wait()

    def wake(self) -> None:
        """Wake the readers: soon, and not before those that were woken last have read."""
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
        # In line behind every reader that was woken just now.
        loop.call_soon(self._round_over, began)

    def _round_over(self, began: float) -> None:
        now = asyncio.get_running_loop().time()
        alone = min(LEFT_ALONE * (now - began), LONGEST_ALONE * self.readers)
        self._waking, self._quiet_until = None, now + alone
        if self._has_more:
            self._has_more = False
            self.wake()

    async def earlier(self, number: int) -> Batch | None:
        """What follows this number and is not kept any more; None if it is not stored either."""
        return None

    @abstractmethod
    async def open(self) -> None:
        """Begin to collect: from here on the channel misses nothing."""

    async def close(self) -> None:
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None

    @abstractmethod
    async def snapshot(self, payloads: bool) -> tuple[int, str, bytes]:
        """The state now: at which number, its id to come back with, and the text with or without payloads."""
