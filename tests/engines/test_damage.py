"""One execution that cannot be read harms no other: those in the queue, asleep, under way or waited for go on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ropewalk.core.errors import Unreadable
from ropewalk.core.events import NodesStarted, RunWaiting
from ropewalk.engines.settings import WorkerSettings
from ropewalk.service.auditing import Audit
from ropewalk.service.explaining import explain
from ropewalk.store import live
from ropewalk.wiring import Settings, open_service
from tests.engines.worlds import World, act, at_most, flow, node
from tests.store.damages import A_FEW, DAMAGES, OF_VERSIONS, damage
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
    world.service.engine.versions.forget()


@pytest.mark.parametrize("how", A_FEW)
async def test_what_stands_in_line_behind_a_damaged_one_has_its_turn(world: World, how: str):
    await world.restart(default_slots=1)
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

    await at_most(PATIENCE, world.service.engine.claims.waking.wake())
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

    async with open_service(Settings(db=database, worker=WorkerSettings(claims=False)), world.types) as elsewhere:
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


# What is left to be done about them


@pytest.mark.parametrize("how", OF_VERSIONS)
async def test_what_cannot_go_on_without_its_version_can_be_cancelled_with_everything_it_set_going(
    world: World, how: str
):
    await world.save({**GATE, "name": "child"})
    sub = node("sub", "subworkflow", workflow="child")
    execution = await world.start(flow(sub, node("ask", "approval", title="?"), name="damaged"))
    await world.outside.gate().arrived()
    [child] = await world.children(execution)
    await spoil(world, execution, how)

    assert await world.service.cancel(execution, by="ada")
    with pytest.raises(Unreadable):
        await world.service.decide(execution, "ask", approved=True)
    states = [(await at_most(PATIENCE, world.ended(each))).state for each in (execution, child)]
    again = await world.service.cancel(execution)

    assert (states, again) == (["CANCELLED", "CANCELLED"], False)
    assert await live.get(world.service.store, execution) is None


async def test_what_was_cancelled_without_its_version_is_without_fault_once_that_is_back(world: World):
    execution = await world.start(LONG)
    await world.until(execution, RunWaiting)
    store = world.service.store
    await meddle(store, "create table kept as select * from workflow_version")
    await spoil(world, execution, "no version")
    await world.service.cancel(execution)
    await meddle(store, "insert into workflow_version select * from kept")
    await meddle(store, "drop table kept")

    found = [each.violations async for each in Audit(store).executions()]

    assert found == [[]]


async def family(world: World) -> tuple[str, str]:
    """A parent and its child, which sleeps."""
    await world.save(flow(node("a", "gate"), *LONG["nodes"], edges="a->long", name="child"))
    parent = await world.start(flow(node("sub", "subworkflow", workflow="child"), name="parent"))
    await world.outside.gate().arrived()
    world.outside.gate().open()
    [child] = await world.children(parent)
    await world.until(child, RunWaiting)
    return parent, child


async def test_a_parent_calls_off_a_child_that_cannot_go_on(world: World):
    parent, child = await family(world)
    await spoil(world, child, "no version")

    await world.service.cancel(parent)

    assert (await at_most(PATIENCE, world.ended(parent))).state == "CANCELLED"
    assert (await at_most(PATIENCE, world.ended(child))).state == "CANCELLED"


async def test_a_rerun_that_has_not_begun_fails_when_its_version_is_lost(world: World):
    done = (await world.run(flow(act("a"), act("b"), edges="a->b", name="damaged"))).execution
    await world.restart(default_slots=1)
    await world.start(GATE)
    await world.outside.gate().arrived()
    again = await world.service.rerun(done, "b")
    await spoil(world, again, "no version")

    world.outside.gate().open()

    assert (await at_most(PATIENCE, world.ended(again))).state == "FAILED"


@pytest.mark.parametrize("how", DAMAGES)
async def test_a_damaged_execution_is_explained_with_what_to_do(world: World, how: str):
    execution = await world.start(LONG)
    await world.until(execution, RunWaiting)
    await spoil(world, execution, how)

    answer = await explain(world.service.store, "default", execution, world.service.store.now())
    [reason] = answer["reasons"]

    typed = {"an entry of a newer Ropewalk": None, **dict.fromkeys(OF_VERSIONS, f"cancel {execution}")}
    assert (answer["workflow"], answer["state"], reason["code"]) == ("long", "RUNNING", "UNREADABLE")
    assert reason["why"].startswith("what is stored of it cannot be read: ")
    assert reason["command"] == typed.get(how, "check")
    assert ("upgrade" if how == "an entry of a newer Ropewalk" else "`ropewalk check`") in reason["action"]


async def test_a_parent_says_that_its_child_is_damaged(world: World):
    parent, child = await family(world)
    await spoil(world, child, "half of an entry")

    store = world.service.store
    alive = None if store.is_shared else lambda worker: True
    [reason] = (await explain(store, "default", parent, store.now(), alive=alive))["reasons"]

    assert (reason["code"], reason["waitsFor"]["reason"]["code"]) == ("CHILD", "UNREADABLE")
