"""One process: an engine on the store, from its opening to its end, good or bad."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

from ropewalk.core.definition import DEFAULT_LIMITS
from ropewalk.core.errors import RopewalkError
from ropewalk.engines.native.engine import NativeEngine, NativeSettings
from ropewalk.nodes.base import Facilities, Registry
from ropewalk.service import Service
from ropewalk.store import workspaces
from tests.engines.simulation.faults import Faults, SimulatedStore

EPOCH = 1_750_000_000_000_000
WORKSPACE = "default"
DRAIN = 1.0


class Setup:
    """What every process of a history has in common."""

    def __init__(self, db: str, types: Registry, chance: Random) -> None:
        self.db = db
        self.types = types
        self.slots = {WORKSPACE: chance.randint(1, 3)} if chance.random() < 0.7 else {}
        self.native = NativeSettings(
            hands=chance.choice((1, 2, 4, 5_000)), executions=chance.choice((2, 5, 20_000)), drain_seconds=DRAIN
        )


class Process:
    """Owns the store while it lives."""

    def __init__(self, setup: Setup, faults: Faults, wall: int) -> None:
        self._setup = setup
        self.faults = faults
        self._wall = wall
        self._strangers = asyncio.all_tasks()
        self._requests: list[asyncio.Task[None]] = []
        self._facilities = Facilities()
        self._store: SimulatedStore | None = None
        self.engine: NativeEngine
        self.service: Service

    async def open(self) -> None:
        """Start as the wiring does, without a socket."""
        setup = self._setup
        store = self._store = await SimulatedStore.open(setup.db, wall=self._wall)
        store.faults = self.faults
        store.hurry()
        async with store.transaction() as tx:
            await workspaces.ensure_default(tx, store.now())
        self.engine = NativeEngine(store, setup.types, self._facilities, setup.native, setup.slots.get)
        self.service = Service(store, self.engine, setup.types, {}, DEFAULT_LIMITS)
        await self.engine.open()

    def ask(self, request: Coroutine[Any, Any, None]) -> None:
        """Someone asks this process for something; what is not answered when it ends is never answered."""
        self._requests.append(asyncio.get_running_loop().create_task(request))

    def unanswered(self) -> int:
        return sum(not request.done() for request in self._requests)

    def broken(self) -> list[str]:
        """What requests raised that is no answer."""
        ended = [request for request in self._requests if request.done() and not request.cancelled()]
        return [f"a request broke: {request.exception()!r}" for request in ended if request.exception() is not None]

    async def stop(self) -> None:
        """End as a process is meant to."""
        await _stopped(self._requests)
        try:
            await self.engine.close()
        except RopewalkError:
            return  # it says that not everything could be written; the log knows what was
        finally:
            await self._leave()

    async def die(self) -> None:
        """Gone at once: nothing that it thinks or does from now on is written."""
        self.faults.is_dead = True
        mine = asyncio.all_tasks() - self._strangers - {asyncio.current_task()}
        await _stopped(sorted(mine, key=_age))
        if hasattr(self, "engine"):
            self.engine.timers.close()
            self.engine.hands.close()
        await self._leave()

    async def _leave(self) -> None:
        await self._facilities.close()
        if self._store is not None:
            await self._store.close()


def _age(task: asyncio.Task[Any]) -> int:
    """The order in which tasks came to be, which a set of them does not have."""
    return int(task.get_name().removeprefix("Task-"))


async def _stopped(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
