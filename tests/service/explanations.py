"""Executions that really stand somewhere, on either store, and what is said of them."""

from typing import Any

import pytest

from ropewalk.core.events import RunWaiting
from ropewalk.service.explaining import LEASE, explain
from tests.engines.worlds import World, flow, node

Json = dict[str, Any]
UNKNOWN = "00000000-0000-7000-8000-000000000000"
ASK = node("ask", "approval", title="Really?")
GATE = node("a", "gate")
SAID = ("code", "why", "waitsFor", "command", "action")


@pytest.fixture(params=["alone", "shared_world"])
def world(request: pytest.FixtureRequest) -> World:
    """Every state is brought about for real, on both stores."""
    chosen: World = request.getfixturevalue(request.param)
    return chosen


async def explained(world: World, execution: str, *, is_alive: bool = True, **more: Any) -> Json:
    store = world.service.store
    if store.is_shared:
        more["lease"] = LEASE if is_alive else -LEASE
    else:
        more["alive"] = lambda worker: is_alive
    return await explain(store, "default", execution, store.now(), **more)


async def only(world: World, execution: str, **more: Any) -> Json:
    """The one reason there is."""
    [reason] = (await explained(world, execution, **more))["reasons"]
    return reason


async def at_the_gate(world: World, document: Json = flow(GATE), given: Any = None, count: int = 1) -> str:  # noqa: B008
    """An execution whose nodes run until the gate is opened."""
    execution = await world.start(document, given)
    await world.outside.gate().arrived(count)
    return execution


async def waiting(world: World, document: Json) -> str:
    execution = await world.start(document)
    await world.until(execution, RunWaiting)
    return execution


async def family(world: World) -> tuple[str, str]:
    """A parent and the child it waits for, which waits for a person."""
    await world.save(flow(GATE, ASK, edges="a->ask", name="child"))
    parent = await at_the_gate(world, flow(node("sub", "subworkflow", workflow="child"), name="parent"))
    [child] = await world.children(parent)
    world.outside.gate().open()
    await world.until(child, RunWaiting)
    return parent, child
