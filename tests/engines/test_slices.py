"""Nothing a document may say holds the loop: what takes long is done beside it, or a slice at a time."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ropewalk.core.errors import InvalidInput
from ropewalk.core.events import RunWaiting
from ropewalk.core.execution.view import inputs_later
from ropewalk.core.state import ExecutionState
from ropewalk.engines.native import hands
from ropewalk.service.verbs import NewStart
from tests.engines.worlds import World, at_most, flow, node
from tests.faults.worst import FILTER

LONGEST = 0.1
"""So much of its own time a turn of the loop takes at most (s); 20 ms are meant, on a machine that is not busy."""
COSTLY_VALUES = {f"v{n}": "{{ length(map(range(0, 90), a => map(range(0, 9), b => a * b + 1))) }}" for n in range(20)}
SCHEMA = {"allOf": [{"items": {"minimum": 2}}] * 500}


class Turns:
    """The longest turn of the loop (s of the loop's own thread)."""

    longest = 0.0

    async def watch(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            self.longest = max(self.longest, time.thread_time() - before)


@asynccontextmanager
async def watched() -> AsyncIterator[Turns]:
    turns = Turns()
    gc.freeze()  # else a turn in which the collector goes through what other tests have left takes as long as that
    watching = asyncio.ensure_future(turns.watch())
    await asyncio.sleep(0)
    try:
        yield turns
    finally:
        watching.cancel()
        gc.unfreeze()


async def run(world: World, document: dict[str, Any], value: Any = None) -> tuple[ExecutionState, Any, float]:
    version = await world.save(document)
    async with watched() as turns:
        ended = await at_most(60, world.ended(await world.service.start(version, value)))
    return ended.state, ended.output, turns.longest


async def test_a_map_of_costly_expressions_does_not_hold_the_loop(place: World):
    document = flow(node("each", "set", values=COSTLY_VALUES, forEach="{{ range(0, 15) }}", concurrency=15))

    state, output, longest = await run(place, document)

    assert (state, len(output["each"])) == (ExecutionState.SUCCESS, 15)
    assert longest < LONGEST


async def test_many_expressions_that_are_not_quite_costly_do_not_hold_the_loop(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    beside: list[str] = []
    monkeypatch.setattr(hands, "inputs_later", lambda x, work: beside.append(work.node) or inputs_later(x, work))
    nearly = "{{ sum(map(range(0, 150), a => a * 2 + 1)) }}"
    document = flow(*(node(f"n{n}", "set", values={"v": nearly}) for n in range(300)))

    state, output, longest = await run(world, document)

    assert (state, len(output)) == (ExecutionState.SUCCESS, 300)
    assert len(beside) > 100
    assert longest < LONGEST


async def test_an_output_that_takes_long_does_not_hold_the_loop(place: World):
    document = flow(node("a"), output={f"v{n}": "{{ filter(input, x => x > 3 and x < 9) }}" for n in range(5)})

    state, output, longest = await run(place, document, list(range(10_000)))

    assert (state, output["v4"]) == (ExecutionState.SUCCESS, [4, 5, 6, 7, 8])
    assert longest < LONGEST


async def test_an_output_that_takes_long_is_evaluated_after_a_restart(world: World):
    version = await world.save(flow(node("a"), output="{{ sum(map(input, x => x * 2)) }}"))

    execution = await world.service.start(version, [1] * 3_000)
    await world.restart()

    assert (await at_most(20, world.ended(execution))).output == 6_000


async def test_a_costly_expression_that_fails_is_told_as_ever(world: World):
    document = flow(node("a", "set", values={"v": "{{ sum(map(input, x => x * 2)) + null }}"}))

    version = await world.save(document)
    ended = await at_most(20, world.ended(await world.service.start(version, [1] * 3_000)))

    assert ended.state is ExecutionState.FAILED
    assert "a: with: at" in str(ended.error)


async def test_executions_of_others_end_while_a_costly_one_goes_on(world: World):
    heavy = flow(*(node(f"n{n}", "set", values=COSTLY_VALUES) for n in range(200)), name="heavy")
    light = flow(node("a", "set", values={"v": "{{ input + 1 }}"}), name="light")
    first, second = await world.save(heavy), await world.save(light)

    costly = await world.service.start(first)
    ended = await at_most(20, world.ended(await world.service.start(second, 1)))
    is_under_way = world.service.engine.memory.is_under_way(costly)
    await world.service.cancel(costly)

    assert ended.output == {"a": {"v": 2}}
    assert is_under_way


async def test_the_time_limit_of_an_attempt_begins_when_its_inputs_are_there(world: World):
    settings = {"forEach": "{{ range(0, 8) }}", "timeout": "100ms", "retry": {"maxAttempts": 1}}
    document = flow(node("each", "set", values=COSTLY_VALUES, **settings))

    state, _, _ = await run(world, document)

    assert state is ExecutionState.SUCCESS


async def test_an_input_that_takes_long_to_check_is_refused_by_name_and_does_not_hold_the_loop(world: World):
    version = await world.save(flow(input=SCHEMA))
    async with watched() as turns:
        with pytest.raises(InvalidInput) as refused:
            await world.service.start(version, [3] * 20_000)
        await world.service.start(version, [3] * 100)

    assert [str(each) for each in refused.value.problems] == ["input: takes too long to check against its schema"]
    assert turns.longest < LONGEST


async def test_a_batch_of_costly_inputs_takes_no_longer_than_one(world: World):
    version = await world.save(flow(input=SCHEMA))
    began = time.process_time()
    async with watched() as turns:
        with pytest.raises(InvalidInput) as refused:
            await world.service.start_batch([NewStart(version, [3] * 200)] * 1_000)

    assert refused.value.problems[0].where.startswith("starts[")
    assert turns.longest < LONGEST
    assert time.process_time() - began < 20


async def test_a_key_that_takes_long_is_refused_by_name(world: World):
    version = await world.save(flow(node("a"), concurrencyKey="{{ text(sum(map(input, x => x * 2))) }}"))

    with pytest.raises(InvalidInput, match="concurrencyKey: takes more than 2,000 steps"):
        await world.service.start(version, [1] * 3_000)


async def test_filters_asked_by_many_waits_do_not_hold_the_loop(place: World):
    version = await place.save(flow(node("late", "wait", event="paid", filter=FILTER)))
    executions = await place.service.start_batch([NewStart(version)] * 40)
    await asyncio.gather(*(place.until(each, RunWaiting) for each in executions))
    async with watched() as turns:
        told = [await place.service.publish("paid", {"of": of}) for of in "yx"]

    assert told == [0, 40]
    assert turns.longest < LONGEST
    await asyncio.gather(*(at_most(20, place.ended(each)) for each in executions))
