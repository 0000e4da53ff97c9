"""Live streams: who reads what, for how long, and why a stream ended.

A stream begins with a snapshot and goes on with numbered events; its last word says why it ends. Whoever comes back
with the number of the last event it has seen goes on from there. One task looks after all readers: it asks again
whether they still may, gives signs of life, and lets those go who do not read.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.core.errors import NotFound, RopewalkError, Unavailable
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import Engine
from ropewalk.service.channels import Batch, Channel, ExecutionChannel
from ropewalk.service.payloads import said
from ropewalk.service.rooms import RoomChannel
from ropewalk.service.stream_limits import StreamLimits

TICK: Final = 1.0
LEAVING: Final = 2.0
"""How long a reader may take for the last word of a server that is going (s)."""

_log = logging.getLogger("ropewalk.stream")


class Reason(StrEnum):
    """Why a stream ends."""

    FINISHED = "finished"
    """The execution is over; `state` says how."""
    RECONNECT = "reconnect"
    """The server is going; come back with the last number, here or to another."""
    SLOW = "slow"
    """The reader is too far behind; come back with the last number."""
    REVOKED = "revoked"
    """Whoever reads may not any more."""
    GONE = "gone"
    """What was followed was removed."""


class Ending(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The last word of a stream."""

    reason: Reason
    id: str
    state: ExecutionState | None = None
    detail: str | None = None


SLOW: Final = "it was not read in time"


class TooMany(RopewalkError):
    """There are as many readers as there may be."""


class Line(Protocol):
    """The way to one reader."""

    async def snapshot(self, id: str, text: bytes) -> None:  # noqa: A002
        """How things stand, and the id to come back with."""

    async def events(self, batch: Batch, payloads: bool) -> None:
        """What came after."""

    async def beat(self) -> None:
        """Nothing new, but the line is alive."""

    async def end(self, ending: Ending) -> None:
        """The last word."""


Check = Callable[[], Awaitable[bool]]
"""Says whether payloads may be seen too; raises if nothing may."""


class Guard:
    """What the readers with the same credentials may see of the same thing; asked once for all of them."""

    def __init__(self, check: Check, payloads: bool) -> None:
        self._check = check
        self.payloads = payloads
        self.readers: dict[Reader, None] = {}

    async def ask(self) -> None:
        """Whoever may no more is told so; a store that is away is no reason."""
        try:
            self.payloads = await self._check()
        except Unavailable as error:
            _log.warning("whether readers still may cannot be asked for now: %s", error)
        except RopewalkError as error:
            for reader in self.readers:
                reader.cut(Reason.REVOKED, str(error))


class Reader:
    """Somebody at a place of a channel; without a place, one who needs a snapshot first."""

    def __init__(self, channel: Channel, guard: Guard, place: int | None, id: str) -> None:  # noqa: A002
        self.channel = channel
        self._guard = guard
        self._place = place or 0
        self._id = id
        self._needs_snapshot = place is None
        self._snapshot: bytes | None = None
        # Whether it reads what is kept: then it has to keep up. Whoever comes from further back is given time.
        self._is_live = False
        self._beats = channel.beats
        self._renewals = channel.renewals
        self.ending: Ending | None = None
        self._sending_since: float | None = None
        self._task: asyncio.Task[None] | None = None

    def cut(self, reason: Reason, detail: str) -> None:
        """The stream ends here, for this reason."""
        if self.ending is None:
            self.ending = Ending(reason, self._id, None, detail)
            self.channel.wake()

    def look_after(self, now: float, stalled: float) -> None:
        """Let go of a reader that does not take what it is sent, once it is too far behind or for too long."""
        if self._sending_since is None or self._task is None:
            return
        is_behind = self._is_live and self._place < self.channel.floor
        if is_behind or now - self._sending_since > stalled:
            self.cut(Reason.SLOW, SLOW)
            self._task.cancel()

    async def prepare(self) -> None:
        """Take the snapshot, if one is needed; what keeps it from being taken is raised."""
        if self._needs_snapshot:
            self._place, self._id, self._snapshot = await self.channel.snapshot(self._guard.payloads)

    async def run(self, line: Line) -> None:
        """Tell everything there is to tell, until the end."""
        self._task = asyncio.current_task()
        if self._snapshot is not None:
            await self._send(line.snapshot(self._id, self._snapshot))
            self._snapshot = None
        try:
            while self.ending is None:
                await self._go_on(line)
        except NotFound as error:
            self.ending = Ending(Reason.GONE, self._id, None, str(error))
        except RopewalkError as error:
            self.ending = Ending(Reason.RECONNECT, self._id, None, said(error, may_read=self._guard.payloads))
        await self._send(line.end(self.ending))

    async def _go_on(self, line: Line) -> None:
        channel = self.channel
        if self._renewals != channel.renewals:
            await self._begin_anew(line)
        elif self._place < channel.floor:
            await self._catch_up(line)
        elif self._place < channel.head:
            self._is_live = True
            await self._tell(line, channel.after(self._place))
        elif self._place == channel.head and channel.state is not None:
            self.ending = Ending(Reason.FINISHED, self._id, channel.state)
        elif self._beats != channel.beats:
            self._beats = channel.beats
            await self._send(line.beat())
        else:
            await channel.news()
            # It was up to date: should more have come at once than is kept, that is not its fault.
            self._is_live = False

    async def _begin_anew(self, line: Line) -> None:
        """What was told is not so any more: the reader gets a new snapshot, and an id that goes with it."""
        self._renewals = self.channel.renewals
        self._place, self._id, snapshot = await self.channel.snapshot(self._guard.payloads)
        self._is_live = False
        await self._send(line.snapshot(self._id, snapshot))

    async def _catch_up(self, line: Line) -> None:
        if self._is_live:
            self.cut(Reason.SLOW, SLOW)
            return
        earlier = await self.channel.earlier(self._place)
        if earlier:
            await self._tell(line, earlier)
        else:
            self.cut(Reason.GONE, "what follows is not there any more")

    async def _tell(self, line: Line, batch: Batch) -> None:
        await self._send(line.events(batch, self._guard.payloads))
        self._place, self._id = batch.last, batch.id

    async def _send(self, sending: Awaitable[None]) -> None:
        self._sending_since = asyncio.get_running_loop().time()
        await sending
        self._sending_since = None


class Streams:
    """Every stream of one server."""

    def __init__(self, engine: Engine, limits: StreamLimits | None = None) -> None:
        self._engine = engine
        self.limits = limits or StreamLimits()
        self._channels: dict[Hashable, tuple[Channel, asyncio.Future[None]]] = {}
        self._readers: dict[Reader, None] = {}
        self._guards: dict[Hashable, Guard] = {}
        self._by_actor: Counter[str] = Counter()
        self._empty = asyncio.Event()
        # How streams have ended so far; those whose reader hung up are not among them.
        self.ended: Counter[Reason] = Counter()
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False

    def __len__(self) -> int:
        return len(self._readers)

    @property
    def channels(self) -> int:
        """How many streams are kept for those who read."""
        return len(self._channels)

    def of_execution(self, execution: str) -> tuple[Hashable, Callable[[], Channel]]:
        """The stream of one execution: its key, and how it is made."""
        limits = self.limits
        return execution, lambda: ExecutionChannel(
            self._engine.store, self._engine.watching, execution, most=limits.kept, most_bytes=limits.kept_bytes
        )

    def of_room(self, workspace: str, workflow: str | None = None) -> tuple[Hashable, Callable[[], Channel]]:
        """The stream of a workspace, or of a workflow."""
        limits = self.limits
        return (workspace, workflow), lambda: RoomChannel(
            self._engine.store, self._engine.watching, workspace, workflow,
            most=limits.kept, most_bytes=limits.kept_bytes,
        )  # fmt: skip

    @asynccontextmanager
    async def channel(self, key: Hashable, make: Callable[[], Channel]) -> AsyncIterator[Channel]:
        """The channel of this key, open; it is shared, and goes with its last reader."""
        channel = await self._opened(key, make)
        try:
            yield channel
        finally:
            channel.readers -= 1
            if not channel.readers:
                del self._channels[key]
                await channel.close()

    async def _opened(self, key: Hashable, make: Callable[[], Channel]) -> Channel:
        if self._is_closing:
            raise Unavailable("this server is shutting down; come back in a moment")
        if key not in self._channels:
            channel = make()
            self._channels[key] = channel, asyncio.ensure_future(channel.open())
        channel, opening = self._channels[key]
        channel.readers += 1
        try:
            await asyncio.shield(opening)
        except BaseException:
            channel.readers -= 1
            await self._forget(key, channel, opening)
            raise
        return channel

    async def _forget(self, key: Hashable, channel: Channel, opening: asyncio.Future[None]) -> None:
        """Nobody is there any more, or there is nothing to read."""
        if channel.readers or self._channels.get(key, (None,))[0] is not channel:
            return
        del self._channels[key]
        await asyncio.gather(opening, return_exceptions=True)
        if opening.exception() is None:
            await channel.close()

    @asynccontextmanager
    async def reader(self, reader: Reader, guard: Guard, actor: str) -> AsyncIterator[None]:
        """The reader is counted, and looked after until it goes."""
        self._require_room(actor)
        self._readers[reader] = guard.readers[reader] = None
        self._by_actor[actor] += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look_after())
        try:
            yield
        finally:
            del self._readers[reader], guard.readers[reader]
            if reader.ending is not None:
                self.ended[reader.ending.reason] += 1
            self._by_actor[actor] -= 1
            if not self._by_actor[actor]:
                del self._by_actor[actor]
            if not self._readers:
                self._empty.set()

    def _require_room(self, actor: str) -> None:
        if len(self._readers) >= self.limits.readers:
            raise TooMany("this server has as many streams as it can; come back later")
        if self._by_actor[actor] >= self.limits.per_actor:
            raise TooMany(f"{self.limits.per_actor} streams are open for you; close one first")

    def guard(self, credentials: Hashable, check: Check, payloads: bool) -> Guard:
        """The guard of whoever comes with these credentials to this thing."""
        known = self._guards.get(credentials)
        if known is None:
            known = self._guards[credentials] = Guard(check, payloads)
        return known

    async def _look_after(self) -> None:
        loop = asyncio.get_running_loop()
        beaten_at = loop.time()
        while True:
            await asyncio.sleep(TICK)
            await self._ask_guards()
            now = loop.time()
            for reader in list(self._readers):
                reader.look_after(now, LEAVING if self._is_closing else self.limits.stalled)
            if now - beaten_at >= self.limits.beat:
                beaten_at = now
                self._beat()

    async def _ask_guards(self) -> None:
        self._guards = {key: guard for key, guard in self._guards.items() if guard.readers}
        for guard in list(self._guards.values()):
            try:
                await guard.ask()
            except Exception:  # noqa: BLE001 -- a fault of ours must keep nobody from being asked or looked after
                _log.exception("asking whether readers still may failed; it is tried again")

    def _beat(self) -> None:
        for channel, _ in self._channels.values():
            channel.beats += 1
            channel.wake()

    async def emptied(self) -> None:
        """Wait until nobody reads any more."""
        while self._readers:
            self._empty.clear()
            await self._empty.wait()

    async def close(self) -> None:
        """Every reader is told to come back elsewhere, and given a moment to hear it; new ones are refused."""
        self._is_closing = True
        for reader in self._readers:
            reader.cut(Reason.RECONNECT, "the server is shutting down")
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVING + 2 * TICK):
                await self.emptied()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
