"""Live streams of one server: their channels, and their readers.

One task looks after all readers: it asks again whether they may still read, gives signs of life, and ends the streams
of readers that do not read.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from typing import Final

from ropewalk.core.errors import RopewalkError, Unavailable
from ropewalk.engines.base import Engine
from ropewalk.service.channels import Channel
from ropewalk.service.execution_channel import ExecutionChannel
from ropewalk.service.stream_limits import StreamLimits
from ropewalk.service.stream_readers import Check, Guard, Reader, Reason
from ropewalk.service.workspace_channel import WorkspaceChannel

TICK: Final = 1.0
LEAVING: Final = 2.0
"""How long a reader may take (s) for the last message of a server that is leaving."""

_log = logging.getLogger("ropewalk.stream")


class TooMany(RopewalkError):
    """There are as many readers as there may be."""


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
        """How many channels have readers."""
        return len(self._channels)

    def of_execution(self, execution: str) -> tuple[Hashable, Callable[[], Channel]]:
        """The stream of one execution: its key, and how it is made."""
        limits = self.limits
        return execution, lambda: ExecutionChannel(
            self._engine.store, self._engine.watching, execution, most=limits.kept, most_bytes=limits.kept_bytes
        )

    def of_workspace(self, workspace: str, workflow: str | None = None) -> tuple[Hashable, Callable[[], Channel]]:
        """The stream of a workspace, or of a workflow."""
        limits = self.limits
        return (workspace, workflow), lambda: WorkspaceChannel(
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
        """Close a channel that could not be opened, or whose readers have all left."""
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
        """The guard that readers with these credentials share."""
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
            except Exception:  # noqa: BLE001 -- a fault with one guard must not end the others
                _log.exception("asking whether readers still may failed; it is tried again")

    def _beat(self) -> None:
        for channel, _ in self._channels.values():
            channel.beats += 1
            channel.wake()

    async def emptied(self) -> None:
        """Wait until the last reader has left."""
        while self._readers:
            self._empty.clear()
            await self._empty.wait()

    async def close(self) -> None:
        """Every reader is told to come back elsewhere, and given a moment to read that; new ones are refused."""
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
