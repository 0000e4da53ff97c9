"""Channels of workspaces: what happens in one is told, also without a hint."""

import asyncio

import msgspec

from ropewalk.core.duration import DAY
from ropewalk.core.events import RunWaiting
from ropewalk.engines.base import StartRequest
from ropewalk.engines.interests import of_workspace
from ropewalk.service.workspace_channel import WorkspaceChannel
from ropewalk.store.ids import first_id
from tests.engines.worlds import World, flow, node

PATIENCE = 20.0
ASK = flow(node("ask", "approval", title="Really?"))


async def under_way(channel: WorkspaceChannel) -> list[str]:
    _, _, text = await channel.snapshot(True)
    return [each["executionId"] for each in msgspec.json.decode(text)["executions"]]


async def started_yesterday(world: World, number: int) -> str:
    """An execution that has waited since."""
    yesterday = first_id(world.service.store.now() - DAY)
    named = f"{yesterday}-7000-8000-{number:012x}"
    await world.service.engine.start(StartRequest(version=await world.save(ASK), workspace="default", execution=named))
    await world.until(named, RunWaiting)
    return named


async def test_an_end_that_no_hint_told_of_is_found_by_looking(shared_world: World):
    ends, stays = [await started_yesterday(shared_world, number) for number in range(2)]
    followers = shared_world.service.engine.watching
    channel = WorkspaceChannel(shared_world.service.store, followers, "default", None)
    await channel.open()
    followers.unwatch(of_workspace("default"), channel)
    known = await under_way(channel)
    await shared_world.service.cancel(ends)
    length = len([1 async for _ in shared_world.service.follow(ends)])

    async with asyncio.timeout(PATIENCE):
        while await under_way(channel) != [stays]:
            await channel.news()

    assert known == [ends, stays]
    assert [(each.execution, each.seq) for each in channel.after(0).messages][-1] == (ends, length)
    followers.watch(of_workspace("default"), channel)
    await channel.close()
    await shared_world.service.cancel(stays)
