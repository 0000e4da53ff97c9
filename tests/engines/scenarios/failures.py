"""Failures, retries, breakers, inputs and keys: SPEC §3, 4 to 7 and 16."""

from ropewalk.core.breaker import BreakerPolicies, BreakerPolicy
from ropewalk.core.duration import HOUR, MILLISECOND
from ropewalk.core.events import NodeFailed, RunFailed, RunReleased, RunStarted, RunWaiting
from ropewalk.core.state import ExecutionState
from tests.engines.worlds import ONCE, World, act, flow, node

SOON = {"maxAttempts": 3, "delay": "1ms", "jitter": 0}


async def a_transient_failure_is_tried_again(world: World) -> None:
    ended = await world.run(flow(act("a", "fine", fails=2)))

    assert ended.output == {"a": "fine"}
    assert [run["state"] for run in await world.runs(ended.execution)] == ["FAILED", "FAILED", "SUCCESS"]
    assert world.outside.saw(ended.execution, "a") == 3


async def a_permanent_failure_is_never_tried_again(world: World) -> None:
    ended = await world.run(flow(act("a", fails=9, kind="PERMANENT")))

    (letter,) = await world.letters(ended.execution)
    assert ended.state is ExecutionState.FAILED
    assert world.outside.saw(ended.execution, "a") == 1
    assert (letter["failureType"], letter["errorType"]) == ("PERMANENT_ERROR", "PERMANENT")


async def a_node_that_used_up_its_attempts_becomes_a_dead_letter_with_its_inputs(world: World) -> None:
    ended = await world.run(flow(act("a", "{{ input }}", fails=9)), {"order": 7})

    (letter,) = await world.letters(ended.execution)
    assert [run["state"] for run in await world.runs(ended.execution)] == ["FAILED", "FAILED", "DLQ"]
    assert (letter["failureType"], letter["attempt"], letter["reason"]) == ("MAX_RETRIES", 3, "no luck")
    assert letter["inputs"] == {"value": {"order": 7}, "fails": 9}


async def one_attempt_means_no_retries(world: World) -> None:
    ended = await world.run(flow(act("a", fails=1, retry=ONCE)))

    assert ended.state is ExecutionState.FAILED
    assert world.outside.saw(ended.execution, "a") == 1


async def an_attempt_that_takes_too_long_fails_as_timeout_and_is_tried_again(world: World) -> None:
    ended = await world.run(flow(node("a", "gate", timeout="20ms")))

    (letter,) = await world.letters(ended.execution)
    assert world.outside.saw(ended.execution, "a") == 3
    assert (letter["failureType"], letter["errorType"]) == ("MAX_RETRIES", "TIMEOUT")
    assert world.outside.gate().inside == 0


async def the_other_sides_wish_to_wait_wins_over_a_shorter_delay(world: World) -> None:
    ended = await world.run(flow(act("a", fails=1, retryAfter=0.08)))

    (failed,) = await world.events(ended.execution, RunFailed)
    assert failed.retry_at - failed.at == 80 * MILLISECOND
    assert world.outside.saw(ended.execution, "a") == 2


async def delays_grow_with_every_failure(world: World) -> None:
    retry = {"maxAttempts": 4, "delay": "40ms", "factor": 3, "maxDelay": "150ms", "jitter": 0}
    ended = await world.run(flow(act("a", fails=3, retry=retry)))

    delays = [event.retry_at - event.at for event in await world.events(ended.execution, RunFailed)]
    assert delays == [40 * MILLISECOND, 120 * MILLISECOND, 150 * MILLISECOND]


async def a_retry_without_a_delay_spares_the_counterpart(world: World) -> None:
    ended = await world.run(flow(act("a", fails=3, retry={"maxAttempts": 4, "delay": 0, "jitter": 0})))

    delays = [event.retry_at - event.at for event in await world.events(ended.execution, RunFailed)]
    assert delays == [0, 100 * MILLISECOND, 100 * MILLISECOND]


async def inputs_that_cannot_be_evaluated_fail_for_good(world: World) -> None:
    ended = await world.run(flow(act("a", "{{ input.count + 1 }}")), {})

    (letter,) = await world.letters(ended.execution)
    assert letter["failureType"] == "PERMANENT_ERROR"
    assert letter["reason"].startswith("with:")
    assert world.outside.saw(ended.execution, "a") == 0


async def inputs_that_do_not_fit_the_type_fail_for_good(world: World) -> None:
    ended = await world.run(flow(node("a", "if", condition="{{ input }}")), "maybe")

    (letter,) = await world.letters(ended.execution)
    assert (letter["failureType"], letter["inputs"]) == ("PERMANENT_ERROR", {"condition": "maybe"})
    assert "with.condition" in letter["reason"]


async def every_attempt_at_one_work_has_one_key_and_no_other_has_it(world: World) -> None:
    document = flow(act("a", 1, fails=2), act("b", 1, fails=1))

    first, second = await world.run(document), await world.run(document)

    keys = [
        {effect.key for effect in world.outside.attempts(ended.execution, each)}
        for ended in (first, second)
        for each in ("a", "b")
    ]
    assert [len(each) for each in keys] == [1, 1, 1, 1]
    assert len(set.union(*keys)) == 4


async def a_run_can_be_given_up_by_hand(world: World) -> None:
    execution = await world.start(flow(node("a", "gate"), act("b"), edges="a->b"))
    await world.outside.gate().arrived()

    assert await world.service.give_up(execution, "a", reason="enough")

    (letter,) = await world.letters(execution)
    assert (await world.ended(execution)).state is ExecutionState.FAILED
    assert (letter["failureType"], letter["reason"]) == ("MANUAL", "enough")
    assert await world.states(execution) == "FAILED BLOCKED"


async def an_open_breaker_holds_calls_back_without_using_attempts(world: World) -> None:
    await world.restart(
        breaker=BreakerPolicies(BreakerPolicy(minimum_calls=2, cooldown=500 * MILLISECOND, successes=1))
    )
    await world.run(flow(node("a", "call", fails=9, retry={**SOON, "maxAttempts": 2})))

    execution = await world.start(flow(node("b", "call", value="back", retry=ONCE)))
    held = await world.until(execution, RunWaiting, "b")
    ended = await world.ended(execution)

    assert held.wait.target == "call shop"
    assert ended.output == {"b": "back"}
    assert [run["attempt"] for run in await world.runs(execution)] == [1]


async def those_whom_a_breaker_holds_probe_it_one_after_another_until_it_closes(world: World) -> None:
    patient = BreakerPolicies(BreakerPolicy(minimum_calls=1, cooldown=200 * MILLISECOND, successes=3, probe_lease=HOUR))
    await world.restart(breaker=patient)
    await world.run(flow(node("a", "call", fails=9, retry=ONCE)))
    document = flow(node("b", "call", value="back", retry=ONCE), name="held")

    ids = [await world.start(document) for _ in range(5)]
    ended = [await world.ended(execution) for execution in ids]

    assert [each.output for each in ended] == [{"b": "back"}] * 5


async def a_breaker_holds_back_its_own_target_only(world: World) -> None:
    await world.restart(breaker=BreakerPolicies(BreakerPolicy(minimum_calls=1)))
    await world.run(flow(node("a", "call", fails=9, retry=ONCE)))

    ended = await world.run(flow(node("b", "call", endpoint="bank", value="open")))

    assert ended.output == {"b": "open"}


async def a_breaker_that_closes_while_a_run_sets_out_to_wait_does_not_hold_it(world: World) -> None:
    ended = await world.run(flow(node("a", "late")))

    assert ended.output == {"a": "through"}
    assert [type(event) for event in await world.events(ended.execution, RunWaiting | RunReleased | RunStarted)] == [
        RunWaiting, RunReleased, RunStarted,
    ]  # fmt: skip
    world.outside.effects.clear()


async def an_open_breaker_stays_open_over_a_restart(world: World) -> None:
    await world.restart(breaker=BreakerPolicies(BreakerPolicy(minimum_calls=1)))
    await world.run(flow(node("a", "call", fails=9, retry=ONCE)))

    await world.restart()
    execution = await world.start(flow(node("b", "call")))
    await world.until(execution, RunWaiting, "b")

    assert world.outside.saw(execution, "b") == 0
    assert await world.service.cancel(execution)


async def a_cached_result_is_reused_for_the_same_inputs_only(world: World) -> None:
    document = flow(act("a", "{{ input }}", cache={"ttl": "1h"}))

    first, again, other = [await world.run(document, given) for given in (1, 1, 2)]

    seen = [world.outside.saw(ended.execution, "a") for ended in (first, again, other)]
    assert seen == [1, 0, 1]
    assert [ended.output for ended in (first, again, other)] == [{"a": 1}, {"a": 1}, {"a": 2}]
    world.outside.effects.clear()


async def results_are_never_reused_unless_the_node_asks_for_it(world: World) -> None:
    document = flow(act("a", 1))

    first, again = await world.run(document), await world.run(document)

    assert [world.outside.saw(ended.execution, "a") for ended in (first, again)] == [1, 1]


async def a_failure_is_told_to_whoever_asks_why(world: World) -> None:
    ended = await world.run(flow(act("a", fails=9, message="the shop is closed"), act("b", fails=9), edges=""))

    details = await world.details(ended.execution)
    (first, _) = await world.events(ended.execution, NodeFailed)
    assert first.error.message == "the shop is closed"
    assert details["error"] == "a: the shop is closed (and 1 more)"
    told = details["nodes"][0]["error"]
    assert (told["type"], told["message"]) == ("TRANSIENT", "the shop is closed")
