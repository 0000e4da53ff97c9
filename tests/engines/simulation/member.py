"""One worker of a simulated fleet."""

import asyncio
from random import Random

from ropewalk.engines.settings import DEFAULT_POOL, WorkerSettings
from ropewalk.store.access import Store
from tests.engines.simulation.faults import Faults
from tests.engines.simulation.process import DRAIN, Process, Setup
from tests.engines.simulation.shared import Clock, Database, Registration, SharedStore

ERRORS = (0, 0, 0, -500, -20_000, -300_000)
"""How far a worker is behind the store's time after it has heard it (µs): by as much as the answer was under way."""
DRIFTS = (0, 0, -0.0001, -0.001)
HANDS = (1, 1, 1, 2, 2, 5_000)
ROOM = 4
"""How much more a worker is ready to take on than it has hands for."""
LATE_HEARTS = (0, 0.01, 0.1, 1)
"""How much later than its loop the heart of a stopped worker goes on (s): until then it knows of nothing it missed."""


class Member(Process):
    """An engine on the shared store."""

    def __init__(self, setup: Setup, faults: Faults, native: WorkerSettings, database: Database, name: str) -> None:
        super().__init__(setup, faults, native)
        self.name = name
        self.death = asyncio.Event()
        chance = database.chance
        clock = Clock(chance.choice(ERRORS), chance.choice(DRIFTS))
        about = Registration(name, native.pool, native.hands + ROOM)
        self.store = SharedStore(database, faults, about, self.actor, clock)

    @property
    def is_serving(self) -> bool:
        return not self.death.is_set() and hasattr(self, "service")

    async def _open_store(self) -> Store:
        await self.store.open()
        return self.store

    async def _close_store(self) -> None:
        if self.faults.is_dead:
            await self._end_heartbeat()
        await self.store.close()

    async def _end_heartbeat(self) -> None:
        """It died with the rest."""
        heartbeat, self.store.heartbeat = self.store.heartbeat, None
        if heartbeat is not None:
            await heartbeat.end()

    # What happens to it

    def stop_for_a_while(self, *, and_heart: bool) -> None:
        """Its loop is blocked, or its whole process is stopped."""
        self.actor.pause()
        if and_heart and self.store.heartbeat is not None:
            self.store.heartbeat.actor.pause()

    def go_on(self) -> None:
        """Which of its threads is first is up to the machine."""
        if self.store.heartbeat is not None:
            late = self.store.database.chance.choice(LATE_HEARTS)
            asyncio.get_running_loop().call_later(late, self.store.heartbeat.actor.resume)
        self.actor.resume()

    def cut_off(self) -> None:
        """There is no way to the store; what the store knows of its session ends soon."""
        self.faults.is_cut_off = True
        self.store.database.sessions.pop(self.store.worker, None)

    def reconnect(self) -> None:
        self.faults.is_cut_off = False


def some_settings(chance: Random, pool: str) -> WorkerSettings:
    """Those of the pool own nothing, as the wiring has it; a few others only record what they are told."""
    return WorkerSettings(
        claims=pool == DEFAULT_POOL and chance.random() < 0.9,
        pool=pool,
        hands=chance.choice(HANDS),
        executions=chance.choice((2, 5, 20_000)),
        drain_seconds=DRAIN,
    )
