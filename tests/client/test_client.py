"""The client against the real server: who it is, where it works, and what else can be asked."""

import asyncio
from typing import Any

import pytest

from ropewalk.client import AsyncClient, Client
from ropewalk.core.errors import NotFound, Unauthenticated
from ropewalk.store import workspaces
from tests.client.samples import ONE
from tests.client.servers import Served


async def test_a_workspace_is_a_world_of_its_own(server: Served, client: AsyncClient):
    async with server.backend.store.transaction() as tx:
        await workspaces.ensure(tx, "acme", workspaces.Plan.PRO, server.backend.store.now())
    async with AsyncClient(server.url, server.token, "acme") as there:
        execution = await there.start(ONE, {"name": "you"})

        assert await execution.result() == "Hello you"
        assert [each["id"] async for each in there.executions()] == [execution.id]
    assert [each async for each in client.executions()] == []
    with pytest.raises(NotFound):
        await client.execution(execution.id).details()


async def test_a_wrong_token_is_refused(server: Served):
    async with AsyncClient(server.url, "rw_wrong_key") as stranger:
        with pytest.raises(Unauthenticated):
            await stranger.me()


async def test_an_event_a_queue_item_and_the_workers_can_be_asked_for(client: AsyncClient):
    await client.save(ONE, publish=True)
    execution = await client.start("one")
    await execution.result()

    assert await client.publish_event("order.paid", {"n": 1}) == 0
    assert (await client.queue_item(execution.id))["state"] == "DONE"
    assert [each["isAlive"] async for each in client.workers()] == [True]
    assert [each async for each in client.breakers()] == []
    assert (await client.me())["root"]


async def test_the_blocking_client_does_all_of_it_too(server: Served):
    def work() -> tuple[Any, ...]:
        with Client(server.url, server.token) as client:
            client.save(ONE, publish=True)
            execution = client.start("one", {"name": "you"})
            result = execution.result()
            seen = [event["seq"] for event in execution.events()]
            return result, seen, [each["id"] for each in client.executions()] == [execution.id]

    result, seen, is_listed = await asyncio.to_thread(work)

    assert result == "Hello you"
    assert seen == list(range(1, len(seen) + 1))
    assert is_listed
