"""Event waits: SPEC §3.10."""

import pytest

from ropewalk.core.errors import InvalidDefinition
from ropewalk.core.events import RunWaiting
from ropewalk.core.state import ExecutionState
from tests.engines.worlds import World, act, flow, node

PAID = node("paid", "wait", event="order.*.paid", filter="item.total > 100")


async def a_published_event_ends_the_waits_it_matches(world: World) -> None:
    execution = await world.start(flow(PAID, act("after", 1), edges="paid->after"))
    await world.until(execution, RunWaiting)

    assert await world.service.publish("order.7.sent", {"total": 500}) == 0
    assert await world.service.publish("order.7.paid", {"total": 5}) == 0
    assert await world.service.publish("order.7.paid", {"total": 500}) == 1

    assert (await world.ended(execution)).output == {"after": 1}


MINE = node("mine", "wait", event="order.paid", filter="item.of == input.of")


async def a_filter_compares_the_event_with_what_its_execution_was_given(world: World) -> None:
    ann, bob = [await world.start(flow(MINE), {"of": who}) for who in ("ann", "bob")]
    for execution in (ann, bob):
        await world.until(execution, RunWaiting)
    await world.crash()
    await world.open()

    assert await world.service.publish("order.paid", {"of": "bob"}) == 1

    assert (await world.ended(bob)).output == {"mine": {"subject": "order.paid", "payload": {"of": "bob"}}}
    assert await world.states(ann) == "RUNNING"


async def no_input_makes_a_filter_mean_something_else(world: World) -> None:
    greedy = await world.start(flow(MINE), {"of": 'me" or true or "'})
    await world.until(greedy, RunWaiting)

    assert await world.service.publish("order.paid", {"of": "ann"}) == 0
    assert await world.service.publish("order.paid", {"of": 'me" or true or "'}) == 1
    assert (await world.ended(greedy)).state is ExecutionState.SUCCESS


async def a_filter_made_of_text_is_refused_with_what_to_write_instead(world: World) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        await world.save(flow(node("mine", "wait", event="order.paid", filter='item.of == "{{ input.of }}"')))

    (problem,) = refused.value.problems
    assert str(problem).startswith("nodes[0].with.filter: must not be made of text")


async def a_filter_reads_a_part_of_a_large_result_too(world: World) -> None:
    large = {"id": 7, "text": "x" * 100_000}
    wait = node("mine", "wait", event="order.paid", filter="item.of == nodes.order.output.id")
    execution = await world.start(flow(act("order", large), wait, act("after", 1), edges="order->mine mine->after"))
    event = await world.until(execution, RunWaiting)

    assert event.wait.scope == {"nodes": {"order": {"output": {"id": 7}}}}
    assert await world.service.publish("order.paid", {"of": 8}) == 0
    assert await world.service.publish("order.paid", {"of": 7}) == 1
    assert (await world.ended(execution)).output == {"after": 1}


async def an_event_before_the_wait_began_is_none_of_its_business(world: World) -> None:
    await world.service.publish("order.7.paid", {"total": 500})

    execution = await world.start(flow(PAID))
    await world.until(execution, RunWaiting)

    assert await world.service.publish("order.8.paid", {"total": 101}) == 1
    assert (await world.ended(execution)).output == {"paid": {"subject": "order.8.paid", "payload": {"total": 101}}}


async def an_event_is_heard_after_a_restart_and_once(world: World) -> None:
    execution = await world.start(flow(PAID))
    await world.until(execution, RunWaiting)
    await world.crash()
    await world.open()

    assert await world.service.publish("order.7.paid", {"total": 500}) == 1
    assert await world.service.publish("order.7.paid", {"total": 600}) == 0

    assert (await world.ended(execution)).output == {"paid": {"subject": "order.7.paid", "payload": {"total": 500}}}


async def a_cancelled_wait_hears_nothing(world: World) -> None:
    execution = await world.start(flow(PAID))
    await world.until(execution, RunWaiting)

    await world.service.cancel(execution)

    assert await world.service.publish("order.7.paid", {"total": 500}) == 0
