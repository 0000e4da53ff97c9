"""The heartbeat of a simulated worker: it goes on while the worker's loop is blocked, and not while it is stopped."""

import asyncio
from typing import TYPE_CHECKING

from ropewalk.core.errors import RopewalkError
from ropewalk.store.sqlite.connection import statements
from tests.engines.simulation.loop import Actor

if TYPE_CHECKING:
    from tests.engines.simulation.shared import SharedStore

BEATS_IN_A_LEASE = 3
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
BEAT = "update worker set heartbeat_at = ?, load = ?, has_lock = 1 where id = ? and epoch = ?"


class Heartbeat:
    """Renews the lease of one worker until told to leave."""

    def __init__(self, store: "SharedStore") -> None:
        self._store = store
        self._worker, self._epoch = store.worker, store.epoch
        self._renewed_at = asyncio.get_running_loop().time()
        self.actor = Actor()

    def open(self) -> None:
        self._store.database.sessions[self._worker] = None
        self.actor.begin(self._live())

    async def leave(self) -> None:
        """Nobody need wait for the lease to end, if they can be told."""
        await self.end()
        try:
            await self._store.faults.asked()
        except RopewalkError:
            return
        with self._store.database.transaction():
            self._store.database.connection.execute(statements()["leave_worker"], (self._worker, self._epoch))

    async def end(self) -> None:
        """It beats no more."""
        self._store.database.sessions.pop(self._worker, None)
        await self.actor.end()

    async def _live(self) -> None:
        pause, store = FIRST_PAUSE, self._store
        while True:
            is_renewed = await self._try_to_renew()
            if is_renewed is None:
                store.lose(f"worker {self._worker} was taken over from; it writes no more")
                return
            if self._left() <= 0:
                store.lose(f"{self._worker} could not renew its lease: it has given up its executions")
                return
            await asyncio.sleep(store.lease_seconds / BEATS_IN_A_LEASE if is_renewed else min(pause, self._left()))
            pause = FIRST_PAUSE if is_renewed else min(2 * pause, LONGEST_PAUSE)

    def _left(self) -> float:
        """Seconds until the lease runs out."""
        return self._renewed_at + self._store.lease_seconds - asyncio.get_running_loop().time()

    async def _try_to_renew(self) -> bool | None:
        """Whether the lease is renewed; None if it is someone else's."""
        asked_at, sessions = asyncio.get_running_loop().time(), self._store.database.sessions
        try:
            await self._store.faults.asked()
        except RopewalkError:
            sessions.pop(self._worker, None)
            return False
        if not self._renew():
            return None
        sessions[self._worker] = None
        self._renewed_at = asked_at
        return True

    def _renew(self) -> bool:
        """By the store's time, whatever the worker's clock says."""
        store, now = self._store, self._store.database.now()
        with store.database.transaction():
            row = (now, store.load, self._worker, self._epoch)
            is_ours = store.database.connection.execute(BEAT, row).rowcount == 1
        if is_ours:
            store.clock.learn(now)
        return is_ours
