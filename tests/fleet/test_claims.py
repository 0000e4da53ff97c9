"""Two claims in lockstep on one workspace never take more than its slots, in any order of their steps."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from itertools import combinations
from typing import Any, Final

import asyncpg
import pytest

from ropewalk.store import queue, workspaces
from ropewalk.store.access import Row, Transaction, Value
from ropewalk.store.postgres import PostgresStore
from tests.postgres import ask
from tests.store.samples import NOON, entries, execution, live_row, waiting

STEPS: Final = ("lock_waiting_workspaces", "count_slots", "claim_live", "commit")
ORDERS: Final = [
    "".join("a" if place in first else "b" for place in range(2 * len(STEPS)))
    for first in combinations(range(2 * len(STEPS)), len(STEPS))
]
"""Every way to interleave the steps of two claims."""
WAITING: Final = 3
ONE_STATEMENT: Final = """
with free as materialized (
    select queue.id from queue
     where queue.workspace = 'shop' and queue.state = 'PENDING'
       and (select count(*) from live where live.workspace = 'shop' and live.has_slot = 1)
           < (select slots from workspace where workspace.id = 'shop')
     order by queue.id
     limit 1 for update skip locked)
update live set has_slot = 1, owner = $1 from free where live.execution = free.id
"""
"""What one would write first: it counts slots in a snapshot that is older than the other's claim."""


class Turnstile:
    """Lets one step through at a time, in the order that was chosen; who has ended takes no more turns."""

    def __init__(self, order: str) -> None:
        self._order = list(order)
        self._moved = asyncio.Condition()
        self._ended: set[str] = set()

    async def pass_through(self, who: str) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: self._next() == who)
            self._order.pop(0)
            self._moved.notify_all()

    async def leave(self, who: str) -> None:
        async with self._moved:
            self._ended.add(who)
            self._moved.notify_all()

    def _next(self) -> str | None:
        while self._order and self._order[0] in self._ended:
            self._order.pop(0)
        return self._order[0] if self._order else None


class Stepwise:
    """A transaction that waits for its turn before each step that matters."""

    def __init__(self, tx: Transaction, turn: Callable[[], Awaitable[None]]) -> None:
        self._tx = tx
        self._turn = turn

    async def _wait(self, name: str) -> None:
        if name in STEPS:
            await self._turn()

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        await self._wait(name)
        return await self._tx.fetch(name, *arguments)

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        await self._wait(name)
        return await self._tx.fetch_one(name, *arguments)

    async def execute(self, name: str, *arguments: Value) -> int:
        await self._wait(name)
        return await self._tx.execute(name, *arguments)

    async def execute_many(self, name: str, rows: Sequence[Sequence[Value]]) -> None:
        await self._wait(name)
        await self._tx.execute_many(name, rows)


@pytest.fixture
async def both(database: str) -> AsyncIterator[dict[str, PostgresStore]]:
    """Two workers, and a workspace with one slot in which several executions wait."""
    async with AsyncExitStack() as stack:
        stores = {}
        for name in "ab":
            stores[name] = await PostgresStore.open(database, worker=name, notify=False)
            stack.push_async_callback(stores[name].close)
        async with stores["a"].transaction() as tx:
            await workspaces.ensure(tx, "shop", workspaces.Plan.FREE, NOON)
            for place in range(WAITING):
                about = {"id": f"e{place}", "workspace": "shop"}
                await tx.execute("insert_execution", *execution(**about))
                await tx.execute("insert_live", *live_row(f"e{place}", workspace="shop"))
                await tx.execute("insert_queue", *waiting(**about))
                await tx.execute_many("insert_log", entries(f"e{place}", 1))
        yield stores


async def claim(store: PostgresStore, turnstile: Turnstile) -> int:
    """One claim, step by step; how much it got."""

    async def turn() -> None:
        await turnstile.pass_through(store.worker)

    try:
        async with store.transaction() as tx:
            claimed, _ = await queue.claim(Stepwise(tx, turn), store.worker, NOON, 10)
            await turn()
        return len(claimed)
    finally:
        await turnstile.leave(store.worker)


async def slots_taken(database: str) -> int:
    [(taken,)] = await ask(database, "select count(*) from live where has_slot = 1")
    return int(taken)


async def forget_claims(database: str) -> None:
    await ask(database, "update live set has_slot = 0, owner = null")
    await ask(database, "update queue set state = 'PENDING', claimed_by = null, claimed_at = null")


async def test_no_interleaving_of_two_claims_takes_more_than_there_is(both: dict[str, PostgresStore], database: str):
    taken = {}
    for order in ORDERS:
        turnstile = Turnstile(order)
        got = await asyncio.gather(*(claim(store, turnstile) for store in both.values()))
        taken[order] = (sum(got), await slots_taken(database))
        await forget_claims(database)

    assert len(ORDERS) == 70
    assert {order: found for order, found in taken.items() if found != (1, 1)} == {}


async def test_a_claim_in_one_statement_would_take_more_than_there_is(both: dict[str, PostgresStore], database: str):
    connections: list[Any] = [await asyncpg.connect(database) for _ in both]
    for connection, name in zip(connections, both, strict=True):
        await connection.execute("begin")
        await connection.execute(ONE_STATEMENT, name)
    for connection in connections:
        await connection.execute("commit")
        await connection.close()

    assert await slots_taken(database) == 2
