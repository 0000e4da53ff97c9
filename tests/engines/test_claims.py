"""What is claimed in a file and what is in memory never contradict each other: every slot in use is counted."""

import asyncio
from typing import Any

import pytest

from ropewalk.core.events import RunWaiting, SlotReleased
from ropewalk.core.signals import Pause, Resume, Signal
from ropewalk.core.state import ExecutionState
from ropewalk.engines.native.folding import Folding
from ropewalk.engines.native.live import Live
from ropewalk.store import live
from tests.engines.judging import ask
from tests.engines.worlds import World, act, at_most, flow, node

GATED = flow(node("a", "gate"))
BY_PERSON = [Pause("ann"), Resume("ann")]
either = pytest.mark.parametrize("request_", BY_PERSON, ids=["pause", "resume"])


def slots_taken(world: World) -> int:
    (taken,) = ask(world.db, "select count(*) from live where has_slot = 1")[0]
    return int(taken)


async def test_a_claim_that_was_undone_begins_in_no_slot_of_others(world: World):
    await world.restart(default_slots=1, claims=False)
    engine = world.service.engine
    undone = await world.start(GATED)
    await engine.claims._claim()
    # There is nothing to do for it, so it is let go of: its slot is free again, and it is back in the queue.
    await engine.tell(undone, Resume("ann"), "ann")
    urgent = await world.start(GATED, priority=9)
    await engine.claims.claim()
    await at_most(20, world.outside.gate().arrived())
    await engine.commit.settled()

    assert slots_taken(world) == 1
    assert list(engine.memory.lives) == [urgent]
    world.outside.gate().open()
    await at_most(20, world.ended(urgent))
    await engine.claims.claim()
    assert (await at_most(20, world.ended(undone))).state is ExecutionState.SUCCESS


@either
async def test_what_is_told_something_after_its_claim_holds_nothing_until_it_begins(world: World, request_: Signal):
    await world.restart(default_slots=1, claims=False)
    engine = world.service.engine
    execution = await world.start(flow(act("a", 1), concurrencyKey="key"))
    await engine.claims._claim()
    await engine.tell(execution, request_, "ann")
    await engine.claims._dispatch_owed()
    await engine.commit.settled()

    assert slots_taken(world) == 0
    await engine.tell(execution, Resume("ann"), "ann")
    await engine.claims.claim()
    assert (await at_most(20, world.ended(execution))).state is ExecutionState.SUCCESS


@either
async def test_what_is_on_its_way_into_memory_is_claimed_when_it_has_left(
    world: World, request_: Signal, monkeypatch: pytest.MonkeyPatch
):
    execution = await world.start(flow(node("go", "wait", signal="go"), act("b"), edges="go->b"))
    await world.until(execution, RunWaiting)
    await world.until(execution, SlotReleased)
    await world.restart(default_slots=1, claims=False)
    engine, may, asked = world.service.engine, asyncio.Event(), asyncio.Event()
    await world.service.signal(execution, "go")
    fold = Folding.fold

    async def slowly(folding: Folding, execution: str) -> Live:
        folded = await fold(folding, execution)
        asked.set()
        await may.wait()
        return folded

    with monkeypatch.context() as patched:
        patched.setattr(Folding, "fold", slowly)
        telling = asyncio.create_task(engine.tell(execution, request_, "ann"))
        await at_most(20, asked.wait())
        await engine.claims._claim()
        may.set()
        # Told, and about to be written, when what was claimed is to begin.
        while execution not in engine.memory.lives:
            await asyncio.sleep(0)
        await engine.claims._dispatch_owed()
        await at_most(20, telling)

    assert slots_taken(world) == 0
    await engine.tell(execution, Resume("ann"), "ann")
    await engine.claims.claim()
    assert (await at_most(20, world.ended(execution))).state is ExecutionState.SUCCESS


async def test_what_somebody_has_loaded_and_forgotten_about_is_claimed_all_the_same(world: World):
    await world.restart(claims=False)
    engine = world.service.engine
    execution = await world.start(flow(act("a", 1)))
    await engine.memory.load(execution)
    await engine.claims.claim()

    assert (await at_most(20, world.ended(execution))).output == {"a": 1}


async def test_nothing_is_read_while_it_is_being_claimed(world: World, monkeypatch: pytest.MonkeyPatch):
    await world.restart(default_slots=1, claims=False)
    engine, store = world.service.engine, world.service.store
    execution = await world.start(GATED)
    finish = store._finish
    telling: list[asyncio.Task[Any]] = []

    async def slowly(changes: int) -> None:
        """Somebody comes after the claim was made, and before it is on the disk."""
        monkeypatch.undo()
        telling.append(asyncio.create_task(engine.tell(execution, Pause("ann"), "ann")))
        for _ in range(10):
            if not any(each.is_dirty for each in engine.memory.lives.values()):
                await asyncio.sleep(0)
        await finish(changes)

    monkeypatch.setattr(store, "_finish", slowly)
    await engine.claims._claim()
    await engine.claims._dispatch_owed()
    await at_most(20, telling[0])
    await engine.commit.settled()

    found = await live.get(store, execution)
    assert found is not None
    assert (found.owner, found.has_slot) == (None, 0)
    assert await world.service.cancel(execution)
