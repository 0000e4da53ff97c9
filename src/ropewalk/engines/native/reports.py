"""What attempts report: gathered for one turn of the loop, so that those of one execution are one decision."""

import asyncio
import logging
from typing import TYPE_CHECKING

from ropewalk.core.signals import Failed, Signal
from ropewalk.engines.native.live import Live
from ropewalk.engines.runner import with_jitter

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine

_log = logging.getLogger("ropewalk.engine")


class Reports:
    """Those that have not been taken in yet; whoever else tells such an execution something comes after them."""

    def __init__(self, engine: "NativeEngine") -> None:
        self._engine = engine
        self._lives: list[Live] = []

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
        now = self._engine.store.now()
        for live in lives:
            try:
                self._take(live, now)
            except Exception as error:  # noqa: BLE001 -- a fault of ours concerns one execution, not its neighbours
                _log.exception("execution %s: what was reported cannot be taken in", live.id)
                self._engine.recovery.lost_the_store([live], error)
        self._engine.feed()

    def take(self, live: Live) -> None:
        """The same for one that has reports, before it is told anything else."""
        self._take(live, self._engine.store.now())

    def _take(self, live: Live, now: int) -> None:
        reports = live.reports
        if not reports:
            return
        live.reports = []
        live.unwritten = [*live.unwritten, *reports] if live.unwritten else reports
        self._engine.tell_together(live, reports, now)
        if not live.is_dirty:
            self._engine.let_go(live)  # they came too late to change anything
