"""Who published an event is written down with what came of it, or neither is."""

import asyncio
import sqlite3

import pytest

from ropewalk.core.events import RunWaiting
from ropewalk.store import audit
from ropewalk.store.errors import StoreDefect
from tests.engines.worlds import World, flow, node
from tests.postgres import ask

WAITS = flow(node("paid", "wait", event="order.paid"))


@pytest.fixture(params=["world", "shared_world"])
def either(request: pytest.FixtureRequest) -> World:
    """Every test that takes this one runs on both stores."""
    chosen: World = request.getfixturevalue(request.param)
    return chosen


async def do(world: World, order: str) -> None:
    """What another program does to the store."""
    if world.service.store.is_shared:
        await ask(world.db, order)
    else:
        with sqlite3.connect(world.db) as connection:
            connection.execute(order)
        connection.close()


async def published(world: World) -> list[tuple[str, str]]:
    rows = await audit.listed(world.service.store, "default", audit.Filter(verb="publish"))
    return [(row.actor, row.object) for row in rows]


async def test_an_event_is_published_under_the_name_of_who_did(either: World):
    execution = await either.start(WAITS)
    await either.until(execution, RunWaiting)

    assert await either.service.publish("order.paid", 7, "ann") == 1
    assert await either.service.publish("order.paid", 8) == 0

    assert (await either.ended(execution)).output == {"paid": {"subject": "order.paid", "payload": 7}}
    assert await published(either) == [("local", "order.paid"), ("ann", "order.paid")]


async def test_a_storm_of_events_counts_every_wait_it_ends_once(either: World):
    executions = [await either.start(WAITS) for _ in range(30)]
    for execution in executions:
        await either.until(execution, RunWaiting)

    ended = await asyncio.gather(*[either.service.publish("order.paid", number) for number in range(8)])

    assert sum(ended) == len(executions)
    for execution in executions:
        await either.ended(execution)


@pytest.mark.parametrize("table", ["audit", "inbox"])
async def test_what_cannot_be_written_whole_is_not_written_at_all(either: World, table: str):
    execution = await either.start(WAITS)
    await either.until(execution, RunWaiting)
    await do(either, f"alter table {table} rename to elsewhere")

    with pytest.raises(StoreDefect):
        await either.service.publish("order.paid", 7)

    await do(either, f"alter table elsewhere rename to {table}")
    assert await published(either) == []
    assert await either.service.publish("order.paid", 8) == 1
    assert (await either.ended(execution)).output == {"paid": {"subject": "order.paid", "payload": 8}}
