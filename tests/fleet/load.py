"""Clients that start mixed workflows without end, and note every answer they are given."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from ropewalk.core.errors import RopewalkError
from ropewalk.engines.base import Version
from ropewalk.service import Service
from tests.crash.ledgers import Accepted, Ledger
from tests.crash.workflows import Document
from tests.fleet.fleet import Fleet
from tests.fleet.workflows import CHILD, MIXED, input_for
from tests.polling import until

CLIENTS: Final = 4
PAUSE: Final = (0.05, 0.25)
"""Between two starts of one client, in seconds."""


class Load:
    """Starts that go on until told to stop; `accepted` and `refused` count the answers."""

    def __init__(self, service: Service, ledger: Ledger[Accepted], seed: int) -> None:
        self._service = service
        self._ledger = ledger
        self._chance = random.Random(seed)
        self._stop = asyncio.Event()
        self.accepted = 0
        self.refused = 0

    async def run(self, documents: Sequence[Document]) -> None:
        await self._service.save(CHILD)
        versions = [await self._service.save(document) for document in documents]
        await asyncio.gather(*(self._client(versions) for _ in range(CLIENTS)))

    def stop(self) -> None:
        self._stop.set()

    async def _client(self, versions: Sequence[Version]) -> None:
        while not await self._is_stopped(self._chance.uniform(*PAUSE)):
            await self._start(self._chance.choice(versions))

    async def _start(self, version: Version) -> None:
        """A start that is refused was not accepted: the client asks again."""
        try:
            execution = await self._service.start(version, input=input_for(self._chance))
        except RopewalkError:
            self.refused += 1
        else:
            self.accepted += 1
            self._ledger.write(Accepted(execution, version.plan.definition.name))

    async def _is_stopped(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return False
        return True


@asynccontextmanager
async def under_load(fleet: Fleet, seed: int = 1, documents: Sequence[Document] = MIXED) -> AsyncIterator[Load]:
    """Clients are at it meanwhile."""
    load = Load(fleet.client, fleet.place.clients, seed)
    running = asyncio.create_task(load.run(documents))

    async def has_begun() -> bool:
        return running.done() or load.accepted > 0

    try:
        await until(has_begun, "a first start is accepted")
        yield load
    finally:
        load.stop()
        await running


async def more_accepted(load: Load, count: int) -> None:
    """So many more starts are accepted."""
    wanted = load.accepted + count

    async def are_accepted() -> bool:
        return load.accepted >= wanted

    await until(are_accepted, f"{count} more starts are accepted")
