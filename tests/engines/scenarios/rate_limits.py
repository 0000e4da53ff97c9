"""Rate limits: SPEC §7."""

from itertools import pairwise

from ropewalk.core.duration import HOUR, MILLISECOND, SECOND
from ropewalk.core.events import ExecutionStarted, ExecutionSucceeded, RunWaiting
from ropewalk.core.rate_limit import RateLimit
from ropewalk.core.waits import RateLimitWait
from tests.engines.worlds import ONCE, World, act, flow, node

SHOP = {"shop": RateLimit(10, SECOND, ("shop",))}
SLOW = {"slow": RateLimit(1, 400 * MILLISECOND)}
HOURLY = {"hourly": RateLimit(1, HOUR)}


async def _length(world: World, execution: str) -> int:
    begun, over = await world.events(execution, ExecutionStarted | ExecutionSucceeded)
    return int(over.at - begun.at)


async def calls_to_a_host_begin_no_faster_than_its_rate_limit(world: World) -> None:
    await world.restart(rate_limits=SHOP)

    ended = await world.run(flow(node("a", "call", forEach=list(range(8)), retry=ONCE, timeout="100ms")))

    assert await _length(world, ended.execution) >= 700 * MILLISECOND
    assert {run["attempt"] for run in await world.runs(ended.execution)} == {1}


async def calls_to_other_hosts_wait_for_nothing(world: World) -> None:
    await world.restart(rate_limits={"shop": RateLimit(1, HOUR, ("shop",))})

    ended = await world.run(flow(node("a", "call", endpoint="bank", forEach=[1, 2, 3])))

    assert await world.events(ended.execution, RunWaiting) == []


async def attempts_that_wait_for_a_rate_limit_are_parked_and_none_is_used_up(world: World) -> None:
    await world.restart(rate_limits=SLOW)

    ended = await world.run(flow(*[act(name, name, rateLimit="slow", retry=ONCE) for name in "abcd"]))

    waits = [event.wait for event in await world.events(ended.execution, RunWaiting)]
    assert await _length(world, ended.execution) >= 1_200 * MILLISECOND
    assert {(type(wait), wait.limit, wait.held) for wait in waits} == {(RateLimitWait, "slow", ("slow",))}
    assert all(later.slot - earlier.slot >= 400 * MILLISECOND for earlier, later in pairwise(waits))
    assert ended.output == {name: name for name in "abcd"}
    assert [run["attempt"] for run in await world.runs(ended.execution)] == [1] * 4


async def slots_that_were_handed_out_count_after_a_crash(world: World) -> None:
    await world.restart(rate_limits=HOURLY)
    ended = await world.run(flow(act("a", rateLimit="hourly"), name="first"))
    (begun,) = await world.events(ended.execution, ExecutionStarted)

    await world.crash()
    await world.open()
    execution = await world.start(flow(act("b", rateLimit="hourly"), name="second"))
    held = await world.until(execution, RunWaiting, "b")

    assert held.wait.slot >= begun.at + HOUR
    assert world.outside.saw(execution, "b") == 0
    assert await world.service.cancel(execution)


async def a_run_whose_rate_limit_is_not_known_waits_and_calls_nothing(world: World) -> None:
    await world.restart(rate_limits=HOURLY)
    version = await world.save(flow(act("a", rateLimit="hourly")))

    await world.restart(rate_limits={})
    execution = await world.service.start(version)
    held = await world.until(execution, RunWaiting, "a")

    assert (held.wait.limit, held.wait.slot) == ("hourly", None)
    assert world.outside.saw(execution, "a") == 0
    assert await world.service.cancel(execution)


async def a_call_keeps_the_limit_that_its_node_names_and_those_of_its_host(world: World) -> None:
    await world.restart(rate_limits={**SHOP, **HOURLY})

    first = await world.run(flow(node("a", "call", rateLimit="hourly"), name="both"))
    ended = await world.run(flow(node("b", "call", forEach=[1, 2, 3]), name="host"))
    execution = await world.start(flow(node("c", "call", rateLimit="hourly"), name="again"))
    held = await world.until(execution, RunWaiting, "c")

    assert first.output == {"a": None}
    assert await _length(world, ended.execution) >= 200 * MILLISECOND
    assert (held.wait.limit, held.wait.held) == ("hourly", ("hourly",))
    assert await world.service.cancel(execution)


async def a_cached_result_needs_no_slot(world: World) -> None:
    await world.restart(rate_limits=HOURLY)
    document = flow(act("a", 1, rateLimit="hourly", cache={"ttl": "1h"}))

    ended = [await world.run(document) for _ in range(2)]

    assert [each.output for each in ended] == [{"a": 1}] * 2
    world.outside.effects.clear()
