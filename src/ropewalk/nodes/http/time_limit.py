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


class TimeLimit:
    """Ends what is awaited in it with TimeoutError after so many seconds; `expired` tells that from other ones."""

    __slots__ = ("_cancelling", "_expired", "_own", "_seconds", "_sharing", "_task")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._expired = False
        self._own: asyncio.TimerHandle | None = None
        self._sharing: set[TimeLimit] | None = None

    async def __aenter__(self) -> "TimeLimit":
        task = asyncio.current_task()
        assert task is not None, "what has a time limit is awaited in a task"
        self._task, self._cancelling = task, task.cancelling()
        if self._seconds >= SHORTEST_SHARED:
            self._sharing = _sharing(self._seconds)
            self._sharing.add(self)
        else:
            self._own = asyncio.get_running_loop().call_later(self._seconds, self._end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sharing is not None:
            self._sharing.discard(self)
        elif self._own is not None:
            self._own.cancel()
        # A task that was cancelled by its owner too stays cancelled.
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from raised

    def expired(self) -> bool:
        """Whether it was this limit that ended it."""
        return self._expired

    def _end(self) -> None:
        self._expired = True
        self._task.cancel()


_Ticks = dict[int, set[TimeLimit]]
_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Ticks] = WeakKeyDictionary()


def _sharing(seconds: float) -> set[TimeLimit]:
    """Those that end with the first tick after so many seconds."""
    loop = asyncio.get_running_loop()
    ticks = _of_loops.setdefault(loop, {})
    tick = ceil((loop.time() + seconds) / TICK)
    found = ticks.get(tick)
    if found is None:
        found = ticks[tick] = set()
        loop.call_at(tick * TICK, _end, ticks, tick)
    return found


def _end(ticks: _Ticks, tick: int) -> None:
    for limit in list(ticks.pop(tick)):
        limit._end()
