"""Edges, order and ends: SPEC §3, 1 to 3."""

from datetime import date

from ropewalk.core.events import NodeSucceeded
from ropewalk.core.state import ExecutionState
from tests.engines.worlds import World, act, flow, node


async def an_empty_workflow_succeeds_at_once(world: World) -> None:
    ended = await world.run(flow())

    assert (ended.state, ended.output) == (ExecutionState.SUCCESS, {})


async def what_a_node_gives_its_successors_can_use(world: World) -> None:
    double = act("b", "{{ nodes.a.output * 2 }}")
    text = act("c", "got {{ nodes.b.output }} for {{ input.who }}")

    ended = await world.run(flow(act("a", 21), double, text, edges="a->b b->c"), {"who": "me"})

    assert ended.output == {"c": "got 42 for me"}


async def without_an_output_expression_the_outputs_of_the_sinks_are_the_output(world: World) -> None:
    ended = await world.run(flow(act("a", 1), act("b", 2), act("c", 3), edges="a->b"))

    assert ended.output == {"b": 2, "c": 3}


async def the_output_expression_makes_the_output(world: World) -> None:
    document = flow(act("a", {"total": 7}), output="{{ nodes.a.output.total }}")

    assert (await world.run(document)).output == 7


async def an_output_that_cannot_be_evaluated_fails_the_execution(world: World) -> None:
    ended = await world.run(flow(act("a"), output="{{ nodes.a.output + 1 }}"))

    assert ended.state is ExecutionState.FAILED
    assert ended.error is not None
    assert ended.error.startswith("output:")


async def expressions_see_input_vars_environment_and_execution(world: World) -> None:
    seen = act("a", ["{{ input }}", "{{ vars.shop }}", "{{ env.REGION }}", "{{ execution.id }}"])
    document = flow(seen, vars={"shop": "here"}, output="{{ nodes.a.output }}")

    ended = await world.run(document, 5, vars={"shop": "there"})

    assert ended.output == [5, "there", "north", ended.execution]


async def now_uuid_and_random_are_drawn_once_for_a_node_and_for_each_item(world: World) -> None:
    drawn = ["{{ now }}", "{{ uuid() }}", "{{ uuid() }}", "{{ random() }}", "{{ execution.workflow }}"]
    document = flow(
        act("a", drawn),
        {**act("m", "{{ item }} {{ uuid() }}"), "forEach": "{{ map(range(0, 3), i => uuid()) }}"},
        edges="a->m",
        output="{{ [nodes.a.output, nodes.m.output] }}",
    )

    ended = await world.run(document)

    now, one, other, number, name = ended.output[0]
    assert date.fromisoformat(now[:10]).year >= 2026
    assert one != other
    assert 0 <= number < 1
    assert name == document["name"]
    assert len({part for each in ended.output[1] for part in each.split()}) == 6


async def a_branch_not_taken_is_skipped_and_the_join_runs(world: World) -> None:
    document = flow(
        node("big", "if", condition="{{ input > 10 }}"),
        act("yes", "large"),
        act("no", "small"),
        node("join", "merge", mode="first", values=["{{ nodes.yes.output }}", "{{ nodes.no.output }}"]),
        edges="big->yes:true big->no:false yes->join no->join",
    )

    ended = await world.run(document, 3)

    assert ended.output == {"join": "small"}
    assert await world.states(ended.execution) == "SUCCESS SKIPPED SUCCESS SUCCESS"


async def skipping_spreads_to_what_depends_on_it_alone(world: World) -> None:
    branch = act("a", port="left")
    document = flow(branch, act("b"), act("c"), act("d"), edges="a->b:right b->c c->d a->d:left")

    ended = await world.run(document)

    assert await world.states(ended.execution) == "SUCCESS SKIPPED SKIPPED SUCCESS"


async def a_switch_goes_through_the_port_of_the_case_that_fits(world: World) -> None:
    choice = node("choose", "switch", value="{{ input }}", cases={"one": 1, "two": 2})
    document = flow(choice, act("a"), act("b"), act("c"), edges="choose->a:one choose->b:two choose->c:default")

    first, second, third = [await world.run(document, given) for given in (1, 2, 3)]

    assert await world.states(first.execution) == "SUCCESS SUCCESS SKIPPED SKIPPED"
    assert await world.states(second.execution) == "SUCCESS SKIPPED SUCCESS SKIPPED"
    assert await world.states(third.execution) == "SUCCESS SKIPPED SKIPPED SUCCESS"


async def an_error_edge_handles_a_failure(world: World) -> None:
    alert = act("alert", "{{ nodes.pay.error.type }}: {{ nodes.pay.error.message }}")
    document = flow(act("pay", fails=9, message="no money"), act("ship"), alert, edges="pay->ship pay->alert:error")

    ended = await world.run(document)

    assert (ended.state, ended.output) == (ExecutionState.SUCCESS, {"alert": "TRANSIENT: no money"})
    assert await world.states(ended.execution) == "FAILED SKIPPED SUCCESS"
    assert [run["state"] for run in await world.runs(ended.execution, "pay")] == ["FAILED"] * 3
    assert await world.letters(ended.execution) == []


async def an_error_edge_is_dead_when_its_source_succeeds(world: World) -> None:
    ended = await world.run(flow(act("a"), act("b"), act("c"), edges="a->b a->c:error"))

    assert await world.states(ended.execution) == "SUCCESS SUCCESS SKIPPED"


async def what_is_behind_an_unhandled_failure_is_blocked_and_the_rest_goes_on(world: World) -> None:
    document = flow(
        act("a", fails=9, kind="PERMANENT"), act("b"), act("c"), act("d"), act("e"), edges="a->b b->e c->d d->e"
    )

    ended = await world.run(document)

    assert (ended.state, ended.error) == (ExecutionState.FAILED, "a: no luck")
    assert await world.states(ended.execution) == "FAILED BLOCKED SUCCESS SUCCESS BLOCKED"


async def on_failure_stop_starts_nothing_more_and_lets_what_runs_finish(world: World) -> None:
    document = flow(
        node("slow", "gate", value="done"), act("a"), node("ask", "approval", title="?"), act("late"),
        act("broken", fails=9, kind="PERMANENT"), edges="slow->late a->broken", onFailure="stop",
    )  # fmt: skip
    execution = await world.start(document)
    await world.outside.gate().arrived()
    await world.until(execution, NodeSucceeded, "a")
    world.outside.gate().open()

    ended = await world.ended(execution)

    assert ended.state is ExecutionState.FAILED
    assert await world.states(execution) == "SUCCESS SUCCESS CANCELLED CANCELLED FAILED"
    assert world.outside.saw(execution, "late") == 0


async def ready_nodes_run_side_by_side(world: World) -> None:
    document = flow(node("a", "gate"), node("b", "gate"), node("c", "gate"))
    execution = await world.start(document)

    assert await world.outside.gate().arrived(3) == ["a", "b", "c"]
    world.outside.gate().open()
    assert (await world.ended(execution)).state is ExecutionState.SUCCESS


async def a_node_starts_as_soon_as_its_own_predecessors_are_done(world: World) -> None:
    document = flow(node("slow", "gate"), act("a"), act("b"), act("join"), edges="a->b b->join slow->join")
    execution = await world.start(document)

    await world.until(execution, NodeSucceeded, "b")

    assert world.outside.gate().inside == 1
    assert world.outside.saw(execution, "join") == 0
    world.outside.gate().open()
    assert (await world.ended(execution)).state is ExecutionState.SUCCESS


async def no_more_than_max_parallel_run_at_once(world: World) -> None:
    document = flow(*(node(f"n{place}", "gate") for place in range(6)), maxParallel=2)
    execution = await world.start(document)
    gate = world.outside.gate()

    assert await gate.arrived(2) == ["n0", "n1"]
    gate.open()
    assert (await world.ended(execution)).state is ExecutionState.SUCCESS
    assert gate.most == 2


async def a_worker_takes_on_no_more_than_it_has_hands_for(world: World) -> None:
    await world.restart(hands=3)
    document = flow(*(node(f"n{place}", "gate") for place in range(10)))
    execution = await world.start(document)
    gate = world.outside.gate()

    await gate.arrived(3)
    gate.open()
    assert (await world.ended(execution)).state is ExecutionState.SUCCESS
    assert gate.most == 3


async def a_long_chain_and_a_wide_fan_end(world: World) -> None:
    count = 300
    chain = flow(
        *(act(f"n{place}", place) for place in range(count)),
        edges=" ".join(f"n{place}->n{place + 1}" for place in range(count - 1)),
    )
    fan = flow(
        act("first"), *(act(f"n{place}", place) for place in range(count)), act("last"),
        edges=" ".join(f"first->n{place} n{place}->last" for place in range(count)), name="fan",
    )  # fmt: skip

    assert (await world.run(chain)).output == {f"n{count - 1}": count - 1}
    assert (await world.run(fan)).state is ExecutionState.SUCCESS
