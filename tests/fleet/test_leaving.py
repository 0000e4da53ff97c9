"""A member that leaves in good order leaves nothing in its hands."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import msgspec

from ropewalk.core.signals import Signal, Tell
from ropewalk.wiring import FleetSettings, Settings, open_service
from tests.fleet.fleet import Fleet
from tests.fleet.verdict import judge
from tests.polling import until

HOUR = 3600.0
DOCUMENT = {"ropewalk": 1, "name": "noop", "nodes": [{"id": "one", "type": "noop"}]}


async def send(crew: Fleet, execution: str, signal: Signal) -> None:
    """Write a letter down, as another member would."""
    text = msgspec.json.encode(signal).decode()
    await crew.ask("insert into inbox (id, execution, signal, sent_at) values ('letter', $1, $2, 1)", execution, text)


async def leave_first(leaving: AsyncExitStack, keeper: Any) -> None:
    """The worker is told to leave before it gets what it waits for."""
    left = asyncio.create_task(leaving.aclose())
    await asyncio.sleep(0)
    await keeper.execute("rollback")
    await left


async def test_one_that_was_about_to_be_told_something_is_let_go_of(crew: Fleet):
    leaving = AsyncExitStack()
    service = await leaving.enter_async_context(open_service(Settings(db=crew.url)))
    execution = await service.start(await service.save(DOCUMENT))
    await service.ended(execution)
    keeper: Any = await asyncpg.connect(crew.url)
    try:
        # No member can read a log: an execution that is to be told something is held, and not yet told.
        await keeper.execute("begin; lock table log in access exclusive mode")
        await send(crew, execution, Tell("late", None))
        await until(lambda: crew.ask("select 1 from live where owner = $1", service.store.worker), "it is held")
        await leave_first(leaving, keeper)
    finally:
        await keeper.close()

    assert await crew.ask("select * from live") == []
    await crew.join(1)
    await crew.quiet()
    assert (await judge(crew.url, crew.place)).violations == []


async def test_what_was_claimed_and_has_not_begun_is_begun_by_another_without_waiting_for_the_lease(crew: Fleet):
    execution = await crew.client.start(await crew.client.save(DOCUMENT))
    leaving, settings = AsyncExitStack(), Settings(db=crew.url, fleet=FleetSettings(lease_seconds=HOUR))
    keeper: Any = await asyncpg.connect(crew.url)
    try:
        # No member can read a workflow: what is claimed does not begin.
        await keeper.execute("begin; lock table workflow_version in access exclusive mode")
        service = await leaving.enter_async_context(open_service(settings))
        await until(lambda: crew.ask("select 1 from live where owner = $1", service.store.worker), "it is claimed")
        await leave_first(leaving, keeper)
    finally:
        await keeper.close()
    claimed = await crew.ask("select owner, has_slot, queue.state from live inner join queue on queue.id = execution")
    await crew.join(1, lease=HOUR)
    states = await crew.states([execution])

    assert claimed == [(service.store.worker, 1, "CLAIMED")]
    assert states == ["SUCCESS"]
    assert (await judge(crew.url, crew.place)).violations == []
