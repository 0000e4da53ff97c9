"""What `explain` says of maps whose items fail, and of those that are mended."""

from tests.engines.worlds import World, act, flow, node
from tests.service.explanations import explained, only, world

__all__ = ["world"]

TOLERANT = act("m", "{{ item }}", forEach=[0, 1], fails="{{ item }}", kind="PERMANENT",
               failureTolerance=1, deadLetters="always")  # fmt: skip


async def test_an_execution_that_succeeded_with_dead_letters_says_how_it_is_completed(world: World):
    execution = (await world.run(flow(TOLERANT))).execution
    [letter] = await world.letters(execution)

    reason = await only(world, execution)
    [m] = (await explained(world, execution, node="m"))["nodes"]

    assert (reason["code"], reason["command"]) == ("ENDED", f"dlq requeue {letter['id']}")
    assert reason["action"] == "requeue or fix of a dead letter reopens it, and completes the output of its map"
    assert (m["state"], m["command"]) == ("SUCCESS", f"dlq requeue {letter['id']}")
    assert m["why"].endswith("; of its items that failed and were tolerated, 1 dead letter can be requeued")


async def test_a_map_that_is_mended_is_among_what_is_under_way(world: World):
    execution = await world.start(flow(node("m", "gate", forEach=[0, 1], failureTolerance=1)))
    await world.outside.gate().arrived(2)
    await world.service.give_up(execution, "m", 1)
    world.outside.gate().open()
    await world.ended(execution)
    world.outside.gates.clear()
    await world.requeue(execution)
    await world.outside.gate().arrived()

    [m] = (await explained(world, execution))["nodes"]

    assert (m["state"], m["code"], m["waitsFor"]["underWay"]) == ("SUCCESS", "ITEMS", 1)
    assert m["why"].startswith("succeeded, and what it tolerated is tried again: 1 of 2 items done, 0 failed")


async def test_a_map_that_continues_says_so_when_too_many_failed(world: World):
    execution = await world.start(flow(node("m", "gate", forEach=[0, 1], onItemFailure="continue")))
    await world.outside.gate().arrived(2)
    await world.service.give_up(execution, "m", 0)

    [m] = (await explained(world, execution))["nodes"]

    assert m["why"] == "0 of 2 items done, 1 failed, 1 under way; too many failed, but every item is tried"
