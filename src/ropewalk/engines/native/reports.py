"""What attempts report: gathered for one turn of the loop, so that those of one execution are one decision."""

import asyncio
from collections.abc import Callable

from ropewalk.core.signals import Failed, Signal
from ropewalk.engines.native.live import Live
from ropewalk.engines.runner import with_jitter


class Reports:
    """Those that have not been taken in yet."""

    def __init__(self) -> None:
        self._lives: list[Live] = []
        # Lets these executions decide about what was reported.
        self.decide: Callable[[list[Live]], None] = lambda lives: None

    @property
    def has_any(self) -> bool:
        return bool(self._lives)

    def add(self, live: Live, signal: Signal) -> None:
        """An attempt ended, and a hand is free."""
        if type(signal) is Failed:
            signal = with_jitter(signal)
        if not live.reports:
            if not self._lives:
                asyncio.get_running_loop().call_soon(self.take_all)
            self._lives.append(live)
        live.reports.append(signal)

    def take_all(self) -> None:
        """Let every execution decide about what was reported."""
        lives, self._lives = self._lives, []
        self.decide(lives)
