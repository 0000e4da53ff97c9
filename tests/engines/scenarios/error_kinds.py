"""Errors by kind: SPEC §2."""

from ropewalk.core.events import NodeFailed
from ropewalk.core.state import ExecutionState
from ropewalk.service.explaining import explain
from tests.engines.worlds import ONCE, Json, World, act, flow, node

PERMANENT, TIMEOUT = "{{ error.type == 'PERMANENT' }}", "{{ error.type == 'TIMEOUT' }}"


def ways(*whens: str | None, kind: str = "PERMANENT") -> Json:
    """A node `a` that fails so, and error edges to `b0`, `b1` … that ask this."""
    edges = [
        {"from": "a", "to": f"b{place}", "on": "error", **({} if when is None else {"when": when})}
        for place, when in enumerate(whens)
    ]
    others = [act(f"b{place}", "{{ nodes.a.error.type }}") for place in range(len(whens))]
    return {**flow(act("a", fails=9, kind=kind, retry=ONCE), *others), "edges": edges}


async def a_failure_takes_the_first_error_edge_that_is_for_it(world: World) -> None:
    ended = await world.run(ways(TIMEOUT, PERMANENT, None))

    assert ended.output == {"b1": "PERMANENT"}
    assert await world.states(ended.execution) == "FAILED SKIPPED SUCCESS SKIPPED"
    assert await world.letters(ended.execution) == []


async def a_failure_that_no_error_edge_is_for_is_a_dead_letter_and_explained(world: World) -> None:
    ended = await world.run(ways(TIMEOUT, "{{ error.status + 1 == 5 }}"))

    (letter,) = await world.letters(ended.execution)
    (failed,) = await world.events(ended.execution, NodeFailed)
    told = (await explain(world.service.store, "default", ended.execution, failed.at))["nodes"][0]
    assert (ended.state, letter["failureType"]) == (ExecutionState.FAILED, "PERMANENT_ERROR")
    assert await world.states(ended.execution) == "FAILED BLOCKED BLOCKED"
    assert (failed.handled, len(failed.faults)) == (False, 1)
    assert told["why"].startswith("failed, and no error edge is for such a failure: no luck (edges[1].when: ")
    assert told["waitsFor"]["faults"] == list(failed.faults)


async def the_edge_a_failure_took_is_taken_after_a_restart_too(world: World) -> None:
    document = ways(TIMEOUT, PERMANENT)
    document["nodes"][2] = node("b1", "gate")
    execution = await world.start(document)
    await world.outside.gate().arrived()

    await world.restart()
    world.outside.gate().open()

    assert (await world.ended(execution)).state is ExecutionState.SUCCESS
    assert await world.states(execution) == "FAILED SKIPPED SUCCESS"


async def a_permanent_error_is_tried_again_if_its_node_names_it(world: World) -> None:
    named = {"maxAttempts": 3, "delay": "1ms", "jitter": 0, "on": ["PERMANENT"], "when": "{{ attempt < 3 }}"}
    ended = await world.run(flow(act("a", "fine", fails=2, kind="PERMANENT", retry=named)))

    assert ended.output == {"a": "fine"}
    assert world.outside.saw(ended.execution, "a") == 3


async def an_error_that_is_not_named_is_not_tried_again(world: World) -> None:
    ended = await world.run(flow(act("a", fails=1, retry={"delay": "1ms", "on": ["TIMEOUT", "status:5xx"]})))

    (letter,) = await world.letters(ended.execution)
    assert ended.state is ExecutionState.FAILED
    assert world.outside.saw(ended.execution, "a") == 1
    assert (letter["failureType"], letter["errorType"]) == ("MAX_RETRIES", "TRANSIENT")


async def items_of_a_map_are_dead_letters_if_no_edge_is_for_its_failure(world: World) -> None:
    document = flow(act("m", "{{ item }}", fails=9, kind="PERMANENT", forEach="{{ input }}"), act("b"))
    document["edges"] = [{"from": "m", "to": "b", "on": "error", "when": TIMEOUT}]

    ended = await world.run(document, [1, 2])

    assert ended.state is ExecutionState.FAILED
    assert sorted(letter["item"] for letter in await world.letters(ended.execution)) == [0, 1]
