"""What a parent tells its children reaches them: those that are yet to come, and each thing in its turn."""

import asyncio
from typing import Any

import pytest

from ropewalk.core.events import ExecutionPaused, ExecutionResumed, SlotReleased
from ropewalk.core.signals import Cancel, Signal
from ropewalk.core.state import ExecutionState
from ropewalk.engines.native import claims
from ropewalk.store.errors import StoreUnavailable
from ropewalk.store.inbox import InboxMessage
from ropewalk.store.rows import NewSignal
from tests.engines.scenarios.children import HELD, begun_child, held_child, parent
from tests.engines.worlds import World, at_most, flow, node

PAUSE, RESUME = '{"type":"Pause","by":"parent"}', '{"type":"Resume","by":"parent"}'


class SlowStart:
    """A child is about to be started, and is not before it may; told of is when it was to be cancelled."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = world.service.engine
        self.begins, self.may, self.was_told = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._published, self._hand_over = engine.versions.of_name, engine.letters._hand_over
        monkeypatch.setattr(engine.versions, "of_name", self._slowly)
        monkeypatch.setattr(engine.letters, "_hand_over", self._watched)

    async def _slowly(self, *about: Any) -> Any:
        found = await self._published(*about)
        self.begins.set()
        await self.may.wait()
        return found

    async def _watched(self, letter: InboxMessage, signal: Signal) -> None:
        try:
            await self._hand_over(letter, signal)
        finally:
            if isinstance(signal, Cancel):
                self.was_told.set()


async def cancelled_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> ExecutionState:
    """What becomes of a child whose parent is cancelled while the child is being started."""
    await world.save(HELD)
    start = SlowStart(world, monkeypatch)
    execution = await world.start(parent())
    await start.begins.wait()
    await world.service.cancel(execution)
    await start.was_told.wait()
    start.may.set()
    return (await world.ended(await begun_child(world, execution))).state


async def test_a_child_about_to_start_is_cancelled_with_its_parent(world: World, monkeypatch: pytest.MonkeyPatch):
    assert await at_most(20, cancelled_at_once(world, monkeypatch)) is ExecutionState.CANCELLED


async def test_a_child_about_to_start_elsewhere_is_cancelled_with_its_parent(
    shared_world: World, monkeypatch: pytest.MonkeyPatch
):
    assert await at_most(20, cancelled_at_once(shared_world, monkeypatch)) is ExecutionState.CANCELLED


async def test_what_a_parent_says_is_told_in_the_order_it_was_said(world: World):
    await world.save(HELD)
    child = await held_child(world, await world.start(parent()))
    now = world.service.store.now()
    # Said one after the other, the second by a worker whose clock, of which ids are made, is behind.
    said = [NewSignal("b", child, PAUSE, now), NewSignal("a", child, RESUME, now + 1)]
    await world.service.store.write([("insert_inbox", said)])

    await world.service.engine.letters.catch_up()
    await at_most(20, world.until(child, ExecutionResumed))

    heard = [type(event) for event in await world.events(child)]
    assert heard.index(ExecutionPaused) < heard.index(ExecutionResumed)


@pytest.mark.parametrize(
    "end", [StoreUnavailable("no answer"), asyncio.CancelledError()], ids=["no answer", "gone away"]
)
async def test_an_event_whose_publisher_never_heard_of_its_commit_reaches_those_who_wait(
    world: World, end: BaseException, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(claims, "SAFETY_NET", 0.01)
    await world.restart()
    execution = await world.start(flow(node("a", "wait", event="bell.rang")))
    await world.until(execution, SlotReleased)
    store = world.service.store
    finish = store._finish

    async def unheard(changes: int) -> None:
        monkeypatch.setattr(store, "_finish", finish)
        await finish(changes)
        raise end

    monkeypatch.setattr(store, "_finish", unheard)
    with pytest.raises(type(end)):
        await world.service.publish("bell.rang", 7)

    assert (await at_most(20, world.ended(execution))).output == {"a": {"subject": "bell.rang", "payload": 7}}
