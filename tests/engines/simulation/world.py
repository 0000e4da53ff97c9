"""The world of one seed: processes that come and go on one store, and the people around them."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Any
from uuid import UUID

import uuid_utils

from ropewalk.core.errors import RopewalkError
from tests.engines.outside import Outside, WatchedTypes
from tests.engines.simulation.faults import Faults
from tests.engines.simulation.nodes import DURATIONS, whims
from tests.engines.simulation.people import People
from tests.engines.simulation.process import EPOCH, Process, Setup, SoleProcess
from tests.engines.simulation.workflows import documents_of

RATES = (0.01, 0.05, 0.1, 0.2)
LENGTHS = (5, 30, 120)
LIVES = (1, 10, 60, 1000)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """The chance and the ids the engine takes from outside come from the seed while the context lasts."""
    state, uuid7 = random.getstate(), uuid_utils.uuid7
    numbers, chance = count(1), Random(f"ids {seed}")
    random.seed(seed)

    def made_up() -> UUID:
        """Growing with time, like the real ones."""
        return UUID(int=next(numbers) << 80 | 7 << 76 | chance.getrandbits(64))

    setattr(uuid_utils, "uuid7", made_up)  # noqa: B010 -- an assignment would have to have the very same type
    try:
        yield
    finally:
        random.setstate(state)
        uuid_utils.uuid7 = uuid7


class World:
    """Everything there is in one history."""

    durations: tuple[float, ...] = DURATIONS
    crowds: tuple[int, ...] = (10, 20, 40, 60)

    def __init__(self, seed: int, db: str) -> None:
        self.chance = Random(f"world {seed}")
        self.outside = Outside()
        self.sometimes: Counter[str] = Counter()
        self.trace: list[str] = []
        self.wrong: list[str] = []
        types = WatchedTypes()
        types.outside = self.outside
        for whim in whims(self.chance, self.durations):
            types.register(whim)
        self.setup = Setup(db, types, self.chance)
        self.people = People(db, self.chance, self.sometimes, self.note)
        self.people.documents = documents_of(seed)
        self.process: Process | None = None
        self._rate = self.chance.choice(RATES)
        self._death = asyncio.Event()

    def note(self, text: str) -> None:
        self.trace.append(f"{asyncio.get_running_loop().time():.6f} {text}")

    def unexpected(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What a task raised and nobody took: a finding."""
        self.wrong.append(f"{context['message']}: {context.get('exception')!r}")

    # People

    def invite(self, seconds: float) -> None:
        """People come at moments of their own, whether or not there is a process to talk to."""
        loop = asyncio.get_running_loop()
        for _ in range(self.chance.choice(self.crowds)):
            loop.call_later(self.chance.random() * seconds * 0.9, self._come)

    def _come(self) -> None:
        process = self.process
        if process is not None and not process.faults.is_dead:
            process.ask(self.people.do_something(process.service))

    # Processes

    async def open(self) -> Process:
        """A process that got so far as to serve."""
        while True:
            process = await self._try_to_open()
            if process is not None:
                self.process = process
                return process
            await asyncio.sleep(1)

    async def _try_to_open(self) -> Process | None:
        # Each looks at a clock of its own, which may be wrong.
        wall = EPOCH + round((asyncio.get_running_loop().time() + self.chance.choice((0, 0, 0, -30, 5))) * 1_000_000)
        self._death = asyncio.Event()
        faults = Faults(self.chance, self._rate, self.sometimes, self._death.set)
        process = SoleProcess(self.setup, faults, wall)
        if await self._unless_dead(process.actor.begin(process.open())):
            self.note("a process serves")
            return process
        self.note("a process could not open")
        await process.die()
        return None

    async def _unless_dead(self, work: "asyncio.Task[None]") -> bool:
        """Whether the work was done before the process died of it."""
        death = asyncio.get_running_loop().create_task(self._death.wait())
        await asyncio.wait((work, death), return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        if not work.done():
            return False
        try:
            await work
        except RopewalkError as error:
            self.note(f"refused: {error}")
            return False
        return True

    async def live_through(self, seconds: float) -> None:
        """Processes come and go until the time is over; the last one stays."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        await self.open()
        # One that dies of its opening is not the last one, however late it is.
        while loop.time() < end or self._death.is_set():
            await self._wait_for_death(max(0, min(end - loop.time(), self.chance.choice(LIVES))))
            if self._death.is_set() or loop.time() < end:
                await self._replace()

    async def _wait_for_death(self, seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, self._wake)
        self._woken = asyncio.Event()
        waiting = [asyncio.ensure_future(each.wait()) for each in (self._death, self._woken)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        timer.cancel()
        for each in waiting:
            each.cancel()

    def _wake(self) -> None:
        self._woken.set()

    async def _replace(self) -> None:
        await self.end_process(is_violent=self._death.is_set() or self.chance.random() < 0.5)
        await asyncio.sleep(self.chance.choice((0, 0.1, 20)))
        await self.open()

    async def end_process(self, *, is_violent: bool) -> None:
        """The process stops or is killed; a stop may end in a death."""
        process, self.process = self.process, None
        assert process is not None
        self.note("the process is killed" if is_violent else "the process stops")
        if not is_violent:
            is_violent = not await self._unless_dead(process.actor.begin(process.stop()))
        self.wrong += process.broken()
        if is_violent:
            self.sometimes["killed"] += 1
            await process.die()
        else:
            self.sometimes["stopped"] += 1

    def calm(self) -> None:
        """The faults stop, for this process and all that come."""
        self.note("the faults stop")
        self._rate = 0.0
        if self.process is not None:
            self.process.faults.calm()
