"""The clock that store time goes by between two looks at the store."""

import time
from time import clock_gettime_ns
from typing import Final

# It goes on while the machine sleeps, where there is one that does: a timer must not be late by a night.
TICKING: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_DRIFT: Final = 1_000
_TOO_MUCH: Final = 1_000_000


def ticks() -> int:
    """µs since some moment in the past; never goes back, and cannot be set."""
    return clock_gettime_ns(TICKING) // 1000


class SharedClock:
    """The database's time as a worker knows it: what it last heard, plus what has passed since; never going back.

    It is never ahead of the database: what a worker dates and commits is dated before the commit. So a worker that sees
    the commit, and asks the database for the time afterwards, gives what follows a later time.
    """

    def __init__(self) -> None:
        self._offset = 0
        self._latest = 0

    def learn(self, heard: int, answered_at: int) -> None:
        """The database said `heard`, before this tick. May be called from any thread.

        An answer that took its time must not set the clock back by that; clocks drift apart by less than this.
        """
        offset, drift = heard - answered_at, self._offset - _DRIFT
        self._offset = offset if self._offset - offset > _TOO_MUCH else max(offset, drift)

    def reach(self, heard: int) -> None:
        """It is at least that late."""
        self._latest = max(self._latest, heard)

    def now(self) -> int:
        """Store time (µs)."""
        now = self._offset + ticks()
        if now > self._latest:
            self._latest = now
        return self._latest
