"""The database goes back in time under an engine: it believes nothing it knew, and goes on with what there is."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from ropewalk.core.errors import NotFound, Unavailable
from ropewalk.core.state import ExecutionState
from ropewalk.service.auditing import Audit
from ropewalk.store import audit
from ropewalk.store.access import Batch
from tests.engines.worlds import World, act, at_most, flow, node
from tests.polling import until
from tests.postgres import a_copy, ask

GATED = flow(node("g", "gate"), act("a", 1), edges="g->a", name="gated")
FINE = flow(act("a", 1), name="fine")


@pytest.fixture
async def world(database: str) -> AsyncIterator[World]:
    """Not judged by what the world outside saw: what the database forgets is done again."""
    world = World(database)
    await world.open()
    yield world
    found = await audited(world)
    await world.close()
    assert found == []


async def audited(world: World) -> list[str]:
    walk = Audit(world.service.store, at_rest=True)
    found = [str(violation) async for each in walk.executions() for violation in each.violations]
    return found + [str(violation) for violation in await walk.together()]


async def noticed(world: World) -> None:
    """The worker is back under another name, and has said why."""

    async def is_noted() -> bool:
        return await audit.rewinds(world.service.store, 10) != []

    await until(is_noted, "the rewind is noted")


async def exhausted(following: AsyncIterator[object]) -> None:
    async for _ in following:
        continue


async def over(world: World) -> None:
    """Nothing is under way any more."""

    async def is_quiet() -> bool:
        return await ask(world.db, "select 1 from live") == []

    await until(is_quiet, "nothing is under way")


async def test_what_the_database_has_forgotten_the_end_of_is_ended_again(world: World):
    execution = await world.start(GATED)
    await at_most(20, world.outside.gate().arrived())
    async with a_copy(world.db) as copy:
        world.outside.gate().open()
        await at_most(20, world.ended(execution))
        await copy.go_back()
        before = await ask(world.db, "select state from execution")
        with pytest.raises(Unavailable, match="went back in time"):
            await world.start(FINE)
        await noticed(world)
        await over(world)

    assert before == [("RUNNING",)]
    assert await ask(world.db, "select id, state from execution") == [(execution, "SUCCESS")]
    assert world.outside.saw(execution, "g") == 2


async def test_nothing_is_written_of_what_the_database_never_heard_of(world: World):
    await world.save(GATED)
    async with a_copy(world.db) as copy:
        execution = await world.start(GATED)
        await at_most(20, world.outside.gate().arrived())
        await copy.go_back()
        world.outside.gate().open()
        await noticed(world)
        with pytest.raises(NotFound):
            await world.ended(execution)

    assert await ask(world.db, "select execution from log union all select execution from run") == []
    assert (await world.run(FINE)).state is ExecutionState.SUCCESS


async def test_a_version_that_was_lost_is_not_taken_for_the_one_saved_in_its_place(world: World):
    await world.run(FINE)
    async with a_copy(world.db) as copy:
        await world.run(flow(act("a", 2), name="fine"))
        await copy.go_back()
        with pytest.raises(Unavailable):
            await world.start(GATED)
        await noticed(world)
        ended = await world.run(flow(act("a", 3), name="fine"))

    assert ended.output == {"a": 3}


async def test_whoever_follows_is_told_to_begin_anew(world: World):
    execution = await world.start(GATED)
    await at_most(20, world.outside.gate().arrived())
    async with a_copy(world.db) as copy:
        following = world.service.follow(execution)
        await anext(following)
        await world.run(FINE)
        await copy.go_back()
        with pytest.raises(Unavailable):
            await world.start(FINE)
        with pytest.raises(Unavailable, match="from its beginning"):
            await at_most(20, exhausted(following))
        await noticed(world)
        world.outside.gate().open()
        await over(world)

    assert await ask(world.db, "select state from execution") == [("SUCCESS",)]


async def test_only_a_loss_is_noted(world: World):
    """A lease that is lost, or a connection, is no proof of anything."""
    await world.run(FINE)
    await ask(world.db, "update worker set epoch = epoch + 1")
    with pytest.raises(Unavailable):
        await world.start(FINE)

    async def is_back() -> bool:
        return len(await ask(world.db, "select 1 from worker")) == 2

    await until(is_back, "the worker is back")
    assert await audit.rewinds(world.service.store, 10) == []
    assert (await world.run(FINE)).state is ExecutionState.SUCCESS


async def test_a_claim_that_is_lost_begins_nothing(world: World):
    """The worker has lost no commit: only that it claimed the execution, in a transaction, is not known any more."""
    await world.restart(default_slots=1)
    await world.start(GATED)
    await at_most(20, world.outside.gate().arrived())
    await world.start(FINE)
    store = world.service.store
    write, is_claimed, may_begin = store.write, asyncio.Event(), asyncio.Event()

    async def late(batch: Batch) -> None:
        if any(name == "expect_live" for name, _ in batch):
            is_claimed.set()
            await may_begin.wait()
        await write(batch)

    store.write = late  # type: ignore[method-assign]  # held up, and then as it is
    async with a_copy(world.db) as copy:
        await ask(world.db, "update workspace set slots = 2")
        await at_most(20, is_claimed.wait())
        await copy.go_back()
        may_begin.set()
        await noticed(world)
        world.outside.gate().open()
        await over(world)

    assert "had taken to execute" in (await audit.rewinds(store, 1))[0].why
