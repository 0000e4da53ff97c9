"""An execution is in memory once: two copies of it would write two histories."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ropewalk.core.events import SlotReleased
from ropewalk.service import Service
from ropewalk.store import executions
from ropewalk.wiring import Settings, open_service
from tests.engines.worlds import World
from tests.postgres import ask

WAITS = {"ropewalk": 1, "name": "waits", "nodes": [{"id": "ask", "type": "approval", "with": {"title": "?"}}]}

FAMILY = {
    "ropewalk": 1,
    "name": "family",
    "nodes": [{"id": "child", "type": "subworkflow", "with": {"workflow": "waits"}}],
}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(Settings(db=str(tmp_path / "ropewalk.db"))) as service:
        yield service


@pytest.fixture
async def parked(service: Service) -> str:
    """An execution that is a row and nothing else."""
    execution = await service.start(await service.save(WAITS))
    await seen(lambda: execution not in service.engine.memory.lives)
    return execution


async def seen(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0)


async def test_whoever_hears_late_that_an_execution_was_loaded_gets_the_one_in_memory(service: Service, parked: str):
    memory = service.engine.memory
    late = asyncio.create_task(memory.load(parked))
    while parked not in memory.lives:
        await asyncio.sleep(0)
    # It is loaded, but `late` has not had its turn; somebody else is faster and done with it.
    memory.forget(memory.lives[parked])
    current = await memory.load(parked)

    assert await late is current
    assert memory.owns(current)


async def test_who_is_told_something_is_the_one_in_memory_whatever_its_parent_takes_to_load(service: Service):
    memory = service.engine.memory
    await service.save(WAITS)
    parent = await service.start(await service.save(FAMILY))
    child = await parked_child(service, parent)
    telling = asyncio.create_task(service.decide(child, "ask", approved=True))
    while parent not in memory.lives:
        await asyncio.sleep(0)
    # The child was loaded before its parent; meanwhile somebody else is done with it.
    memory.forget(memory.lives[child])
    current = await memory.load(child)
    await telling

    assert current.execution.is_ended
    assert (await service.ended(parent)).state == "SUCCESS"


async def parked_child(service: Service, parent: str) -> str:
    """The child of an execution, once both are rows and nothing else."""
    async with asyncio.timeout(10):
        while not (child := await child_of(service, parent)) or service.engine.memory.lives:
            await asyncio.sleep(0)
    return child


async def child_of(service: Service, parent: str) -> str | None:
    found = await executions.listed(service.store, "default")
    return next((each.id for each in found if each.parent == parent), None)


async def test_whom_nobody_waits_for_any_more_is_in_nobodys_hands(shared_world: World):
    execution = await shared_world.start(WAITS)
    await shared_world.until(execution, SlotReleased)
    memory = shared_world.service.engine.memory
    await seen(lambda: not memory.knows(execution))
    impatient = asyncio.create_task(shared_world.service.signal(execution, "go"))
    await seen(lambda: memory.knows(execution))
    impatient.cancel()
    await asyncio.gather(impatient, return_exceptions=True)
    is_on_its_way = memory.knows(execution)
    await seen(lambda: not memory.knows(execution))

    assert is_on_its_way
    assert await ask(shared_world.db, f"select owner from live where execution = '{execution}'") == [(None,)]
