"""A store that takes nothing about one execution is asked less and less often, and that one harms no other."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ropewalk.core.errors import Unavailable
from ropewalk.core.events import RunFailed
from ropewalk.core.state import ExecutionState
from ropewalk.engines.native import setbacks
from ropewalk.store.access import Batch
from ropewalk.store.errors import StoreFull
from tests.engines.worlds import World, act, at_most, flow, node

PATIENT = {"maxAttempts": 9, "delay": "1ms", "jitter": 0}


class Refusal:
    """Makes a store take nothing about one execution, as one that is full does."""

    def __init__(self, world: World, execution: str) -> None:
        self.count = 0
        self._heard = asyncio.Condition()
        self._execution = execution
        self._store = world.service.store
        self._write: Callable[..., Awaitable[Any]] = self._store.write
        self._store.write = self._refused  # type: ignore[method-assign]  # the disk itself cannot be filled here

    async def _refused(self, batch: Batch) -> None:
        if not any(self._execution in row for _, rows in batch for row in rows):
            await self._write(batch)
            return
        self.count += 1
        async with self._heard:
            self._heard.notify_all()
        raise StoreFull("no room")

    async def repeated(self, times: int) -> None:
        async with self._heard:
            await self._heard.wait_for(lambda: self.count >= times)

    def end(self) -> None:
        self._store.write = self._write  # type: ignore[method-assign]  # as above


async def test_a_store_that_takes_nothing_is_asked_less_and_less_often(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(setbacks, "PAUSES", (0, 0, 0, 3600))
    execution = await world.start(flow(node("a", "gate", value=1, retry=PATIENT)))
    await world.outside.gate().arrived()
    refusal = Refusal(world, execution)
    world.outside.gate().open()
    await at_most(20, refusal.repeated(4))
    for _ in range(20):
        await at_most(20, world.run(flow(act("b"), name="other")))
    refusal.end()

    assert refusal.count == 4
    await world.restart()
    assert (await at_most(20, world.ended(execution))).output == {"a": 1}


async def test_how_long_to_wait_is_forgotten_with_the_first_commit(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(setbacks, "PAUSES", (0, 0, 3600))
    gates = [node(name, "gate", gate=name, retry=PATIENT) for name in "abc"]
    execution = await world.start(flow(*gates, edges="a->b b->c"))
    for name in "abc":
        await at_most(20, world.outside.gate(name).arrived())
        refusal = Refusal(world, execution)
        world.outside.gate(name).open()
        await at_most(20, refusal.repeated(2))
        refusal.end()

    assert (await at_most(20, world.ended(execution))).state is ExecutionState.SUCCESS


async def test_what_is_lost_again_while_it_is_taken_up_goes_on(world: World, monkeypatch: pytest.MonkeyPatch):
    execution = await world.start(flow(node("a", "gate", value=1, retry=PATIENT)))
    await world.outside.gate().arrived()
    refusal, followers = Refusal(world, execution), world.service.engine.watching

    async def disturbed(_: str) -> None:
        monkeypatch.undo()
        with pytest.raises(Unavailable):
            await world.service.signal(execution, "anything")
        refusal.end()

    monkeypatch.setattr(followers, "catch_up", disturbed)
    world.outside.gate().open()

    assert (await at_most(20, world.ended(execution))).output == {"a": 1}
    assert refusal.count == 2


async def test_what_the_store_refuses_does_no_harm_to_those_that_come_later(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(setbacks, "PAUSES", (0,))
    refused = await world.start(flow(node("a", "gate", retry=PATIENT)))
    await world.outside.gate().arrived()
    refusal = Refusal(world, refused)
    world.outside.gate().open()
    await at_most(20, refusal.repeated(2))
    others = [await at_most(20, world.run(flow(act("b"), act("c"), edges="b->c", name="other"))) for _ in range(20)]
    refusal.end()

    assert [event for each in others for event in await world.events(each.execution, RunFailed)] == []
    assert (await at_most(20, world.ended(refused))).state is ExecutionState.SUCCESS


async def test_what_was_refused_with_another_gets_rid_of_it(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(setbacks, "PAUSES", (0.01,))
    version = await world.save(flow(node("a", "gate", retry=PATIENT)))
    refused, other = [await world.service.start(version) for _ in range(2)]
    await world.outside.gate().arrived(2)
    refusal = Refusal(world, refused)
    world.outside.gate().open()

    assert (await at_most(20, world.ended(other))).state is ExecutionState.SUCCESS
    assert refusal.count > 0
    refusal.end()
    assert (await at_most(20, world.ended(refused))).state is ExecutionState.SUCCESS
