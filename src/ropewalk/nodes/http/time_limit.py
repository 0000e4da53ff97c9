"""The time limit of a call. Calls that may take seconds share timers, a few for all of them: nearly every one ends long
before, and would pay for a timer of its own in vain.
"""

import asyncio
from math import ceil
from types import TracebackType
from typing import Final
from weakref import WeakKeyDictionary

TICK: Final = 0.1
"""By how much a limit that is shared may be longer (s)."""
SHORTEST_SHARED: Final = 2.0

_Ticks = dict[int, set[asyncio.Timeout]]
_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Ticks] = WeakKeyDictionary()


class TimeLimit:
    """Ends what is awaited in it with TimeoutError after so many seconds; `expired` tells that from other ones."""

    __slots__ = ("_limit", "_seconds", "_sharing")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._limit = asyncio.timeout(None if seconds >= SHORTEST_SHARED else seconds)
        self._sharing: set[asyncio.Timeout] | None = None

    async def __aenter__(self) -> "TimeLimit":
        await self._limit.__aenter__()
        if self._seconds >= SHORTEST_SHARED:
            self._sharing = _sharing(self._seconds)
            self._sharing.add(self._limit)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sharing is not None:
            self._sharing.discard(self._limit)
        await self._limit.__aexit__(kind, raised, trace)

    def expired(self) -> bool:
        """Whether it was this limit that ended it."""
        return self._limit.expired()


def _sharing(seconds: float) -> set[asyncio.Timeout]:
    """Those that end with the first tick after so many seconds."""
    loop = asyncio.get_running_loop()
    ticks = _of_loops.setdefault(loop, {})
    tick = ceil((loop.time() + seconds) / TICK)
    found = ticks.get(tick)
    if found is None:
        found = ticks[tick] = set()
        loop.call_at(tick * TICK, _end, loop, ticks, tick)
    return found


def _end(loop: asyncio.AbstractEventLoop, ticks: _Ticks, tick: int) -> None:
    for limit in list(ticks.pop(tick)):
        limit.reschedule(loop.time())
