"""Nodes that are repeated: SPEC §2."""

from ropewalk.core.duration import MILLISECOND
from ropewalk.core.events import RoundEnded, RunWaiting
from ropewalk.core.state import ExecutionState
from ropewalk.service.explaining import explain
from tests.engines.worlds import ONCE, World, act, flow, node


async def a_node_is_repeated_with_what_the_last_round_gave(world: World) -> None:
    again = act("a", {"page": "{{ index }}", "before": "{{ last.page }}"}, repeat={"until": "{{ last.page == 2 }}"})
    both = "{{ [nodes.a.output, nodes.b.output] }}"
    ended = await world.run(flow(again, act("b", "{{ nodes.a.rounds }}"), edges="a->b", output=both))

    assert ended.output == [{"page": 2, "before": 1}, 3]
    assert [run["state"] for run in await world.runs(ended.execution)] == ["SUCCESS"] * 4
    assert (await world.details(ended.execution))["nodes"][0]["rounds"] == 3


async def every_round_has_an_idempotency_key_of_its_own(world: World) -> None:
    ended = await world.run(flow(act("a", "same", repeat={"until": "{{ index == 2 }}"})))

    keys = [effect.key for effect in world.outside.attempts(ended.execution, "a")]
    assert len(set(keys)) == len(keys) == 3


async def a_round_that_fails_is_tried_again_and_no_other(world: World) -> None:
    ended = await world.run(flow(act("a", "{{ index }}", fails=1, repeat={"while": "{{ index < 1 }}"})))

    assert ended.output == {"a": 1}
    assert [run["state"] for run in await world.runs(ended.execution)] == ["FAILED", "SUCCESS", "SUCCESS"]


async def a_node_that_is_repeated_in_vain_fails_and_goes_on_when_it_is_retried(world: World) -> None:
    ended = await world.run(flow(act("a", repeat={"until": "{{ false }}", "max": 2}, retry=ONCE)))

    (letter,) = await world.letters(ended.execution)
    assert ended.state is ExecutionState.FAILED
    assert letter["reason"] == "repeat: `until` is not true after 2 rounds, which are the most"
    assert await world.service.retry(ended.execution)
    again = await world.ended(ended.execution)
    assert again.state is ExecutionState.FAILED
    assert world.outside.saw(ended.execution, "a") == 3


async def a_node_that_is_repeated_in_vain_takes_the_edge_that_is_for_it(world: World) -> None:
    repeat = {"until": "{{ false }}", "max": 2}
    ended = await world.run(flow(act("a", "{{ index }}", repeat=repeat), act("b", "late"), edges="a->b:exhausted"))

    assert (ended.state, ended.output) == (ExecutionState.SUCCESS, {"b": "late"})


async def the_next_round_begins_after_a_restart_too(world: World) -> None:
    document = flow(act("a", "{{ index }}", repeat={"until": "{{ index == 1 }}", "delay": "300ms"}))
    execution = await world.start(document)
    ended = await world.until(execution, RoundEnded, "a")

    await world.restart()

    assert ended.next_at - ended.at == 300 * MILLISECOND
    assert (await world.ended(execution)).output == {"a": 1}
    assert world.outside.saw(execution, "a") == 2


async def a_round_that_waits_long_gives_its_slot_back_and_is_explained(world: World) -> None:
    await world.restart(default_slots=1)
    document = flow(act("a", repeat={"until": "{{ index == 1 }}", "delay": "1h"}), name="patient")
    execution = await world.start(document)
    ended = await world.until(execution, RoundEnded, "a")

    other = await world.run(flow(act("b", "meanwhile")))
    told = (await explain(world.service.store, "default", execution, ended.at))["nodes"][0]

    assert other.output == {"b": "meanwhile"}
    assert (told["code"], told["waitsFor"]["round"]) == ("ROUND", 1)
    assert await world.service.cancel(execution)
    assert (await world.ended(execution)).state is ExecutionState.CANCELLED


async def each_round_of_a_sub_workflow_is_a_child_of_its_own(world: World) -> None:
    await world.save(flow(act("step", "{{ input + 1 }}"), name="step", output="{{ nodes.step.output }}"))
    child = node("a", "subworkflow", workflow="step", input="{{ last ?? 0 }}", repeat={"until": "{{ last == 3 }}"})

    ended = await world.run(flow(child))

    waits = await world.events(ended.execution, RunWaiting)
    assert ended.output == {"a": 3}
    assert len({wait.wait.child for wait in waits}) == 3


async def a_condition_and_the_next_round_look_at_large_values(world: World) -> None:
    large = "{{ repeat('x', 100000) }}"
    again = act(
        "a",
        {"text": large, "seen": "{{ length(last.text ?? '') }}"},
        repeat={"until": "{{ length(last.text) > 0 and index == 1 }}"},
    )

    ended = await world.run(flow(again, output="{{ nodes.a.output.seen }}"))

    assert ended.output == 100_000
