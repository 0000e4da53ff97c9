"""One execution that cannot be read harms no other: those in the queue, asleep, under way or waited for go on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ropewalk.core.events import NodesStarted, RunWaiting
from ropewalk.engines.native.settings import NativeSettings
from ropewalk.service.auditing import Audit
from ropewalk.store import live
from ropewalk.wiring import Settings, open_service
from tests.engines.worlds import World, act, at_most, flow, node
from tests.store.damages import A_FEW, DAMAGES, damage
from tests.store.samples import meddle

PATIENCE = 20.0
GATE = flow(node("a", "gate"), name="gated")
LONG = flow(node("long", "delay", **{"for": "1h"}), name="long")


@pytest.fixture(params=["file", "server"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "ropewalk.db") if request.param == "file" else request.getfixturevalue("database")


@pytest.fixture
async def world(db: str) -> AsyncIterator[World]:
    """A world on a store of each kind. It is not judged: something in it is to be damaged."""
    world = World(db)
    await world.open()
    yield world
    for gate in world.outside.gates.values():
        gate.open()
    await world.close()


async def spoil(world: World, execution: str, how: str, *, is_first: bool = False) -> None:
    """This befalls the execution, and nobody remembers how it was."""
    await damage(world.service.store, execution, how, is_first=is_first)
    world.service.engine.memory._versions.clear()


@pytest.mark.parametrize("how", A_FEW)
async def test_what_stands_in_line_behind_a_damaged_one_has_its_turn(world: World, how: str):
    await world.restart(slots={"default": 1})
    await world.start(GATE)
    await world.outside.gate().arrived()
    damaged, other = await world.start(flow(act("a"), name="damaged")), await world.start(flow(act("a"), name="other"))
    await spoil(world, damaged, how)

    world.outside.gate().open()
    ended = await at_most(PATIENCE, world.ended(other))

    assert ended.state == "SUCCESS"


@pytest.mark.parametrize("how", A_FEW)
async def test_what_sleeps_is_woken_though_a_damaged_one_is_due_before_it(world: World, how: str):
    damaged, other = await world.start({**LONG, "name": "damaged"}), await world.start(LONG)
    for execution in (damaged, other):
        await world.until(execution, RunWaiting)
    await world.restart(claims=False)  # nobody but us wakes anyone
    await spoil(world, damaged, how)
    await meddle(world.service.store, f"update live set wake_at = case when execution = '{damaged}' then 1 else 2 end")

    await at_most(PATIENCE, world.service.engine.claims.wake_parked())
    await world.service.engine.commit.settled()
    rows = [await live.get(world.service.store, each) for each in (damaged, other)]

    assert all(row is not None and row.owner is None and (row.wake_at or 0) > 2 for row in rows)


@pytest.mark.parametrize("how", A_FEW)
async def test_what_was_under_way_beside_a_damaged_one_goes_on_after_a_restart(world: World, how: str):
    damaged, other = await world.start({**GATE, "name": "damaged"}), await world.start(GATE)
    await world.outside.gate().arrived(2)
    await world.until(damaged, NodesStarted)
    await world.close()
    await world.open(claims=False)
    await spoil(world, damaged, how)
    await world.restart(claims=True)
    world.outside.gate().open()

    assert (await at_most(PATIENCE, world.ended(other))).state == "SUCCESS"


async def test_who_waits_for_one_elsewhere_hears_of_its_end_though_others_are_damaged(database: str):
    world = World(database)
    await world.open()
    first, other, last = await world.start(LONG), await world.start(GATE), await world.start(LONG)
    await world.outside.gate().arrived()
    for damaged in (first, last):
        await world.until(damaged, RunWaiting)
        await spoil(world, damaged, "half of an entry", is_first=True)

    async with open_service(Settings(db=database, native=NativeSettings(claims=False)), world.types) as elsewhere:
        waiting = [asyncio.create_task(elsewhere.ended(damaged)) for damaged in (first, last)]
        world.outside.gate().open()
        ended = await at_most(PATIENCE, elsewhere.ended(other))
        for task in waiting:
            task.cancel()
    await world.close()

    assert ended.state == "SUCCESS"


async def test_a_child_of_a_damaged_parent_can_be_cancelled(world: World):
    await world.save({**GATE, "name": "child"})
    parent = await world.start(flow(node("sub", "subworkflow", workflow="child"), name="parent"))
    await world.outside.gate().arrived()
    [child] = await world.children(parent)
    await spoil(world, parent, "half of an entry")

    assert await world.service.cancel(child)
    assert (await at_most(PATIENCE, world.ended(child))).state == "CANCELLED"


async def test_what_was_told_in_words_nobody_knows_lies_and_keeps_nobody_from_hearing(world: World):
    execution, other = await world.start({**LONG, "name": "damaged"}), await world.start(LONG)
    for each in (execution, other):
        await world.until(each, RunWaiting)
    async with world.service.store.transaction() as tx:
        await tx.execute("insert_inbox", "0", execution, '{"type":"Nonsense"}', 1)
        await tx.execute("insert_inbox", "1", other, '{"type":"Cancel","by":"ada"}', 2)

    await world.restart()

    assert (await at_most(PATIENCE, world.ended(other))).state == "CANCELLED"


@pytest.mark.parametrize("how", DAMAGES)
async def test_a_check_tells_of_the_damaged_one_and_looks_at_every_other(world: World, how: str):
    damaged, other = await world.start({**LONG, "name": "damaged"}), await world.start(LONG)
    for execution in (damaged, other):
        await world.until(execution, RunWaiting)
    await spoil(world, damaged, how)

    audit = Audit(world.service.store)
    found = {each.id: each.violations async for each in audit.executions()}

    assert (bool(found[damaged]), found[other]) == (True, [])
