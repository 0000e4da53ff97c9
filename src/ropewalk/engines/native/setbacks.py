"""After a commit that failed: its executions are forgotten, and taken up again from their logs."""

import asyncio
import logging
import random

from ropewalk.core.errors import NotFound, RopewalkError, Unavailable
from ropewalk.core.signals import Signal
from ropewalk.engines.background import Background
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.deciding import Deciding
from ropewalk.engines.native.letters import Letters
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.ownership import OwnedElsewhere
from ropewalk.engines.native.recovery import Recovery
from ropewalk.engines.native.rejoining import Rejoining
from ropewalk.engines.watching import Watching
from ropewalk.store.access import Store
from ropewalk.store.errors import StaleWriter

PAUSES = (0.1, 0.5, 1, 2, 5, 5, 10, 10, 10, 30)
"""How long to wait at most before one whose commit failed is taken up, after the first failure, the second … (s)."""

_log = logging.getLogger("ropewalk.engine")


class Setbacks:
    """Gives executions up, and takes them up again."""

    def __init__(self, store: Store, background: Background, watching: Watching, memory: Memory, commit: GroupCommit,
                 deciding: Deciding, letters: Letters, recovery: Recovery, rejoining: Rejoining) -> None:  # fmt: skip
        self._store = store
        self._background = background
        self._watching = watching
        self._memory = memory
        self._commit = commit
        self._deciding = deciding
        self._letters = letters
        self._recovery = recovery
        self._rejoining = rejoining

    def give_up(self, lives: list[Live], error: Exception) -> None:
        """Forget what was decided on top of a commit that failed; the log knows better."""
        lives, lost = self._commit.with_bound(lives), self._recovery.lost
        if isinstance(error, StaleWriter) and self._store.is_shared:
            for live in lives:
                self._deciding.drop(live)
            self._rejoining.lost_the_lease(str(error))
            return
        _log.error("a commit failed; its %d executions are taken up again from their logs: %s", len(lives), error)
        for live in lives:
            # What is no fault of the store may be one of what was reported: that is not told a second time.
            reports = [*live.unwritten, *live.reports] if isinstance(error, Unavailable) else None
            self._deciding.drop(live)
            # A worker that is about to leave leaves it to the next: what it began now, it would not end.
            if live.id not in lost and not self._background.is_closing:
                lost.add(live.id)
                self._background.spawn(self._recover(live.id, live.setbacks, reports))

    async def _recover(self, execution: str, setbacks: int, reports: list[Signal] | None) -> None:
        """Take an execution up again from its log, unless it is another's by now."""
        try:
            live = await self._loaded_again(execution, setbacks, reports or [])
        finally:
            self._recovery.lost.discard(execution)
        if live is not None:
            self._recovery.go_on(live, reports)

    async def _loaded_again(self, execution: str, setbacks: int, reports: list[Signal]) -> Live | None:
        """The execution as soon as the store lets us, asked the less often the more often its commits have failed.

        What can be read need not be written yet: of a store that is full one could ask it without end.
        """
        while True:
            # Not all at the same moment: an execution that was refused for another's sake is not written with it again.
            await asyncio.sleep(PAUSES[min(setbacks, len(PAUSES) - 1)] * random.uniform(0.5, 1))
            setbacks += 1
            try:
                await self._letters.catch_up()
                live = await self._memory.load(execution)
                await self._recovery.find_offers([live])
                await self._expect_blobs(live, reports)
                await self._watching.catch_up(execution)
            except (NotFound, OwnedElsewhere):
                return None  # never accepted, or another's by now
            except RopewalkError as error:
                _log.warning("execution %s cannot be taken up yet: %s", execution, error)
                continue
            except Exception:  # noqa: BLE001 -- a fault of ours must not leave it lying
                _log.exception("taking up execution %s failed; it is tried again", execution)
                continue
            if not live.is_dropped:  # others may have told it something meanwhile, and have lost that
                live.setbacks = setbacks
                return live

    async def _expect_blobs(self, live: Live, reports: list[Signal]) -> None:
        """Large results must be at hand before they are reported."""
        for report in reports:
            await live.expect(self._memory.values.load, report)
