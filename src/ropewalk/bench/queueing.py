"""How fast the queue is: from acceptance to the first node, from a freed slot to the next start, beside a crowd.

Everything here is in workspaces with a limit, where a start is not carried out by the worker that accepts it but goes
through the queue like any other.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import uvloop

from ropewalk.bench.contenders import NATIVE, NATIVE_2, Broken
from ropewalk.bench.figures import Round, percentile
from ropewalk.bench.native import finished
from ropewalk.bench.processes import LIMIT
from ropewalk.bench.rounds import Measured, turns
from ropewalk.bench.stores import POSTGRES, Stores
from ropewalk.bench.waiting import crowd
from ropewalk.engines.base import Version
from ropewalk.engines.settings import WorkerSettings
from ropewalk.nodes.function import FunctionNode
from ropewalk.service import Service
from ropewalk.wiring import Settings, node_types, open_service

PER_SECOND: Final = 20
SLOTS: Final = 5
NOTING: Final = "bench.note"
DOCUMENT: Final[dict[str, Any]] = {
    "ropewalk": 1,
    "name": "noted",
    "nodes": [{"id": "n0", "type": NOTING, "with": {"number": "{{ input }}"}}],
    "edges": [],
}


class Notebook:
    """When the node of each start began and ended, by the number it was given."""

    def __init__(self) -> None:
        self.began: dict[int, float] = {}
        self.ended: dict[int, float] = {}
        self.doors = asyncio.Event()
        self.doors.set()
        self.nap = 0.0

    def node_type(self) -> FunctionNode[Any, Any]:
        async def note(number: int) -> int:
            self.began[number] = time.perf_counter()
            await self.doors.wait()
            if self.nap:
                # Not all alike: slots are to be freed one by one.
                await asyncio.sleep(self.nap * (1 + number % SLOTS))
            self.ended[number] = time.perf_counter()
            return number

        return FunctionNode(note, name=NOTING)


class Fleet:
    """Workers of one store in this process; starts are accepted at the door."""

    def __init__(self, door: Service, notebook: Notebook, version: Version) -> None:
        self.door = door
        self.notebook = notebook
        self._version = version
        self._numbers = iter(range(1 << 30))

    async def start(self) -> tuple[int, str, float]:
        """A start: its number, the execution, and when it was accepted."""
        number = next(self._numbers)
        execution = await self.door.start(self._version, number)
        return number, execution, time.perf_counter()

    async def dispatched(self) -> float:
        """One start from its acceptance to its first node, in ms; it has ended on return."""
        number, execution, accepted = await self.start()
        await finished(self.door, execution)
        # A worker may be faster than the news of the acceptance.
        return max(0.0, self.notebook.began[number] - accepted) * 1000


@asynccontextmanager
async def opened(contender: str, db: str, slots: int) -> AsyncIterator[Fleet]:
    """One worker that accepts and executes; or, as `native-2`, two that execute what a third accepts."""
    notebook = Notebook()
    executing = Settings(db=db, default_slots=slots)
    accepting = Settings(db=db, default_slots=slots, worker=WorkerSettings(claims=False))
    async with AsyncExitStack() as stack:
        services = [
            await stack.enter_async_context(open_service(settings, types=node_types([notebook.node_type()])))
            for settings in ([accepting, executing, executing] if contender == NATIVE_2 else [executing])
        ]
        fleet = Fleet(services[0], notebook, await services[0].save(DOCUMENT))
        await fleet.dispatched()
        yield fleet


def contenders(stores: Stores) -> tuple[str, ...]:
    return (NATIVE, NATIVE_2) if stores.name == POSTGRES else (NATIVE,)


def _measured(carry_out: Callable[[str, str, int], Awaitable[Round]], starts: int, rounds: int, seconds: float,
              stores: Stores) -> Measured:  # fmt: skip
    """Rounds of all contenders in turn, each on a store of its own."""
    measured: Measured = {name: [] for name in contenders(stores)}
    for _ in turns(rounds, seconds):
        for name, found in measured.items():
            with stores.fresh() as db:
                found.append(uvloop.run(_in_time(carry_out(name, db, starts))))
    return measured


# From acceptance to the first node


def dispatch(starts: int, rounds: int, seconds: float, stores: Stores) -> Measured:
    """Rounds of starts at a steady pace."""
    return _measured(_dispatch, starts, rounds, seconds, stores)


async def _dispatch(contender: str, db: str, starts: int) -> Round:
    async with opened(contender, db, slots=1_000) as fleet:
        delays = await asyncio.gather(*[_after(place / PER_SECOND, fleet) for place in range(starts)])
    return {"dispatch_ms_p95": percentile(sorted(delays), 95)}


async def _after(seconds: float, fleet: Fleet) -> float:
    await asyncio.sleep(seconds)
    return await fleet.dispatched()


# From a freed slot to the next start


def refill(starts: int, rounds: int, seconds: float, stores: Stores) -> Measured:
    """Rounds of a workspace that is full, with so many starts waiting for a slot."""
    return _measured(_refill, starts, rounds, seconds, stores)


async def _refill(contender: str, db: str, starts: int) -> Round:
    async with opened(contender, db, slots=SLOTS) as fleet:
        notebook = fleet.notebook
        notebook.began.clear()
        notebook.ended.clear()
        notebook.nap = 0.01
        notebook.doors.clear()
        started = await asyncio.gather(*[fleet.start() for _ in range(SLOTS + starts)])
        notebook.doors.set()
        await asyncio.gather(*[finished(fleet.door, execution) for _, execution, _ in started])
        delays = sorted(refills(sorted(notebook.began.values()), sorted(notebook.ended.values())))
    return {"refill_ms_p95": percentile(delays, 95)}


def refills(began: list[float], ended: list[float]) -> Iterator[float]:
    """How long each freed slot was empty (ms): the first end makes room for the first start beyond the limit …

    Counted from the end of the node, which is not durable then: the time of the commit is in it.
    """
    return ((start - end) * 1000 for end, start in zip(ended, began[SLOTS:], strict=False))


# Whom a crowd delays


def fairness(size: int, starts: int, rounds: int, seconds: float, stores: Stores) -> Measured:
    """Rounds of single starts with and without a crowd that waits in a full workspace."""
    found = []
    for _ in turns(rounds, seconds):
        with stores.fresh() as db:
            found.append(uvloop.run(_in_time(_fairness(db, size, starts))))
    return {NATIVE: found}


async def _fairness(db: str, size: int, starts: int) -> Round:
    async with opened(NATIVE, db, slots=SLOTS) as fleet:
        alone = [await fleet.dispatched() for _ in range(starts)]
        await crowd(fleet.door.store, "crowded", size)
        beside = [await fleet.dispatched() for _ in range(starts)]
    return {"fairness_ms": percentile(sorted(beside), 95) - percentile(sorted(alone), 95)}


async def _in_time(work: Awaitable[Round]) -> Round:
    try:
        async with asyncio.timeout(LIMIT):
            return await work
    except TimeoutError:
        raise Broken(f"a round did not end within {LIMIT:g} s") from None
