"""One heap of moments at which something is due, and one timer of the loop for the earliest of them."""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Generic, TypeVar

Thing = TypeVar("Thing")

SOONEST = 0.0005
LATEST = 5.0
"""A machine that sleeps stops the loop's clock, and not the store's: look at least so often (s)."""


class Timers(Generic[Thing]):
    """Calls `fire(thing)` when its moment has come; what is no longer wanted is for `fire` to notice."""

    def __init__(self, now: Callable[[], int], fire: Callable[[Thing], None]) -> None:
        self._now = now
        self._fire = fire
        self._heap: list[tuple[int, int, Thing]] = []
        self._count = 0
        self._handle: asyncio.TimerHandle | None = None
        self._set_for: int | None = None

    def add(self, at: int, thing: Thing) -> None:
        self._count += 1
        heappush(self._heap, (at, self._count, thing))
        if self._set_for is None or at < self._set_for:
            self._set()

    def _set(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        at = self._set_for = self._heap[0][0]
        delay = min(LATEST, max(SOONEST, (at - self._now()) / 1_000_000))
        self._handle = asyncio.get_running_loop().call_later(delay, self.look)

    def look(self) -> None:
        """Fire what is due now, and set the timer for the next."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._set_for = None
        now = self._now()
        while self._heap and self._heap[0][0] <= now:
            self._fire(heappop(self._heap)[2])
        if self._heap:
            self._set()

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._heap.clear()
