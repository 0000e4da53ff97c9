"""Runs over HTTP: every attempt, with what it was given and what it gave, wherever it is."""

from typing import Any

import pytest

from ropewalk.access.rights import Role
from ropewalk.core.canonical import content_hash
from ropewalk.core.events import RunFailed, RunWaiting
from ropewalk.service import reading
from ropewalk.service.reading.runs import Wanted
from ropewalk.store import executions
from tests.api.house import House
from tests.api.nouns.test_leases import lease, painted, report, start
from tests.api.stories import ASK, BROKEN, EXECUTIONS, GATED, LETTERS, UNKNOWN_ID, Town, town_on
from tests.engines.worlds import ONCE, act, flow, node

RUNS = "/workflow/runs"
SLOW = {"maxAttempts": 3, "delay": "1h", "jitter": 0}


async def runs_of(town: Town, execution: str, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await town.get(f"{RUNS}?executionId={execution}{query}"))["items"]
    return found


async def test_every_attempt_is_listed_and_found_by_node_and_state(town: Town):
    execution = await town.run(flow(act("a", fails=1), act("b"), edges="a->b"))

    listed = await runs_of(town, execution)

    # They are listed as they began, and within a millisecond in any order.
    every = sorted(listed, key=lambda each: (each["node"], each["attempt"]))
    assert [(each["node"], each["attempt"], each["state"]) for each in every] == [
        ("a", 1, "FAILED"),
        ("a", 2, "SUCCESS"),
        ("b", 1, "SUCCESS"),
    ]
    assert (every[0]["errorType"], every[0]["error"]) == ("TRANSIENT", "no luck")
    assert every[0]["durationMs"] >= 0
    assert await runs_of(town, execution, "&node=b") == every[2:]
    assert await runs_of(town, execution, "&state=FAILED") == every[:1]
    assert (await town.get(f"{EXECUTIONS}/{execution}/runs"))["items"] == listed


async def test_a_list_goes_on_where_a_page_ended(town: Town):
    execution = await town.run(flow(act("a", forEach=[1, 2, 3, 4, 5])))
    every = await runs_of(town, execution)

    first = await town.get(f"{RUNS}?executionId={execution}&limit=4")
    rest = await town.get(f"{RUNS}?executionId={execution}&limit=4&cursor={first['next']}")

    assert [*first["items"], *rest["items"]] == every
    assert len(every) == 6


async def test_the_table_and_the_log_tell_the_same_of_what_is_over(town: Town):
    execution = await town.run(flow(act("a", fails=1), act("b", forEach=[1, 2]), act("c", fails=9, retry=ONCE)))
    store = town.backend.store
    row = await executions.get(store, "default", execution)
    assert row is not None

    from_table = await reading.page_of_runs(store, row, Wanted(), limit=200)
    from_log = await reading.list_runs(store, execution)

    assert from_table == sorted(from_log, key=lambda run: str(run["id"]))


async def test_a_run_tells_everything_that_is_known_of_it(town: Town):
    execution = await town.run(flow(act("a", "{{ input.n }}", fails=1), name="told"), {"n": 7})
    first, second = sorted(await runs_of(town, execution), key=lambda run: int(run["attempt"]))

    failed, done = [await town.get(f"{RUNS}/{each['id']}") for each in (first, second)]

    assert done["inputs"] == failed["inputs"] == {"value": 7, "fails": 1}
    assert (done["output"], failed["output"]) == (7, None)
    assert done["inputsHash"] == content_hash(done["inputs"])
    assert [each.key for each in town.outside.attempts(execution, "a")] == [
        failed["idempotencyKey"],
        done["idempotencyKey"],
    ]
    assert failed["retryAfter"] is not None
    assert done["payloads"] is True
    assert (await town.ask("GET", f"{RUNS}/{done['id']}/output")).json() == 7
    assert (await town.ask("GET", f"{RUNS}/{failed['id']}/output")).status_code == 404


async def test_each_item_of_a_map_has_its_own_inputs_and_output(town: Town):
    execution = await town.run(flow(act("a", "{{ item }}", forEach=[5, 6])))
    runs = await runs_of(town, execution)

    details = {run["item"]: await town.get(f"{RUNS}/{run['id']}") for run in runs}

    assert {item: each["output"] for item, each in details.items()} == {None: {"items": 2}, 0: 5, 1: 6}
    assert details[0]["idempotencyKey"] != details[1]["idempotencyKey"]
    assert details[None]["idempotencyKey"] is None


async def test_a_run_that_is_under_way_is_found_and_says_who_has_it(town: Town):
    execution = await town.start(GATED)
    await town.outside.gate().arrived()
    (run,) = await runs_of(town, execution)

    alone = await town.get(f"{RUNS}/{run['id']}")
    named = await town.get(f"{RUNS}/{run['id']}?executionId={execution}")

    assert alone == named
    assert (alone["state"], alone["worker"], alone["finishedAt"]) == ("RUNNING", town.backend.store.worker, None)
    assert (alone["leasedBy"], alone["fence"]) == (None, None)


async def test_a_run_that_waits_says_for_what(town: Town):
    execution = await town.start(ASK)
    await town.until(execution, RunWaiting)
    (run,) = await runs_of(town, execution, "&state=WAITING")

    assert (await town.get(f"{RUNS}/{run['id']}"))["waitingFor"] == "approval"


async def test_a_large_output_is_named_and_can_be_had_alone(town: Town):
    execution = await town.run(flow(act("a", "{{ input }}")), "x" * 900_000)
    (run,) = await runs_of(town, execution)
    small = await town.get(f"{RUNS}/{run['id']}")
    assert len(small["output"]) == 900_000

    whole = await town.ask("GET", f"{RUNS}/{run['id']}/output")

    assert small["outputReference"]["size"] == len(whole.content)


async def test_payloads_are_for_those_who_may_read_them(town: Town):
    execution = await town.run(flow(act("a", "s3cret")))
    (run,) = await runs_of(town, execution)
    viewer = await town.key(Role.VIEWER)

    shown = await town.ask("GET", f"{RUNS}/{run['id']}", viewer)

    assert "s3cret" not in shown.text
    assert (shown.json()["payloads"], shown.json()["inputs"], shown.json()["inputsHash"]) == (False, None, None)
    assert (await town.ask("GET", f"{RUNS}/{run['id']}/output", viewer)).status_code == 403


# Given up by hand


async def given_up(town: Town, execution: str, **more: Any) -> tuple[int, dict[str, Any]]:
    run = (await runs_of(town, execution))[-1]
    answer = await town.tell(f"{RUNS}/{run['id']}/dead-letter", **more)
    return answer.status_code, answer.json()


async def test_a_run_under_way_is_given_up_once(town: Town):
    execution = await town.start(GATED)
    await town.outside.gate().arrived()

    first = await given_up(town, execution, body={"reason": "it hangs"})
    second = await given_up(town, execution)

    assert (first[0], first[1]["changed"]) == (202, True)
    assert (second[0], second[1]["changed"]) == (200, False)
    letter = await town.letter(execution)
    assert (letter["failureType"], letter["reason"]) == ("MANUAL", "it hangs")


async def test_a_run_that_waits_or_is_to_be_tried_again_is_given_up(town: Town):
    asked = await town.start(ASK)
    await town.until(asked, RunWaiting)
    later = await town.start(flow(act("a", fails=2, retry=SLOW), name="later"))
    await town.until(later, RunFailed)

    assert [(await given_up(town, each))[0] for each in (asked, later)] == [202, 202]
    assert {(await town.letter(each))["failureType"] for each in (asked, later)} == {"MANUAL"}


async def test_a_run_that_is_over_is_not_given_up(town: Town):
    good = await town.run(flow(act("a", fails=1)))
    first, second = await runs_of(town, good)

    answers = [await town.tell(f"{RUNS}/{each['id']}/dead-letter") for each in (first, second)]

    assert [each.status_code for each in answers] == [409, 409]
    assert (await town.get(LETTERS))["items"] == []


async def test_giving_up_an_attempt_that_is_over_leaves_the_one_after_it_alone(town: Town):
    often = {"maxAttempts": 100, "delay": "1ms", "jitter": 0}
    execution = await town.start(flow(node("a", "gate", retry=often, timeout="300ms")))
    await town.outside.gate().arrived(2)
    first = (await runs_of(town, execution))[0]

    answer = await town.tell(f"{RUNS}/{first['id']}/dead-letter")

    assert (answer.status_code, first["state"], first["errorType"]) == (409, "FAILED", "TIMEOUT")
    assert (await town.get(f"{EXECUTIONS}/{execution}"))["state"] == "RUNNING"
    assert (await town.get(LETTERS))["items"] == []


# Who sees what


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("GET", "/output"), ("POST", "/dead-letter")])
async def test_what_is_anothers_answers_like_what_is_not_there(town: Town, method: str, path: str):
    await town.workspace("acme")
    foreign = await town.run(BROKEN, workspace="acme")
    (run,) = await runs_of(town, foreign, "&workspaceId=acme")
    stranger = await town.key(Role.ADMIN)

    answers = [
        await town.ask(method, f"{RUNS}/{each}{path}{query}", stranger)
        for each, query in ((run["id"], ""), (run["id"], f"?executionId={foreign}"), (UNKNOWN_ID, ""))
    ]

    assert {each.status_code for each in answers} == {404}
    assert len({each.json()["detail"].replace(run["id"], UNKNOWN_ID) for each in answers}) == 1


async def test_a_run_of_a_workflow_that_is_not_shared_is_not_there(town: Town):
    execution, other = await town.run(BROKEN), await town.run(flow(act("a"), name="mine"))
    workflow = (await town.get(f"{EXECUTIONS}/{other}"))["workflowId"]
    guest = await town.shared_with(workflow, Role.OPERATOR)
    (hidden,), (open_,) = await runs_of(town, execution), await runs_of(town, other)

    assert (await town.ask("GET", f"{RUNS}/{hidden['id']}?workspaceId=default", guest)).status_code == 404
    assert (await town.ask("GET", f"{RUNS}/{open_['id']}?workspaceId=default", guest)).status_code == 200
    path = f"{RUNS}?workspaceId=default&executionId="
    assert (await town.ask("GET", f"{path}{execution}", guest)).status_code == 404


@pytest.mark.parametrize(
    "query",
    ["", "?executionId=", "?executionId=%00", "?executionId=a&state=x", "?executionId=a&node=1", "?executionId=a'b"],
)
async def test_a_list_is_not_asked_for_in_vain(town: Town, query: str):
    answer = await town.ask("GET", f"{RUNS}{query}")

    assert answer.status_code == 422
    assert answer.json()["problems"]


async def test_a_run_offered_to_a_pool_says_so(database: str):
    async with town_on(database) as town:
        execution = await town.start(flow({**act("a", 7), "pool": "far"}, name="pooled"))
        run = await offered(town, execution)

        found = await town.get(f"{RUNS}/{run['id']}")

        assert (found["state"], found["pool"], found["leasedBy"], found["fence"]) == ("PENDING", "far", None, 0)
        assert (await given_up(town, execution))[0] == 202


async def offered(town: Town, execution: str) -> dict[str, Any]:
    """The one run of an execution, once others may have it."""
    for _ in range(1_000):
        (run,) = await runs_of(town, execution)
        if run["state"] == "PENDING":
            return run
    raise AssertionError("the run was not offered")


async def test_what_a_failed_attempt_used_up_stays_known_when_it_is_given_up_by_hand(house: House):
    document = painted(retry={"delay": "1h", "maxDelay": "1h"})
    execution = await start(house, document)
    [run] = await lease(house)
    await report(house, run, "fail", tokens=5, error={"type": "TRANSIENT", "message": "no"})
    async for _, event in house.service.follow(execution):
        if isinstance(event, RunFailed):
            break
    given_up = await house.ask("POST", f"{RUNS}/{run['runId']}/dead-letter", params={"executionId": execution})
    await house.service.ended(execution)

    kept = (await house.ask("GET", f"{RUNS}/{run['runId']}")).json()
    metrics = (await house.ask("GET", f"/workflow/executions/{execution}")).json()["metrics"]

    assert given_up.status_code == 202
    assert (kept["state"], kept["tokenCost"], metrics["tokens"]) == ("DLQ", 5, 5)
