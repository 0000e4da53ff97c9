"""Samples of what only the store knows, for the metrics; taken when a caller asks, and kept for a few seconds."""

import asyncio
from typing import Final

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import Unavailable
from ropewalk.store import metrics
from ropewalk.store.access import Store
from ropewalk.telemetry.logs import logger
from ropewalk.telemetry.metrics import Sample

KEPT: Final = 5 * SECOND
_log = logger("engine")


class Sampler:
    """Asks the store, at most every few seconds, however many callers ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._taken_at: int | None = None
        self._last: Sample | None = None
        self._asking = asyncio.Lock()

    async def sample(self) -> Sample | None:
        """What the store said a few seconds ago at most; None if it does not answer."""
        async with self._asking:
            now = self._store.now()
            if self._taken_at is None or now - self._taken_at > KEPT:
                self._taken_at, self._last = now, await self._ask()
            return self._last

    async def _ask(self) -> Sample | None:
        try:
            full = await metrics.full_workspaces(self._store)
            sample = Sample(
                waiting=await metrics.waiting(self._store),
                at_capacity=len(full),
                dead_letters=await metrics.dead_letters(self._store),
                breakers=await metrics.breakers(self._store),
                set_aside=await metrics.set_aside(self._store),
            )
        except Unavailable as error:
            _log.warning("metrics.store_away", reason=str(error))
            return None
        for each in full:
            _log.info("workspace.at_capacity", workspaceId=each.id, active=each.taken, limit=each.slots)
        return sample
