"""What can happen to a commit, and a store to which it happens."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from enum import StrEnum
from random import Random
from typing import Any

from ropewalk.store.access import Batch, Row, Value
from ropewalk.store.errors import StoreUnavailable
from ropewalk.store.sqlite import SqliteStore
from ropewalk.store.sqlite.transaction import SqliteTransaction


class Fate(StrEnum):
    """How a call of the store goes."""

    GOOD = "good"
    REFUSED = "commit refused"
    LOST = "answer lost"
    LATE = "commit late"
    SLOW = "answer late"
    DEAD_BEFORE = "death before a commit"
    DEAD_AFTER = "death after a commit"


BAD_NEWS = (*[Fate.REFUSED] * 3, *[Fate.LOST] * 2, Fate.DEAD_BEFORE, Fate.DEAD_AFTER)
TROUBLES = (*BAD_NEWS, Fate.LATE, Fate.SLOW)
READING = 0.3
"""How much likelier it is that a commit has trouble than that a question has."""


class Faults:
    """Chance, for the store of one process; after its death nothing it asks for is ever answered."""

    def __init__(self, chance: Random, rate: float, sometimes: Counter[str], die: Callable[[], None]) -> None:
        self.rate = rate
        self._chance = chance
        self._sometimes = sometimes
        self._die = die
        self.is_dead = False
        # Whether there is no way to the store at the moment.
        self.is_cut_off = False

    def calm(self) -> None:
        """From now on everything goes well."""
        self.rate = 0.0
        self.is_cut_off = False

    async def before(self) -> Fate:
        """Draw the fate of a commit, and let it have what comes before the commit."""
        await self._only_living()
        fate = self._chance.choice(TROUBLES) if self._chance.random() < self.rate else Fate.GOOD
        if fate is not Fate.GOOD:
            self._sometimes[fate] += 1
        # Bad news takes its time as well: others go on meanwhile.
        if fate in (Fate.REFUSED, Fate.LATE, Fate.DEAD_BEFORE):
            await self._wait()
        if fate is Fate.REFUSED:
            raise StoreUnavailable("not now")
        if fate is Fate.DEAD_BEFORE:
            await self._end()
        return fate

    async def after(self, fate: Fate) -> None:
        """Let a commit that is durable have what comes after it."""
        await self._only_living()
        if fate in (Fate.LOST, Fate.SLOW, Fate.DEAD_AFTER):
            await self._wait()
        if fate is Fate.LOST:
            raise StoreUnavailable("nobody knows")
        if fate is Fate.DEAD_AFTER:
            await self._end()

    async def asked(self) -> None:
        """A question is put to the store, or a sign of life."""
        await self._only_living()
        if self._chance.random() < self.rate * READING:
            self._sometimes["question refused"] += 1
            raise StoreUnavailable("no answer now")

    async def _wait(self) -> None:
        await asyncio.sleep(self._chance.choice((0, 0.001, 0.1, 2)))
        await self._only_living()

    async def _only_living(self) -> None:
        if self.is_dead:
            await _never()
        if self.is_cut_off:
            raise StoreUnavailable("there is no way to the store")

    async def _end(self) -> None:
        if not self.rate:
            return  # the faults stopped while this one was on its way
        self.is_dead = True
        self._die()
        await _never()


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


class SimulatedStore(SqliteStore):
    """The embedded store in virtual time, with faults."""

    faults: Faults

    def _start_clock(self, wall: int) -> None:
        super()._start_clock(wall)
        self._virtual_offset = self._began_at - _ticking()

    def now(self) -> int:
        return self._virtual_offset + _ticking()

    def hurry(self) -> None:
        """Nobody pulls the plug of this machine: syncing would only take time."""
        self._connection.execute("pragma synchronous = off")

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        await self.faults.asked()
        return await super().fetch(name, *arguments)

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        await self.faults.asked()
        return await super().fetch_one(name, *arguments)

    def write(self, batch: Batch) -> Awaitable[None]:
        return _Later(lambda: self._write_with_luck(batch))

    async def _write_with_luck(self, batch: Batch) -> None:
        fate = await self.faults.before()
        await super().write(batch)
        await self.faults.after(fate)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SqliteTransaction]:
        fate = await self.faults.before()
        async with super().transaction() as transaction:
            yield transaction
        await self.faults.after(fate)


class _Later:
    """What is begun when somebody waits for it: whoever dies before that leaves nothing behind."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, None, None]:
        return self._work().__await__()


def _ticking() -> int:
    return round(asyncio.get_running_loop().time() * 1_000_000)
