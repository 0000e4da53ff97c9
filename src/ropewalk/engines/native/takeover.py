"""Goes on with what a dead worker left behind.

A worker is dead when the store has not heard of it for a lease, or has seen its session end and not come back. Its row
is locked and its epoch raised before anything of it is touched: what it still writes, should it come back, is
refused. One that was stopped in the middle of a transaction keeps that row locked, and the rows it was writing: its
sessions are ended first, and no worker waits for a row that is locked all the same.
"""

import asyncio
import logging

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import RopewalkError
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.recovery import BATCH, Recovery
from ropewalk.store import workers
from ropewalk.store.access import Store

EVERY = 1.0
MOST_WORKERS = 20
LEAST = 10
"""How many a worker takes that has no room: there may be no other worker."""
GRACE = 2.0

_log = logging.getLogger("ropewalk.engine")


class Takeover:
    """Looks for silent workers and takes up their executions."""

    def __init__(self, store: Store, most: int, memory: Memory, recovery: Recovery) -> None:
        self._store = store
        # How many executions a worker holds at most.
        self._most = most
        self._memory = memory
        self._recovery = recovery
        self._task: asyncio.Task[None] | None = None
        # When the last step was done, and when we came back from being away (s).
        self._stepped_at = self._back_at = 0.0

    def open(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def leave(self) -> None:
        """Say that this worker takes nothing more, for those that ask which worker could; nothing depends on it."""
        try:
            async with self._store.transaction() as tx:
                await workers.stop_taking(tx, tx.worker)
        except RopewalkError as error:
            _log.info("others cannot be told that this worker is leaving: %s", error)

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except RopewalkError as error:
                _log.warning("nothing can be taken over for now: %s", error)
                self._memory.suspect_strays()
                self._back_at = asyncio.get_running_loop().time()
            except Exception:  # noqa: BLE001 -- a fault of ours must not leave the dead's work lying
                _log.exception("taking over failed; it is tried again in %s s", EVERY)
                self._memory.suspect_strays()
            await asyncio.sleep(EVERY)
            self._step()

    def _step(self) -> None:
        """Something is done. Many steps that take a while are a store with much to do; a single long one is absence."""
        now = asyncio.get_running_loop().time()
        if now - self._stepped_at > GRACE:
            self._back_at = now
        self._stepped_at = now

    async def look(self) -> None:
        """Take over from everyone who is dead, as far as there is room: what is left is for others, or for later."""
        dead = await self._dead()
        if dead:
            await workers.hang_up(self._store, self._silence)
            self._step()
        room = max(LEAST, self._most - len(self._memory.lives))
        while dead and room > 0:
            taken = await self._take_from(dead, min(room, BATCH))
            await self._recovery.take_up(taken, self._step)
            room -= len(taken)

    async def _take_from(self, dead: dict[str, int], most: int) -> list[str]:
        """What the dead left behind, ours from now on; a dead worker with nothing left is forgotten."""
        taken: list[str] = []
        while dead and len(taken) < most:
            worker, before = next(iter(dead.items()))
            found = await self._take(worker, before, most - len(taken))
            self._step()
            taken += found
            if len(taken) < most:
                del dead[worker]
        return taken

    @property
    def _silence(self) -> int:
        """A worker that was last heard of before then is dead."""
        store = self._store
        return store.now() - round(store.lease_seconds * SECOND)

    @property
    def _to_come(self) -> int:
        """A heartbeat after then was written under another clock, before the database went back or was replaced."""
        return self._silence + 2 * round(self._store.lease_seconds * SECOND)

    async def _dead(self) -> dict[str, int]:
        """Who is dead, and since when they must not have been heard of."""
        store, silence = self._store, self._silence
        silent = await workers.silent(store, silence, self._to_come, MOST_WORKERS)
        self._step()
        departed = await store.departed()
        self._step()
        if departed:
            departed = await workers.owning(store, departed, MOST_WORKERS)
            self._step()
        if self._stepped_at - self._back_at < GRACE:
            return {}  # a worker that was away itself cannot tell which others are
        return dict.fromkeys(silent, silence) | dict.fromkeys(departed, workers.NEVER)

    async def _take(self, dead: str, before: int, most: int) -> list[str]:
        """Some of what the worker left behind, ours from now on; nothing while another worker has its row."""
        async with self._store.transaction() as tx:
            taken = await workers.take_over(tx, dead, tx.worker, before, most, self._to_come)
        if taken:
            _log.warning("worker %s is dead; %d of its executions go on here", dead, len(taken))
        return taken
