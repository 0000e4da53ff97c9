"""Event waits: SPEC §3.10."""

from ropewalk.core.events import RunWaiting
from tests.engines.worlds import World, act, flow, node

PAID = node("paid", "wait", event="order.*.paid", filter="item.total > 100")


async def a_published_event_ends_the_waits_it_matches(world: World) -> None:
    execution = await world.start(flow(PAID, act("after", 1), edges="paid->after"))
    await world.until(execution, RunWaiting)

    assert await world.service.publish("order.7.sent", {"total": 500}) == 0
    assert await world.service.publish("order.7.paid", {"total": 5}) == 0
    assert await world.service.publish("order.7.paid", {"total": 500}) == 1

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
