"""Executions over HTTP: started once, listed page by page, read in full by those who may."""

from itertools import pairwise
from typing import Any

import pytest

from ropewalk.access.rights import Role
from ropewalk.core.events import RunWaiting
from ropewalk.store import executions
from ropewalk.store import log as stored_log
from ropewalk.store.errors import StoreUnavailable
from tests.api.house import House
from tests.api.stories import ASK, BATCH, BROKEN, EXECUTIONS, GATED, ONE, START, UNKNOWN_ID, Town, fields, town_on
from tests.engines.worlds import ONCE, act, flow

# Lists


async def test_lists_go_on_where_a_page_ended(house: House):
    workflow = await house.save(ONE)
    started = [await house.service.start(await house.service.engine.versions.version(workflow, 1)) for _ in range(3)]

    first = (await house.ask("GET", "/workflow/executions?limit=2")).json()
    second = (await house.ask("GET", f"/workflow/executions?limit=2&cursor={first['next']}")).json()

    assert [each["id"] for each in (*first["items"], *second["items"])] == started[::-1]
    assert second["next"] is None


async def test_a_list_has_what_its_filters_let_through(town: Town):
    good, bad, open_ = await town.run(ONE), await town.run(BROKEN), await town.start(ASK)
    await town.until(open_, RunWaiting)
    at = (await town.get(f"{EXECUTIONS}/{bad}"))["acceptedAt"]
    workflow = (await town.get(f"{EXECUTIONS}/{good}"))["workflowId"]

    async def listed(query: str) -> list[str]:
        return [each["id"] for each in (await town.get(f"{EXECUTIONS}?{query}"))["items"]]

    assert await listed("") == [open_, bad, good]
    assert await listed("state=FAILED") == [bad]
    assert await listed("state=RUNNING") == [open_]
    assert await listed(f"workflowId={workflow}") == [good]
    assert await listed("trigger=CRON") == []
    assert await listed(f"from={at}") == [open_, bad]
    assert await listed(f"to={at}") == [good]
    assert await listed(f"from={at}&state=FAILED&trigger=MANUAL") == [bad]
    assert await listed("to=1999-01-01T00:00:00Z") == []
    assert await listed(f"idPart={bad[-8:]}") == [bad]
    assert await listed(f"idPart={bad}") == [bad]
    assert await listed(f"idPart={bad[:8]}&state=FAILED") == [bad]
    assert await listed(f"idPart={bad[-8:]}&state=SUCCESS") == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("state=DONE", "query.state"),
        ("trigger=x", "query.trigger"),
        ("workflowId=%00", "query.workflowId"),
        ("workflowId=" + "a" * 201, "query.workflowId"),
        ("from=yesterday", "query.from"),
        ("from=2026-02-30T00:00:00Z", "query.from"),
        ("to=2026-01-01T00:00:00", "query.to"),
        ("idPart=ab", "query.idPart"),
        ("idPart=%25%25%25", "query.idPart"),
        ("idPart=a_c", "query.idPart"),
        ("idPart=" + "a" * 37, "query.idPart"),
        ("limit=0", "query.limit"),
        ("limit=201", "query.limit"),
        ("limit=ten", "query.limit"),
        ("cursor=abc", "query.cursor"),
        ("cursor=" + "a" * 2000, "query.cursor"),
    ],
)
async def test_a_list_is_not_asked_for_in_vain(town: Town, query: str, field: str):
    answer = await town.ask("GET", f"{EXECUTIONS}?{query}")

    assert (answer.status_code, fields(answer)) == (422, [field])


async def test_a_page_of_executions_costs_the_same_however_many_workflows_it_is_of(town: Town):
    for number in range(6):
        await town.run({**ONE, "name": f"one {number}"})
    asked: list[str] = []
    fetch = town.backend.store.fetch

    async def counted(name: str, *arguments: Any) -> Any:
        asked.append(name)
        return await fetch(name, *arguments)

    town.backend.store.fetch = counted  # type: ignore[method-assign]  # nothing else says what a store was asked
    await town.get(f"{EXECUTIONS}?limit=1")
    small = sorted(asked)
    asked.clear()
    found = await town.get(f"{EXECUTIONS}?limit=6")

    assert sorted(asked) == small
    assert {each["workflow"] for each in found["items"]} == {f"one {number}" for number in range(6)}


# One execution


async def test_an_execution_tells_everything_it_keeps(town: Town):
    document = flow(act("a", "{{ input.n }}"), act("b", fails=1), edges="a->b", name="both", vars={"shop": "x"})
    execution = await town.run(document, {"n": 3})

    found = await town.get(f"{EXECUTIONS}/{execution}")

    assert (found["state"], found["workflow"], found["version"], found["trigger"]) == ("SUCCESS", "both", 1, "MANUAL")
    assert (found["input"], found["vars"], found["output"]) == ({"n": 3}, {"shop": "x"}, {"b": None})
    assert (found["workspaceId"], found["priority"], found["payloads"]) == ("default", 5, True)
    assert found["metrics"]["nodes"] == {"SUCCESS": 2}
    assert found["metrics"]["attempts"] == 3
    assert found["metrics"]["durationMs"] >= 0
    assert found["metrics"]["queueDelayMs"] >= 0
    assert found["outputHash"] is not None
    assert "nodes" not in found


async def test_an_execution_that_waits_says_for_what(town: Town):
    execution = await town.start(ASK)
    await town.until(execution, RunWaiting)

    found = await town.get(f"{EXECUTIONS}/{execution}")

    assert (found["state"], found["waitingFor"], found["finishedAt"]) == ("RUNNING", "approval", None)
    assert found["metrics"]["durationMs"] is None
    assert found["metrics"]["nodes"] == {"RUNNING": 1}


async def test_a_large_output_is_named_and_can_be_had_alone(town: Town):
    document = flow(act("a", "x" * 30_000, forEach="{{ range(0, 50) }}"), name="large")
    execution = await town.run(document)

    found = await town.get(f"{EXECUTIONS}/{execution}")
    whole = await town.ask("GET", f"{EXECUTIONS}/{execution}/output")

    assert (found["output"], found["outputHash"]) == (None, None)
    assert found["outputReference"]["size"] == len(whole.content) > 1024 * 1024
    assert whole.json()["a"][49] == "x" * 30_000
    assert whole.headers["content-security-policy"].startswith("sandbox")


async def test_what_did_not_succeed_has_no_output(town: Town):
    execution = await town.run(BROKEN)

    assert (await town.ask("GET", f"{EXECUTIONS}/{execution}/output")).status_code == 404


async def test_nodes_are_listed_page_by_page_in_the_order_of_the_document(town: Town):
    names = [f"n{number}" for number in range(5)]
    execution = await town.run(flow(*(act(name) for name in names), name="wide"))

    first = await town.get(f"{EXECUTIONS}/{execution}/nodes?limit=3")
    rest = await town.get(f"{EXECUTIONS}/{execution}/nodes?limit=3&cursor={first['next']}")

    assert [each["id"] for each in (*first["items"], *rest["items"])] == names
    assert {(each["state"], each["type"]) for each in first["items"]} == {("SUCCESS", "act")}
    assert rest["next"] is None


async def test_events_are_read_from_any_place_and_page_by_page(town: Town):
    execution = await town.run(flow(act("a"), act("b"), edges="a->b"))
    whole = (await town.get(f"{EXECUTIONS}/{execution}/events"))["items"]

    paged, query = [], "limit=2"
    while query:
        page = await town.get(f"{EXECUTIONS}/{execution}/events?{query}")
        paged += page["items"]
        query = f"limit=2&cursor={page['next']}" if page["next"] else ""

    assert [each["seq"] for each in whole] == list(range(1, len(whole) + 1))
    assert paged == whole
    assert (await town.get(f"{EXECUTIONS}/{execution}/events?after=3"))["items"] == whole[3:]
    assert (await town.get(f"{EXECUTIONS}/{execution}/events?after=9000"))["items"] == []


async def test_a_long_log_is_told_to_its_end(town: Town, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stored_log, "PAGE_ENTRIES", 2)
    names = [f"n{number}" for number in range(12)]
    edges = " ".join(f"{one}->{next_}" for one, next_ in pairwise(names))
    execution = await town.run(flow(*(act(name, fails=1) for name in names), edges=edges))

    found = (await town.get(f"{EXECUTIONS}/{execution}/events?limit=200"))["items"]

    assert [each["seq"] for each in found] == list(range(1, len(found) + 1))
    assert (len(found) > 24, found[-1]["type"]) == (True, "ExecutionSucceeded")
    for after in range(0, len(found), 5):
        page = await town.get(f"{EXECUTIONS}/{execution}/events?after={after}&limit=4")
        assert page["items"] == found[after : after + 4]


async def test_an_explanation_names_the_reason_and_the_node(town: Town):
    execution = await town.start(ASK)
    await town.until(execution, RunWaiting)

    whole = await town.get(f"{EXECUTIONS}/{execution}/explain")
    one = await town.get(f"{EXECUTIONS}/{execution}/explain?node=ask")

    assert (whole["waitingFor"], whole["nodes"][0]["code"]) == ("approval", "APPROVAL")
    assert one["nodes"] == whole["nodes"]
    assert (await town.ask("GET", f"{EXECUTIONS}/{execution}/explain?node=nix")).status_code == 404


# Who sees what

READS = ("", "/nodes", "/events", "/runs", "/explain", "/output")


@pytest.mark.parametrize("path", READS)
async def test_what_is_anothers_answers_like_what_is_not_there(town: Town, path: str):
    await town.workspace("acme")
    foreign = await town.run(ONE, workspace="acme")
    stranger = await town.key(Role.ADMIN)

    theirs = await town.ask("GET", f"{EXECUTIONS}/{foreign}{path}", stranger)
    absent = await town.ask("GET", f"{EXECUTIONS}/{UNKNOWN_ID}{path}", stranger)

    assert (theirs.status_code, absent.status_code) == (404, 404)
    assert theirs.json()["detail"].replace(foreign, "") == absent.json()["detail"].replace(UNKNOWN_ID, "")


async def test_whom_one_workflow_is_shared_with_sees_its_executions_alone(town: Town):
    shared, hidden = await town.run(ONE), await town.run(BROKEN)
    workflow = (await town.get(f"{EXECUTIONS}/{shared}"))["workflowId"]
    other = (await town.get(f"{EXECUTIONS}/{hidden}"))["workflowId"]
    guest = await town.shared_with(workflow, Role.VIEWER)
    here = "workspaceId=default"

    listed = await town.get(f"{EXECUTIONS}?{here}", guest)
    narrowed = await town.ask("GET", f"{EXECUTIONS}?{here}&workflowId={other}", guest)

    assert [each["id"] for each in listed["items"]] == [shared]
    assert narrowed.status_code == 404
    assert (await town.ask("GET", f"{EXECUTIONS}/{shared}?{here}", guest)).status_code == 200
    assert (await town.ask("GET", f"{EXECUTIONS}/{hidden}?{here}", guest)).status_code == 404
    assert (await town.tell(f"{EXECUTIONS}/{shared}/cancel?{here}", token=guest)).status_code == 403


async def test_payloads_are_for_those_who_may_read_them(town: Town):
    secret = "s3cret"
    document = flow(act("a", "{{ input }}"), act("b", fails=9, retry=ONCE), name="open", vars={"v": secret})
    execution = await town.run({**document, "concurrencyKey": "{{ input }}"}, secret)
    viewer = await town.key(Role.VIEWER)

    for path in ("", "/nodes", "/events", "/runs", "/explain"):
        answer = await town.ask("GET", f"{EXECUTIONS}/{execution}{path}", viewer)
        assert answer.status_code == 200
        assert secret not in answer.text
    whole = await town.get(f"{EXECUTIONS}/{execution}", viewer)
    events = (await town.get(f"{EXECUTIONS}/{execution}/events", viewer))["items"]

    assert (whole["payloads"], whole["input"], whole["vars"], whole["concurrencyKey"]) == (False, None, None, None)
    assert {each["payloads"] for each in events} == {False}
    assert (await town.ask("GET", f"{EXECUTIONS}/{execution}/output", viewer)).status_code == 403


@pytest.mark.parametrize("name", ["a" * 65, "x%00y", "%2e%2e", "é", "a b", "'; drop table execution; --"])
@pytest.mark.parametrize("path", ["", "/events", "/runs", "/explain"])
async def test_an_id_that_cannot_be_is_refused(town: Town, name: str, path: str):
    answer = await town.ask("GET", f"{EXECUTIONS}/{name}{path}")

    assert answer.status_code in (404, 422)
    assert answer.headers["content-type"] == "application/problem+json"


# When the store is away


async def test_while_the_store_is_away_nothing_is_done_and_callers_are_asked_to_come_back(
    town: Town, monkeypatch: pytest.MonkeyPatch
):
    workflow, execution = await town.save(ONE), await town.start(GATED)
    await town.outside.gate().arrived()
    before = await executions.listed(town.backend.store, "default")

    async def away(*_: Any) -> Any:
        raise StoreUnavailable("not now")

    with monkeypatch.context() as broken:
        for method in ("fetch", "fetch_one", "write"):
            broken.setattr(town.backend.store, method, away)
        start = {"workflowDefinitionId": workflow}
        answers = [
            await town.tell(START, start),
            await town.tell(START, start, headers={"Idempotency-Key": "k"}),
            await town.tell(BATCH, {"starts": [start]}),
            await town.tell(f"{EXECUTIONS}/{execution}/cancel"),
            await town.ask("GET", EXECUTIONS),
            await town.ask("GET", f"{EXECUTIONS}/{execution}"),
        ]

    assert {(each.status_code, "retry-after" in each.headers) for each in answers} == {(503, True)}
    assert await executions.listed(town.backend.store, "default") == before
    town.outside.gate().open()
    assert (await town.service.ended(execution)).state == "SUCCESS"


async def test_a_commit_that_fails_is_no_start(town: Town, monkeypatch: pytest.MonkeyPatch):
    workflow = await town.save(ONE)

    async def away(*_: Any) -> Any:
        raise StoreUnavailable("not now")

    with monkeypatch.context() as broken:
        broken.setattr(town.backend.store, "write", away)
        answer = await town.tell(START, {"workflowDefinitionId": workflow})

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert await executions.listed(town.backend.store, "default") == []


# On a shared store


async def test_the_same_is_told_of_executions_on_a_shared_store(database: str):
    async with town_on(database) as town:
        await town.tell(BATCH, {"starts": [{"workflowDefinitionId": await town.save(ONE)}] * 3})
        execution = await town.run(flow(act("a", 7), name="seven"))
        guest = await town.shared_with(await town.save(ONE), Role.VIEWER)

        listed = await town.get(f"{EXECUTIONS}?from=2020-01-01T00:00:00Z")
        shared = await town.get(f"{EXECUTIONS}?workspaceId=default", guest)
        found = await town.get(f"{EXECUTIONS}/{execution}")

        assert [each["workflow"] for each in listed["items"]] == ["seven", "one", "one", "one"]
        assert [each["workflow"] for each in shared["items"]] == ["one"] * 3
        assert (found["output"], found["metrics"]["attempts"]) == ({"a": 7}, 1)
        for path in READS:
            assert (await town.ask("GET", f"{EXECUTIONS}/{execution}{path}")).status_code == 200
