"""What an execution stores and holds is bounded: by its own limit, and by what is needed at the moment."""

import tracemalloc
from typing import Any

import pytest

from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import ItemSucceeded, NodeFailed, NodeSucceeded, RunFailed, RunWaiting
from ropewalk.core.state import ExecutionState
from ropewalk.engines.native import large, stored
from ropewalk.service import reading
from ropewalk.store import log as stored_log
from tests.engines.worlds import ONCE, World, act, flow, node

MIB = 2**20
LARGE = "x" * 300_000
LESS = "x" * 100_000
ITEMS = 200


async def weight(world: World, execution: str) -> int:
    return sum(len(entry) for _, entry in await stored_log.entries(world.service.store, execution))


async def values(world: World, execution: str, kind: type) -> list[Any]:
    story = await reading.recorded(world.service.store, execution)
    return [event for event in story.events if isinstance(event, kind)]


# A shared input is held once


async def test_what_all_items_of_a_map_are_given_is_stored_once(place: World):
    document = flow(act("each", "{{ index }}", forEach="{{ input.items }}", message="{{ input.shared }}"))

    ended = await place.run(document, {"items": list(range(ITEMS)), "shared": LARGE})

    assert ended.state is ExecutionState.SUCCESS
    assert await weight(place, ended.execution) < 3 * len(LARGE)
    items = await values(place, ended.execution, ItemSucceeded)
    assert {event.inputs for event in items[-20:]} == {None}
    assert all(event.inputs_blob.size > len(LARGE) for event in items[-20:])


async def test_large_inputs_are_given_to_every_attempt_also_after_a_restart(place: World):
    await place.close()
    await place.open()
    document = flow(
        act("a", fails=2, message="{{ input }}", retry={"maxAttempts": 3, "delay": "1s", "factor": 1, "jitter": 0})
    )

    execution = await place.start(document, LARGE)
    await place.until(execution, RunFailed)
    await place.restart()
    ended = await place.ended(execution)

    assert ended.state is ExecutionState.SUCCESS
    first, second = await values(place, execution, RunFailed)
    (end,) = await values(place, execution, NodeSucceeded)
    assert first.inputs_blob == second.inputs_blob == end.inputs_blob is not None


async def test_a_run_and_a_dead_letter_tell_large_inputs(place: World):
    execution = (await place.run(flow(act("a", fails=1, message="{{ input }}", retry=ONCE)), LARGE)).execution
    store = place.service.store

    (run,) = await place.runs(execution)
    told = await reading.get_run(store, store.blobs, await reading.find_run(store, "default", run["id"], execution))
    (letter,) = await place.letters(execution)

    assert told["inputs"]["message"] == LARGE
    assert letter["inputs"] is None
    assert letter["inputsReference"] == {"hash": told["inputsHash"], "size": letter["inputsReference"]["size"]}


async def test_inputs_that_were_put_together_from_small_parts_are_measured_too(world: World):
    parts = [act(f"p{n}", "y" * 50_000) for n in range(4)]
    whole = "".join(f"{{{{ nodes.p{n}.output }}}}" for n in range(4))
    document = flow(
        *parts, act("first", "{{ 1 }}", message=whole), act("second", "{{ 2 }}", message=whole),
        edges="p0->first p1->first p2->first p3->first first->second",
    )  # fmt: skip

    ended = await world.run(document)

    assert ended.state is ExecutionState.SUCCESS
    end = (await values(world, ended.execution, NodeSucceeded))[-1]
    assert (end.node, end.inputs) == ("second", None)
    assert end.inputs_blob.size > 200_000


# The limit of an execution


async def test_an_execution_that_has_stored_its_limit_fails_for_good_and_says_what_to_do(world: World):
    await world.restart(execution_bytes=MIB)
    nodes = [act(f"n{n}", "{{ input }}" + "z" * n) for n in range(6)]

    ended = await world.run(flow(*nodes, edges="n0->n1 n1->n2 n2->n3 n3->n4 n4->n5"), LESS)

    assert ended.state is ExecutionState.FAILED
    (failed,) = await values(world, ended.execution, NodeFailed)
    assert failed.error.type is ErrorType.PERMANENT
    assert "has stored as much as it may, 1 MiB" in failed.error.message
    assert "execution.max_mib" in failed.error.message
    assert failed.gave_up is not None


async def test_the_limit_is_the_same_after_a_restart(place: World):
    await place.restart(execution_bytes=MIB)
    nodes = [act(f"n{n}", "{{ input }}" + "z" * n) for n in range(5)]
    document = flow(*nodes, node("ask", "approval", title="Go on?"), edges="n0->n1 n1->ask ask->n2 n2->n3 n3->n4")

    execution = await place.start(document, LESS)
    await place.until(execution, RunWaiting)
    await place.restart()
    await place.service.decide(execution, "ask", approved=True)
    ended = await place.ended(execution)

    assert ended.state is ExecutionState.FAILED
    assert [event.node for event in await values(place, execution, NodeFailed)]
    await place.restart(execution_bytes=64 * MIB)
    assert await place.service.retry(execution)
    assert (await place.ended(execution)).state is ExecutionState.SUCCESS


async def test_the_same_large_value_counts_once(world: World):
    await world.restart(execution_bytes=MIB)
    nodes = [act(f"n{n}", "{{ input }}") for n in range(8)]
    edges = " ".join(f"n{n}->n{n + 1}" for n in range(7))

    assert (await world.run(flow(*nodes, edges=edges, output="{{ 1 }}"), LARGE)).state is ExecutionState.SUCCESS


# Values are measured while they are built


async def test_an_output_that_is_too_large_is_refused_before_it_is_all_in_memory(world: World, monkeypatch):
    monkeypatch.setattr(large, "LARGEST_OUTPUT", 4 * MIB)
    count = 40
    nodes = [act(f"n{n}", f"{n}" + "y" * MIB) for n in range(count)]
    await world.run(flow(act("warm")))
    tracemalloc.start()
    try:
        ended = await world.run(flow(*nodes, maxParallel=1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert ended.state is ExecutionState.FAILED
    assert ended.error == "output: the large values it is made of are more than 4 MiB together"
    # The document itself has them once, as text and as values; some modules are imported on the way.
    assert peak < (6 * count + 8) * MIB


async def test_a_node_that_looks_at_too_many_large_values_fails_for_good(world: World, monkeypatch):
    monkeypatch.setattr(stored, "MOST_AT_HAND", MIB)
    monkeypatch.setattr("ropewalk.engines.native.large.MOST_AT_HAND", MIB)
    document = flow(
        act("each", "{{ item }}", forEach="{{ input }}"), act("all", "{{ nodes.each.output }}"), edges="each->all",
        output="{{ 1 }}",
    )  # fmt: skip

    ended = await world.run(document, [f"{n}" + "y" * 200_000 for n in range(10)])

    assert ended.state is ExecutionState.FAILED
    (failed,) = await values(world, ended.execution, NodeFailed)
    assert failed.error == RunError(
        ErrorType.PERMANENT,
        "with: its expressions look at 1 MiB of large values, at most 1 MiB are loaded together; look at fewer of them",
    )


@pytest.mark.parametrize("output", ["{{ nodes.each.output }}", None])
async def test_an_output_of_many_small_values_is_measured_while_it_is_written(
    world: World, monkeypatch: pytest.MonkeyPatch, output: str | None
):
    monkeypatch.setattr("ropewalk.nodes.recording.LARGEST_OUTPUT", 2 * MIB)
    document = flow(act("each", "y" * 60_000, forEach="{{ input }}"), **({} if output is None else {"output": output}))

    ended = await world.run(document, list(range(50)))

    assert (ended.state, ended.error) == (ExecutionState.FAILED, "output: is larger than 2 MiB")
