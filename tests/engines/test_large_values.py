"""Large values on their way through an execution: nothing that goes through one of them is done on the loop."""

import asyncio
from typing import Any

import pytest

from ropewalk.core.events import ExecutionSucceeded, NodeSucceeded
from ropewalk.core.state import ExecutionState
from tests.engines.test_slices import LONGEST, run, watched
from tests.engines.worlds import World, act, at_most, flow, node

NUMBERS = [1] * 300_000
"""Some 600 KB of JSON, and as many values as that can have."""
NAMED_TWICE = {"a": "{{ input }}", "b": "{{ input }}"}
FOUND = {"items": "{{ input }}", "where": {"x": 2}}
SHAPES: dict[str, dict[str, Any]] = {
    "named twice": flow(*(node(f"n{n}", "set", values=NAMED_TWICE) for n in range(3))),
    "an output by expression": flow(node("a"), output=NAMED_TWICE),
    "looked through": flow(node("a", "filter", **FOUND), output="{{ length(nodes.a.output) }}"),
    "chosen by": flow(node("a", "switch", value="{{ input }}", cases={"same": "{{ input }}"}), output=1),
}


@pytest.mark.parametrize("document", SHAPES.values(), ids=SHAPES.keys())
async def test_a_large_value_does_not_hold_the_loop(world: World, document: dict[str, Any]):
    state, _, longest = await run(world, document, NUMBERS)

    assert state is ExecutionState.SUCCESS
    assert longest < LONGEST


async def test_an_input_that_only_is_large_is_checked_beside_the_loop(world: World):
    version = await world.save(flow())
    async with watched() as turns:
        await world.service.start_batch([])
        await at_most(20, world.ended(await world.service.start(version, [[]] * 300_000)))

    assert turns.longest < LONGEST


async def test_inputs_that_name_a_value_many_times_are_kept_elsewhere_and_say_where(world: World):
    document = flow(node("a", "set", values={f"v{n}": "{{ input }}" for n in range(10)}), output="{{ 1 }}")

    ended = await at_most(20, world.ended(await world.service.start(await world.save(document), "y" * 60_000)))

    (told,) = [
        event
        async for _, event in world.service.engine.watching.follow(ended.execution)
        if type(event) is NodeSucceeded
    ]
    assert told.inputs is None
    assert told.inputs_blob is not None
    assert told.inputs_blob.size > 600_000


async def test_an_output_that_is_large_is_kept_elsewhere(world: World):
    ended = await at_most(20, world.ended(await world.service.start(await world.save(flow(act("a", NUMBERS))))))

    events = [event async for _, event in world.service.engine.watching.follow(ended.execution)]
    assert isinstance(events[-1], ExecutionSucceeded)
    assert (events[-1].output, events[-1].blob is None) == (None, False)


async def test_a_value_that_many_want_at_once_is_read_once(world: World):
    blobs, values = world.service.store.blobs, world.service.engine.memory.values
    blob = await blobs.put(b"[1,2,3]")
    read, get = [], blobs.get

    async def counted(digest: str) -> bytes:
        read.append(digest)
        return await get(digest)

    blobs.get = counted  # type: ignore[method-assign]  # what is read of the disk is seen nowhere else
    found = await asyncio.gather(*(values.load(blob) for _ in range(50)))

    assert read == [blob.hash]
    assert found == [[1, 2, 3]] * 50


async def test_one_who_stops_waiting_for_a_value_does_not_keep_others_from_it(world: World):
    blobs, values = world.service.store.blobs, world.service.engine.memory.values
    blob = await blobs.put(b"[1,2,3]")
    first, second = (asyncio.ensure_future(values.load(blob)) for _ in range(2))
    await asyncio.sleep(0)

    first.cancel()

    assert await at_most(20, second) == [1, 2, 3]
