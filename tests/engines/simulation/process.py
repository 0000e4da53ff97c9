"""One process: an engine on the store, from its opening to its end, good or bad."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

from ropewalk.core.definition import DEFAULT_LIMITS
from ropewalk.core.errors import RopewalkError
from ropewalk.engines.native.engine import NativeEngine
from ropewalk.engines.settings import WorkerSettings
from ropewalk.nodes.base import Facilities, Registry
from ropewalk.service import Service
from ropewalk.store import workspaces
from ropewalk.store.access import Store
from tests.engines.simulation.faults import Faults, SimulatedStore
from tests.engines.simulation.loop import Actor

EPOCH = 1_750_000_000_000_000
WORKSPACE = "default"
DRAIN = 1.0


class Setup:
    """What every process of a history has in common."""

    def __init__(self, db: str, types: Registry, chance: Random) -> None:
        self.db = db
        self.types = types
        self.slots = {WORKSPACE: chance.randint(1, 3)} if chance.random() < 0.7 else {}
        self.native = WorkerSettings(
            hands=chance.choice((1, 2, 4, 5_000)), executions=chance.choice((2, 5, 20_000)), drain_seconds=DRAIN
        )


class Process:
    """An engine, those who ask it for something, and everything that is under way in it."""

    def __init__(self, setup: Setup, faults: Faults, native: WorkerSettings) -> None:
        self.setup = setup
        self.native = native
        self.faults = faults
        self.actor = Actor()
        self._requests: list[asyncio.Task[None]] = []
        self._facilities = Facilities()
        self.engine: NativeEngine
        self.service: Service

    async def open(self) -> None:
        """Start as the wiring does, without a socket."""
        store = await self._open_store()
        self.engine = NativeEngine(store, self.setup.types, self._facilities, self.native)
        # Few hands, small commits: so that what is ready to be written waits for what is being written.
        self.engine.commit.limit(min(self.native.hands, self.engine.commit.largest))
        self.service = self.service_of(WORKSPACE)
        await self.engine.open()

    def service_of(self, workspace: str) -> Service:
        return Service(self.engine.store, self.engine, self.setup.types, {}, DEFAULT_LIMITS, workspace)

    async def _open_store(self) -> Store:
        raise NotImplementedError

    async def _close_store(self) -> None:
        raise NotImplementedError

    def ask(self, request: Coroutine[Any, Any, None]) -> None:
        """Someone asks this process for something; what is not answered when it ends is never answered."""
        self._requests.append(self.actor.begin(request))

    def unanswered(self) -> int:
        return sum(not request.done() for request in self._requests)

    def broken(self) -> list[str]:
        """What requests raised that is no answer."""
        ended = [request for request in self._requests if request.done() and not request.cancelled()]
        return [f"a request broke: {request.exception()!r}" for request in ended if request.exception() is not None]

    async def stop(self) -> None:
        """End as a process is meant to."""
        for request in self._requests:
            request.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)
        try:
            await self.engine.close()
        except RopewalkError:
            return  # it says that not everything could be written; the log knows what was
        finally:
            await self._leave()

    async def die(self) -> None:
        """Gone at once: nothing that it thinks or does from now on is written."""
        self.faults.is_dead = True
        await self.actor.end()
        if hasattr(self, "engine"):
            self.engine.deciding.timers.close()
            self.engine.hands.close()
        await self._leave()

    async def _leave(self) -> None:
        await self._facilities.close()
        await self._close_store()


class SoleProcess(Process):
    """Owns the store while it lives."""

    def __init__(self, setup: Setup, faults: Faults, wall: int) -> None:
        super().__init__(setup, faults, setup.native)
        self._wall = wall
        self._store: SimulatedStore | None = None

    async def _open_store(self) -> Store:
        setup = self.setup
        store = self._store = await SimulatedStore.open(setup.db, wall=self._wall)
        store.faults = self.faults
        store.hurry()
        async with store.transaction() as tx:
            await workspaces.ensure_default(tx, store.now())
            await workspaces.override_slots(tx, WORKSPACE, setup.slots.get(WORKSPACE))
        return store

    async def _close_store(self) -> None:
        if self._store is not None:
            await self._store.close()
