"""One reader of a live stream: what it is sent, whether it still may read, and why its stream ends.

A stream begins with a snapshot and goes on with numbered events; its last message says why it ends. A reader that comes
back with the number of the last event it has seen goes on from there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.core.errors import NotFound, RopewalkError, Unavailable
from ropewalk.core.state import ExecutionState
from ropewalk.service.channels import Batch, Channel
from ropewalk.service.payloads import said

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
    """The reader has lost its rights."""
    GONE = "gone"
    """What was followed was removed."""


class Ending(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The last message of a stream: why it ends."""

    reason: Reason
    id: str
    state: ExecutionState | None = None
    detail: str | None = None


SLOW: Final = "it was not read in time"


class Transport(Protocol):
    """The connection to one reader."""

    async def snapshot(self, id: str, text: bytes) -> None:  # noqa: A002
        """The snapshot, and the id to come back with."""

    async def events(self, batch: Batch, payloads: bool) -> None:
        """The events that came after."""

    async def beat(self) -> None:
        """Nothing new, but the transport is alive."""

    async def end(self, ending: Ending) -> None:
        """The last message."""


Check = Callable[[], Awaitable[bool]]
"""Says whether payloads may be seen too; raises if nothing may."""


class Guard:
    """What the readers with the same credentials may see of the same thing; asked once for all of them."""

    def __init__(self, check: Check, payloads: bool) -> None:
        self._check = check
        self.payloads = payloads
        self.readers: dict[Reader, None] = {}

    async def ask(self) -> None:
        """End the streams of readers that lost their rights; a store that does not answer takes away none."""
        try:
            self.payloads = await self._check()
        except Unavailable as error:
            _log.warning("whether readers still may cannot be asked for now: %s", error)
        except RopewalkError as error:
            for reader in self.readers:
                reader.cut(Reason.REVOKED, str(error))


class Reader:
    """A reader at a place of a channel; without a place, it needs a snapshot first."""

    def __init__(self, channel: Channel, guard: Guard, place: int | None, id: str) -> None:  # noqa: A002
        self.channel = channel
        self._guard = guard
        self._place = place or 0
        self._id = id
        self._needs_snapshot = place is None
        self._snapshot: bytes | None = None
        # Whether it reads what the channel keeps: then it has to keep up. One from further back is given time.
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

    async def run(self, transport: Transport) -> None:
        """Tell everything there is to tell, until the end."""
        self._task = asyncio.current_task()
        if self._snapshot is not None:
            await self._send(transport.snapshot(self._id, self._snapshot))
            self._snapshot = None
        try:
            while self.ending is None:
                await self._go_on(transport)
        except NotFound as error:
            self.ending = Ending(Reason.GONE, self._id, None, str(error))
        except RopewalkError as error:
            self.ending = Ending(Reason.RECONNECT, self._id, None, said(error, may_read=self._guard.payloads))
        await self._send(transport.end(self.ending))

    async def _go_on(self, transport: Transport) -> None:
        channel = self.channel
        if self._renewals != channel.renewals:
            await self._begin_anew(transport)
        elif self._place < channel.floor:
            await self._catch_up(transport)
        elif self._place < channel.head:
            self._is_live = True
            await self._tell(transport, channel.after(self._place))
        elif self._place == channel.head and channel.state is not None:
            self.ending = Ending(Reason.FINISHED, self._id, channel.state)
        elif self._beats != channel.beats:
            self._beats = channel.beats
            await self._send(transport.beat())
        else:
            await channel.news()
            # It was up to date: should more have come at once than is kept, that is not its fault.
            self._is_live = False

    async def _begin_anew(self, transport: Transport) -> None:
        """What was told is not so any more: the reader gets a new snapshot, and an id that goes with it."""
        self._renewals = self.channel.renewals
        self._place, self._id, snapshot = await self.channel.snapshot(self._guard.payloads)
        self._is_live = False
        await self._send(transport.snapshot(self._id, snapshot))

    async def _catch_up(self, transport: Transport) -> None:
        if self._is_live:
            self.cut(Reason.SLOW, SLOW)
            return
        earlier = await self.channel.earlier(self._place)
        if earlier:
            await self._tell(transport, earlier)
        else:
            self.cut(Reason.GONE, "what follows is not there any more")

    async def _tell(self, transport: Transport, batch: Batch) -> None:
        await self._send(transport.events(batch, self._guard.payloads))
        self._place, self._id = batch.last, batch.id

    async def _send(self, sending: Awaitable[None]) -> None:
        self._sending_since = asyncio.get_running_loop().time()
        await sending
        self._sending_since = None
