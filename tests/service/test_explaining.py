"""Why something does not run: one reason each, on executions that really stand where they say."""

import asyncio
from typing import Any

import pytest

from ropewalk.core.breaker import BreakerPolicies, BreakerPolicy
from ropewalk.core.duration import HOUR
from ropewalk.core.events import ExecutionPaused, NodeSucceeded, RunFailed, RunWaiting, StopRequested
from ropewalk.core.instant import rfc3339
from ropewalk.service.explaining import explain
from ropewalk.store.postgres import PostgresReader
from tests.engines.worlds import ONCE, World, act, flow, node
from tests.service.explanations import (
    GATE,
    SAID,
    Json,
    at_the_gate,
    explained,
    family,
    only,
    waiting,
    world,
)
from tests.service.told import codes, node_codes
from tests.store.samples import meddle

__all__ = ["world"]


# Nothing keeps it


async def test_what_runs_fine_says_which_nodes_since_when_and_on_which_worker(world: World):
    execution = await at_the_gate(world, flow(GATE, act("b"), edges="a->b"))

    reason = await only(world, execution)
    [run] = await world.runs(execution)

    assert reason["code"] == "RUNNING"
    assert (reason["waitsFor"]["worker"], reason["waitsFor"]["since"]) == (
        world.service.store.worker, run["startedAt"],
    )  # fmt: skip
    assert [(each["node"], each["attempt"]) for each in reason["waitsFor"]["nodes"]] == [("a", 1)]
    assert reason["why"].startswith(f"it runs on worker {world.service.store.worker} since ")
    assert node_codes(await explained(world, execution)) == [("a", "RUNNING"), ("b", "PREDECESSORS")]


# The queue


async def test_capacity_names_the_slots_the_place_in_the_queue_and_who_holds_them(world: World):
    await world.restart(default_slots=1)
    holder = await at_the_gate(world)
    first, second = await world.start(flow(GATE)), await world.start(flow(GATE))

    reason = await only(world, second)
    answer = await explained(world, first)

    assert (reason["code"], "more slots" in reason["action"]) == ("CAPACITY", True)
    assert reason["waitsFor"] == {
        "workspace": "default", "taken": 1, "slots": 1, "position": 2, "waiting": 2,
        "holders": [{"execution": holder, "worker": world.service.store.worker}],
    }  # fmt: skip
    assert "1 of 1 slots are taken; it is 2nd of 2 in the queue, held by" in reason["why"]
    assert [(each["code"], each["waitsFor"]) for each in answer["nodes"]] == [("EXECUTION", {"code": "CAPACITY"})]
    assert (answer["reasons"][0]["waitsFor"]["position"], answer["waitingFor"]) == (1, "capacity")


async def test_a_concurrency_key_names_its_holder(world: World):
    document = flow(GATE, concurrencyKey="{{ input }}")
    holder = await at_the_gate(world, document, "order 7")
    execution = await world.start(document, "order 7")

    reason = await only(world, execution)

    assert (reason["code"], reason["command"]) == ("CONCURRENCY_KEY", f"explain {holder}")
    assert reason["waitsFor"] == {"key": "order 7", "execution": holder, "worker": world.service.store.worker}
    assert reason["why"] == f"its concurrency key 'order 7' is held by execution {holder}"


async def test_everything_that_is_in_the_way_is_said_at_once(world: World):
    await world.restart(default_slots=1)
    document = flow(GATE, concurrencyKey="{{ input }}")
    await at_the_gate(world, document, "k")
    execution = await world.start(document, "k")

    answer = await explained(world, execution, is_alive=False)

    assert codes(answer) == ["NO_WORKER", "CONCURRENCY_KEY", "CAPACITY"]


# Stopped by someone, or over


async def test_a_pause_names_who_and_why_and_holds_what_is_ready(world: World):
    execution = await at_the_gate(world, flow(GATE, act("b"), edges="a->b"))
    await world.service.pause(execution, by="ada", reason="lunch")
    [paused] = await world.events(execution, ExecutionPaused)

    reason = await only(world, execution)
    world.outside.gate().open()
    await world.until(execution, NodeSucceeded)
    [b] = (await explained(world, execution))["nodes"]

    assert (reason["code"], reason["command"]) == ("PAUSED", f"resume {execution}")
    assert reason["waitsFor"] == {"by": "ada", "reason": "lunch", "since": rfc3339(paused.at), "running": 1}
    assert "paused by ada at " in reason["why"]
    assert "(lunch); 1 attempt under way may end" in reason["why"]
    assert (b["code"], b["waitsFor"], b["command"]) == ("EXECUTION", {"code": "PAUSED"}, f"resume {execution}")
    await world.service.cancel(execution)


async def test_a_child_paused_by_its_parent_is_resumed_from_there(world: World):
    parent, child = await family(world)
    await world.service.pause(parent, by="ada")
    await world.until(child, ExecutionPaused)

    reason = await only(world, child)

    assert (reason["code"], reason["command"]) == ("PAUSED", f"resume {parent}")
    assert f"paused by its parent, execution {parent}" in reason["why"]


async def test_what_is_being_cancelled_says_by_whom_and_until_when(world: World):
    execution = await at_the_gate(world, flow(node("a", "stubborn")))
    await world.service.cancel(execution, by="ada", reason="wrong order")

    reason = await only(world, execution)

    assert (reason["code"], reason["waitsFor"]["state"], reason["waitsFor"]["running"]) == ("ENDING", "CANCELLED", 1)
    assert reason["waitsFor"]["graceUntil"] is not None
    assert reason["why"].startswith("it is being cancelled by ada (wrong order); 1 attempt under way may end first")


async def test_a_stop_on_failure_names_the_node_that_failed(world: World):
    document = flow(GATE, act("bad", fails=9, retry=ONCE), onFailure="stop")
    execution = await at_the_gate(world, document)
    await world.until(execution, StopRequested)

    reason = await only(world, execution)

    assert (reason["code"], reason["waitsFor"]["state"]) == ("ENDING", "FAILED")
    assert reason["why"].startswith("node bad failed and onFailure is stop")


async def test_a_failure_says_when_which_dead_letters_and_what_reopens_it(world: World):
    ended = await world.run(flow(act("a", fails=9, retry=ONCE), act("b"), edges="a->b"))
    [letter] = await world.letters(ended.execution)

    answer = await explained(world, ended.execution)
    [reason], [a, b] = answer["reasons"], answer["nodes"]

    assert (reason["code"], reason["command"]) == ("ENDED", f"retry {ended.execution}")
    assert (reason["waitsFor"]["state"], reason["waitsFor"]["deadLetters"]) == ("FAILED", [letter["id"]])
    assert reason["waitsFor"]["at"] == (await world.details(ended.execution))["finishedAt"]
    assert (a["code"], a["command"], a["why"]) == ("FAILED", f"dlq requeue {letter['id']}", "failed: no luck")
    assert (b["state"], b["code"], b["why"]) == ("BLOCKED", "BLOCKED", "behind a, which failed")


async def test_a_failure_whose_dead_letter_was_discarded_can_be_retried(world: World):
    ended = await world.run(flow(act("a", fails=9, retry=ONCE)))
    [letter] = await world.letters(ended.execution)
    await world.service.discard(letter["id"])

    [a] = (await explained(world, ended.execution))["nodes"]

    assert (a["command"], a["waitsFor"]["deadLetters"]) == (f"retry {ended.execution}", [])


async def test_a_success_is_final(world: World):
    ended = await world.run(flow(act("a")))

    reason = await only(world, ended.execution)

    assert (reason["code"], reason["command"]) == ("ENDED", f"replay {ended.execution}")
    assert reason["action"].startswith("SUCCESS is final")


# Nodes that wait


@pytest.mark.parametrize(
    ("waits", "code", "details", "typed"),
    [
        (node("a", "approval", title="Really?"), "APPROVAL", {"title": "Really?", "expiresAt": None}, "approve {} a"),
        (node("a", "wait", signal="go on"), "SIGNAL", {"name": "go on", "expiresAt": None}, "signal {} 'go on'"),
        (node("a", "wait", event="order.paid"), "EVENT",
         {"subject": "order.paid", "filter": None, "expiresAt": None}, "publish order.paid"),
        (node("a", "wait", event="order.*"), "EVENT", {"subject": "order.*", "filter": None, "expiresAt": None}, None),
        (node("a", "wait", until="2100-01-01T00:00:00Z"), "TIMER", {"until": "2100-01-01T00:00:00.000000Z"}, None),
    ],
)  # fmt: skip
async def test_a_wait_says_what_for_and_what_to_type(
    world: World, waits: Json, code: str, details: Json, typed: str | None
):
    execution = await waiting(world, flow(waits))

    reason = await only(world, execution)
    [a] = (await explained(world, execution))["nodes"]

    assert (reason["code"], reason["waitsFor"], reason["node"]) == (code, details, "a")
    assert reason["command"] == (typed and typed.format(execution))
    assert [a[name] for name in SAID] == [reason[name] for name in SAID]
    await world.service.cancel(execution)


async def test_a_wait_with_patience_says_when_that_ends(world: World):
    execution = await waiting(world, flow(node("a", "approval", title="?", timeout="2d")))
    [event] = await world.events(execution, RunWaiting)

    assert (await only(world, execution))["waitsFor"]["expiresAt"] == rfc3339(event.due)
    await world.service.cancel(execution)


async def test_a_child_is_named_with_its_own_reason(world: World):
    parent, child = await family(world)

    reason = await only(world, parent)

    assert (reason["code"], reason["command"]) == ("CHILD", f"explain {child}")
    assert (reason["waitsFor"]["execution"], reason["waitsFor"]["state"]) == (child, "RUNNING")
    assert (reason["waitsFor"]["reason"]["code"], reason["waitsFor"]["reason"]["node"]) == ("APPROVAL", "ask")
    assert reason["why"].endswith("of child, which is RUNNING: waits for approval: Really?")
    await world.service.cancel(parent)


async def test_an_open_breaker_is_named_with_its_end(world: World):
    await world.restart(breaker=BreakerPolicies(BreakerPolicy(minimum_calls=2, cooldown=HOUR)))
    await world.run(flow(node("a", "call", fails=9, retry={"maxAttempts": 2, "delay": "1ms"})))
    execution = await waiting(world, flow(node("b", "call")))
    [event] = await world.events(execution, RunWaiting)

    reason = await only(world, execution)

    assert (reason["code"], reason["node"]) == ("BREAKER", "b")
    assert reason["waitsFor"]["target"] == "call shop"
    assert (reason["waitsFor"]["state"], reason["waitsFor"]["until"]) == ("OPEN", rfc3339(event.wait.due))
    assert (reason["waitsFor"]["failures"], reason["waitsFor"]["givesUpAt"]) == (2, rfc3339(event.at + HOUR))
    assert reason["waitsFor"]["calls"] == 2
    assert "the breaker of call shop is open until" in reason["why"]
    assert reason["why"].endswith(": 2 of 2 calls failed in its window (100 %)")
    assert reason["command"] == "breakers reset 'call shop'"
    await world.service.cancel(execution)


async def test_a_retry_says_which_of_how_many_when_and_why(world: World):
    retry = {"maxAttempts": 3, "delay": "1h", "maxDelay": "1h", "jitter": 0}
    execution = await world.start(flow(act("a", fails=9, retry=retry)))
    event: Any = await world.until(execution, RunFailed)

    reason = await only(world, execution)

    assert reason["code"] == "RETRY"
    assert reason["waitsFor"] == {
        "attempt": 2, "of": 3, "at": rfc3339(event.retry_at), "errorType": "TRANSIENT", "error": "no luck",
        "detail": event.error.detail,
    }  # fmt: skip
    assert event.error.detail.startswith("Traceback")
    assert reason["why"].startswith("attempt 2 of 3 starts at ")
    await world.service.cancel(execution)


# Nodes held by others


async def test_max_parallel_holds_what_is_ready(world: World):
    execution = await at_the_gate(world, flow(GATE, act("b"), maxParallel=1))

    _, b = (await explained(world, execution))["nodes"]

    assert (b["code"], b["waitsFor"]) == ("MAX_PARALLEL", {"maxParallel": 1, "running": 1})


async def test_a_worker_without_a_free_hand_says_that_it_is_only_a_matter_of_time(world: World):
    await world.restart(hands=1)
    execution = await at_the_gate(world, flow(GATE, act("b")))

    assert node_codes(await explained(world, execution)) == [("a", "RUNNING"), ("b", "TURN")]


async def test_a_map_at_its_concurrency_counts_its_items(world: World):
    document = flow(node("m", "gate", forEach=[1, 2, 3, 4, 5], concurrency=2))
    execution = await at_the_gate(world, document, count=2)

    answer = await explained(world, execution)
    [m] = answer["nodes"]

    assert (m["code"], m["items"]) == ("MAP_CONCURRENCY", [])
    assert m["waitsFor"] == {"items": 5, "done": 0, "failed": 0, "underWay": 2, "left": 3, "concurrency": 2}
    assert m["why"] == "0 of 5 items done, 0 failed, 2 under way; concurrency 2 is reached, 3 wait"
    assert answer["reasons"][0]["why"].endswith(": m[0], m[1]")


async def test_items_that_wait_have_reasons_of_their_own(world: World):
    execution = await world.start(flow(node("m", "approval", title="{{ item }}?", forEach=["x", "y"])))
    await world.until(execution, RunWaiting, count=2)

    answer = await explained(world, execution)
    [m] = answer["nodes"]

    assert (m["code"], m["waitsFor"]["underWay"]) == ("ITEMS", 2)
    assert [(each["code"], each["item"], each["command"]) for each in m["items"]] == [
        ("APPROVAL", item, f"approve {execution} m --item {item}") for item in (0, 1)
    ]
    assert [(each["node"], each["item"]) for each in answer["reasons"]] == [("m", 0), ("m", 1)]
    await world.service.cancel(execution)


async def test_a_node_behind_others_names_those_that_are_not_done(world: World):
    many = [node(f"g{number}", "gate") for number in range(7)]
    edges = " ".join(f"{source}->z" for source in ["done", *(f"g{number}" for number in range(7))])
    execution = await at_the_gate(world, flow(act("done"), *many, act("z"), edges=edges), count=7)
    await world.until(execution, NodeSucceeded, "done")

    z = (await explained(world, execution, node="z"))["nodes"][0]

    assert (z["code"], z["waitsFor"]) == ("PREDECESSORS", {"nodes": [f"g{number}" for number in range(5)], "count": 7})
    assert z["why"] == "behind g0, g1, g2, g3, g4 and 2 more"


# Workers


async def test_a_process_that_is_gone_leaves_its_attempts_to_be_made_again(world: World):
    execution = await at_the_gate(world)

    answer = await explained(world, execution, is_alive=False)

    assert codes(answer) == ["NO_WORKER"]
    said = [answer["reasons"][0][name] for name in ("why", "command", "action")]
    if world.service.store.is_shared:
        assert said[0].startswith(f"no worker is alive; {world.service.store.worker} was last heard of ")
        assert said[1:] == [None, "start a worker"]
    else:
        assert said == ["no process executes on this store", f"resume {execution}", None]
    assert node_codes(answer) == [("a", "ATTEMPT_LOST")]


async def test_a_worker_that_only_accepts_is_not_waited_for(world: World):
    await world.restart(claims=False)
    execution = await world.start(flow(act("a")))

    reason = await only(world, execution, accepts_only=True)

    assert reason["code"] == "NO_WORKER"
    assert "accept" in reason["why"]
    assert reason["action"].startswith("start ")
    await world.restart(claims=True)
    assert (await world.ended(execution)).state == "SUCCESS"


async def test_what_the_queue_has_given_up_is_put_back_as_it_is_said(world: World):
    await world.restart(default_slots=1)
    await at_the_gate(world)
    execution = await world.start(flow(act("a"), name="other"))
    await meddle(world.service.store, f"update queue set state = 'FAILED', error = 'oh' where id = '{execution}'")

    reason = (await explained(world, execution))["reasons"][0]
    await world.service.pause(execution)
    await world.service.resume(execution)
    world.outside.gate().open()

    assert (reason["code"], reason["command"]) == ("DISPATCH_FAILED", f"pause {execution}")
    assert f"resume {execution}" in reason["action"]
    assert (await world.ended(execution)).state == "SUCCESS"


async def test_a_worker_that_is_leaving_is_not_waited_for(shared_world: World):
    await shared_world.restart(drain_seconds=30, default_slots=1)
    await at_the_gate(shared_world)
    waits, store = await shared_world.start(flow(act("b"), name="other")), shared_world.service.store
    reader = await PostgresReader.open(shared_world.db)
    leaving = asyncio.create_task(shared_world.close())
    try:
        async with asyncio.timeout(20):
            while codes(said := await explain(reader, "default", waits, store.now())) != ["NO_WORKER", "CAPACITY"]:
                await asyncio.sleep(0)
    finally:
        shared_world.outside.gate().open()
        await leaving
        await reader.close()
        await shared_world.open()

    assert said["reasons"][0]["why"].endswith(f"or are leaving: {store.worker}")
    assert (await shared_world.ended(waits)).state == "SUCCESS"
