"""The floor: the least Python that makes each node durable before its successors start.

One task per node, which does the work, waits until its row is durable, and starts its successors; in-degree counters,
group commits of one row per node and one per start into the same store by the same `write`. No queue, lease, event or
run row: an engine's distance from here is the price of what it offers.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from uuid_utils import uuid7

from ropewalk.bench.contenders import Execute, Prepare
from ropewalk.bench.shapes import Shape, work
from ropewalk.core.errors import RopewalkError
from ropewalk.store.access import Store
from ropewalk.store.address import is_shared

_encode = msgspec.json.Encoder().encode


class Walk:
    """One execution: how many predecessors each node still waits for. Place 0 is the start, node n is place n + 1."""

    __slots__ = ("ended", "id", "left", "missing", "successors", "tasks")

    def __init__(self, successors: list[list[int]], missing: list[int]) -> None:
        self.id = str(uuid7())
        self.successors = successors
        self.missing = missing.copy()
        self.left = len(missing)
        self.tasks: list[asyncio.Task[None]] = []
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, error: RopewalkError) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)


class Floor:
    """Walks graphs, and lets nothing follow from what is not durable."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: list[tuple[str, int, bytes]] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._wake = asyncio.Event()

    async def prepare(self, shape: Shape) -> Execute:
        successors: list[list[int]] = [[] for _ in range(shape.size + 1)]
        missing = [0] * (shape.size + 1)
        for source, target in shape.edges:
            successors[source + 1].append(target + 1)
            missing[target + 1] += 1
        for root in [place for place in range(1, shape.size + 1) if not missing[place]]:
            successors[0].append(root)
            missing[root] = 1
        return lambda: self._execute(Walk(successors, missing))

    async def _execute(self, walk: Walk) -> None:
        await self._record(walk, 0, b"")
        self._go_on(walk, 0)
        await walk.ended

    async def _run(self, walk: Walk, place: int) -> None:
        try:
            await self._record(walk, place, _encode(await work()))
        except RopewalkError as error:
            walk.fail(error)
        else:
            self._go_on(walk, place)

    async def _record(self, walk: Walk, place: int, entry: bytes) -> None:
        durable = asyncio.get_running_loop().create_future()
        self._rows.append((walk.id, place, entry))
        self._waiting.append(durable)
        self._wake.set()
        await durable

    def _go_on(self, walk: Walk, place: int) -> None:
        missing, loop = walk.missing, asyncio.get_running_loop()
        for target in walk.successors[place]:
            missing[target] -= 1
            if not missing[target]:
                walk.tasks.append(loop.create_task(self._run(walk, target)))
        walk.left -= 1
        if not walk.left:
            walk.ended.set_result(None)

    async def commit_for_ever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            rows, waiting, self._rows, self._waiting = self._rows, self._waiting, [], []
            try:
                await self._store.write([("insert_log", rows)])
            except RopewalkError as error:
                for durable in waiting:
                    durable.set_exception(error)
            else:
                for durable in waiting:
                    durable.set_result(None)


@asynccontextmanager
async def opened(db: str) -> AsyncIterator[Prepare]:
    """The floor on a store of its own."""
    store = await open_store(db)
    floor = Floor(store)
    committing = asyncio.get_running_loop().create_task(floor.commit_for_ever())
    try:
        yield floor.prepare
    finally:
        committing.cancel()
        await asyncio.gather(committing, return_exceptions=True)
        await store.close()


async def open_store(db: str) -> Store:
    """The store at this address, with nothing above it."""
    # Imported when asked for: the floor holds one store, not both.
    if is_shared(db):
        from ropewalk.store.postgres import PostgresStore

        return await PostgresStore.open(db, notify=False)
    from ropewalk.store.sqlite import SqliteStore

    return await SqliteStore.open(db)
