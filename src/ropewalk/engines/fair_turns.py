"""Fair turns: one after the other, in rotation between groups, and within a group between its members.

A member that brings a hundred things waits with them for itself: a member that brings one has the next turn.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ropewalk.core.errors import Unavailable

Key = tuple[str, str]


class TooManyWaiting(Unavailable):
    """The member has as many waiting as it may have; it is to wait for one of them."""

    def __init__(self, most: int) -> None:
        super().__init__(f"{most} requests of yours are being worked on; wait for one of them")


class FairTurns:
    """Lets so many go on at once."""

    def __init__(self, at_once: int = 1) -> None:
        self._free = at_once
        self._lines: dict[Key, deque[asyncio.Future[None]]] = {}
        # The members that may have the next turn, by group; the group and the member that had one go to the end.
        self._groups: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        self._resting: dict[Key, asyncio.TimerHandle] = {}
        self._count: dict[Key, int] = {}

    @asynccontextmanager
    async def turn(self, group: str, member: str, most: int | None = None) -> AsyncIterator["Turn"]:
        """Inside it is the turn of this member of this group; refused if it has `most` waiting or at work already."""
        key = (group, member)
        if most is not None and self._count.get(key, 0) >= most:
            raise TooManyWaiting(most)
        self._count[key] = self._count.get(key, 0) + 1
        turn = Turn()
        try:
            await self._wait(key)
            try:
                yield turn
            finally:
                self._leave(key, turn.rest)
        finally:
            self._count[key] -= 1
            if not self._count[key]:
                del self._count[key]

    async def _wait(self, key: Key) -> None:
        if self._free and not self._groups and key not in self._resting:
            self._free -= 1
            return
        waiter = asyncio.get_running_loop().create_future()
        self._lines.setdefault(key, deque()).append(waiter)
        self._offer(key)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._leave(key, 0.0)  # the turn came together with the cancellation
            raise

    def _offer(self, key: Key) -> None:
        """The member may have the next turn, if it waits for one and does not rest."""
        group, member = key
        if key in self._lines and key not in self._resting:
            self._groups.setdefault(group, OrderedDict()).setdefault(member)
        self._next()

    def _leave(self, key: Key, rest: float) -> None:
        self._free += 1
        if rest > 0 and key not in self._resting:
            self._groups.get(key[0], OrderedDict()).pop(key[1], None)
            self._resting[key] = asyncio.get_running_loop().call_later(rest, self._rested, key)
        self._next()

    def _rested(self, key: Key) -> None:
        del self._resting[key]
        self._offer(key)

    def _next(self) -> None:
        """A turn that is free goes to the next group, and in it to the next member."""
        while self._free and self._groups:
            group, members = self._groups.popitem(last=False)
            if not members:
                continue
            member, _ = members.popitem(last=False)
            waiter = self._first((group, member))
            if (group, member) in self._lines:
                members[member] = None
            if members:
                self._groups[group] = members
            if waiter is not None:
                self._free -= 1
                waiter.set_result(None)

    def _first(self, key: Key) -> asyncio.Future[None] | None:
        """Who has waited longest of a member, and has not gone away."""
        line = self._lines[key]
        found = None
        while line and found is None:
            waiter = line.popleft()
            found = None if waiter.done() else waiter
        if not line:
            del self._lines[key]
        return found


class Turn:
    """One turn under way; the member that has it may say how long its member is to rest afterwards (s)."""

    __slots__ = ("rest",)

    def __init__(self) -> None:
        self.rest = 0.0
