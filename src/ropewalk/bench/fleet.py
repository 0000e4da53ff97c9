"""Several workers on one shared store, each a process of its own."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

import asyncpg
import uvloop

from ropewalk.bench.contenders import NATIVE_1, NATIVE_2, NATIVE_2_OWN, Broken
from ropewalk.bench.figures import Round
from ropewalk.bench.native import serving
from ropewalk.bench.processes import Child, started
from ropewalk.bench.shapes import diamond
from ropewalk.engines.base import Version
from ropewalk.engines.settings import WorkerSettings
from ropewalk.service import Service
from ropewalk.wiring import Settings

LOOK_EVERY: Final = 0.005
WARM_UP: Final = 5
"""The warm-up is this part of a round."""


@contextmanager
def workers(db: str, count: int) -> Iterator[list[Child]]:
    """Workers that are ready."""
    with ExitStack() as stack:
        children = [stack.enter_context(started("worker", db)) for _ in range(count)]
        for child in children:
            child.words("ready")
        yield children


def _rate(executions: int, seconds: float, children: Sequence[Child]) -> Round:
    for child in children:
        child.dismiss()
    rate = executions / seconds
    peak = max(child.when("peak") for child in children)
    return {"executions_per_s": rate, "nodes_per_s": rate * diamond().size, "peak_rss_mb": peak}


# What one process accepts, the workers claim


def sharing(count: int, db: str, executions: int, limit: float) -> Round:
    """All are accepted by a process that executes none; until the last has ended."""
    with workers(db, count) as children:
        return _rate(executions, uvloop.run(_accept(db, executions, limit)), children)


async def _accept(db: str, executions: int, limit: float) -> float:
    accepting = Settings(db=db, worker=WorkerSettings(claims=False))
    async with serving(accepting) as service, _watching(db) as connection:
        version = await service.save(diamond().document())
        try:
            async with asyncio.timeout(limit):
                await _until_ended(service, version, connection, max(1, executions // WARM_UP))
                return await _until_ended(service, version, connection, executions)
        except TimeoutError:
            raise Broken(f"{executions} executions did not end within {limit:g} s") from None


async def _until_ended(service: Service, version: Version, connection: Any, executions: int) -> float:
    before = await connection.fetchval("select count(*) from execution where state = 'SUCCESS'")
    began = time.perf_counter()
    await asyncio.gather(*[service.start(version) for _ in range(executions)])
    # Asked here and not through the service, which would look at each of them by itself and slow the workers down.
    while await connection.fetchval("select exists (select 1 from live)"):
        await asyncio.sleep(LOOK_EVERY)
    seconds = time.perf_counter() - began
    after = await connection.fetchval("select count(*) from execution where state = 'SUCCESS'")
    if after - before != executions:
        raise Broken(f"of {executions} executions {after - before} succeeded")
    return seconds


@asynccontextmanager
async def _watching(db: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(db)
    try:
        yield connection
    finally:
        await connection.close()


# Each worker accepts its own


def own(count: int, db: str, executions: int, limit: float) -> Round:
    """Each worker accepts and executes as many as one does that is alone; until the last has ended."""
    with workers(db, count) as children:
        _told(children, max(1, executions // WARM_UP))
        return _rate(count * executions, _told(children, executions), children)


def _told(children: Sequence[Child], executions: int) -> float:
    began = time.perf_counter()
    for child in children:
        child.tell(f"execute {executions}")
    for child in children:
        child.words("done")
    return time.perf_counter() - began


FLEETS: Final[Mapping[str, Callable[[str, int, float], Round]]] = {
    NATIVE_1: partial(sharing, 1),
    NATIVE_2: partial(sharing, 2),
    NATIVE_2_OWN: partial(own, 2),
}
SHARES: Final = {NATIVE_2_OWN: 2}
"""How often the executions of a round are carried out, if not once."""
