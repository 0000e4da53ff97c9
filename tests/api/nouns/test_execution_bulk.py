"""Many executions over HTTP: searched, counted, told together, and what waits for a person."""

import pytest

from ropewalk.access.rights import Role
from ropewalk.core.events import RunWaiting
from tests.api.stories import ASK, BROKEN, EXECUTIONS, ONE, Town, fields
from tests.engines.worlds import flow, node

KEYED = flow(node("a", "fail", message="100% of a_b!"), name="keyed")


async def test_executions_are_found_by_a_text_in_what_the_caller_may_read(town: Town):
    good, bad, odd = await town.run(ONE), await town.run(BROKEN), await town.run(KEYED)
    viewer = await town.key(Role.VIEWER)

    async def found(text: str, token: str | None = None) -> list[str]:
        answer = await town.ask("GET", EXECUTIONS, token, params={"search": text})
        return [each["id"] for each in answer.json()["items"]]

    assert await found(good[-8:]) == [good]
    assert await found("KEYED") == [odd]
    assert await found("100% of A_B!") == [odd]
    assert (await found("%"), await found("a_b")) == ([odd], [odd])
    assert await found("no such text") == []
    assert (await found("100%", viewer), await found("keyed", viewer)) == ([], [odd])
    assert bad in [each["id"] for each in (await town.get(f"{EXECUTIONS}?state=FAILED"))["items"]]


async def test_executions_that_wait_are_listed_with_what_for_and_counted(town: Town):
    await town.run(ONE)
    asked = [await town.start(ASK) for _ in range(3)]
    for each in asked:
        await town.until(each, RunWaiting)

    waiting = (await town.get(f"{EXECUTIONS}?waiting=true"))["items"]
    counts = [
        (await town.get(f"{EXECUTIONS}-count{query}"))["count"]
        for query in ("", "?waiting=true", f"?waiting=true&before={asked[1]}", "?state=FAILED", "?search=nothing")
    ]

    assert [(each["id"], each["waitingFor"]) for each in waiting] == [(each, "approval") for each in asked[::-1]]
    assert counts == [4, 3, 1, 0, 0]


async def test_an_approval_says_what_is_asked_and_who_may_answer(town: Town):
    execution = await town.start(ASK)
    await town.until(execution, RunWaiting)
    await town.ask("PUT", "/members", json={"subject": "user:ann", "role": "operator"})
    await town.ask("PUT", "/members", json={"subject": "user:bob", "role": "viewer"})
    viewer = await town.key(Role.VIEWER)

    (mine,) = (await town.get("/workflow/approvals"))["items"]
    (theirs,) = (await town.ask("GET", "/workflow/approvals", viewer)).json()["items"]
    await town.ask("POST", f"{EXECUTIONS}/{execution}/approve", json={"node": mine["node"], "approved": True})

    assert (mine["executionId"], mine["node"], mine["title"], mine["mayAnswer"]) == (execution, "ask", "Really?", True)
    assert mine["answerers"] == {"roles": ["operator", "editor", "admin"], "subjects": ["user:ann"]}
    assert (theirs["mayAnswer"], theirs["answerers"]["subjects"], theirs["payloads"]) == (False, None, False)
    assert "withheld" in theirs["title"]
    assert (await town.get("/workflow/approvals"))["items"] == []


async def test_approvals_of_a_map_go_on_where_a_page_ended(town: Town):
    asks = node("ask", "approval", title="item {{ item }}?") | {"forEach": "{{ [1, 2, 3] }}"}
    await town.start(flow(asks, name="many"))
    while len((await town.get("/workflow/approvals"))["items"]) < 3:
        pass

    pages, cursor = [], ""
    while cursor is not None:
        page = await town.get(f"/workflow/approvals?limit=2{cursor and f'&cursor={cursor}'}")
        pages.append([(each["item"], each["title"]) for each in page["items"]])
        cursor = page["next"]

    assert [each for page in pages for each in page] == [(0, "item 1?"), (1, "item 2?"), (2, "item 3?")]


async def test_many_are_counted_before_they_are_cancelled_and_told_in_steps(town: Town):
    asked = [await town.start(ASK) for _ in range(3)]
    for each in asked:
        await town.until(each, RunWaiting)
    other = await town.run(ONE)

    counted = (await town.ask("POST", f"{EXECUTIONS}/cancel", json={"waiting": True, "dryRun": True})).json()
    first = (await town.ask("POST", f"{EXECUTIONS}/cancel", json={"waiting": True, "limit": 2})).json()
    body = {"waiting": True, "limit": 2, "cursor": first["next"]}
    second = (await town.ask("POST", f"{EXECUTIONS}/cancel", json=body)).json()

    assert (counted["count"], counted["exact"], counted["executions"]) == (3, True, [])
    assert [each["id"] for each in (*first["executions"], *second["executions"])] == asked
    assert (first["counts"], second["counts"], second["next"]) == ({"DONE": 2}, {"DONE": 1}, None)
    assert {(await town.get(f"{EXECUTIONS}/{each}"))["state"] for each in asked} == {"CANCELLED"}
    assert (await town.get(f"{EXECUTIONS}/{other}"))["state"] == "SUCCESS"


async def test_many_that_failed_are_retried(town: Town):
    failed = [await town.run(BROKEN) for _ in range(2)]
    spared = await town.run(KEYED)
    workflow = (await town.get(f"{EXECUTIONS}/{failed[0]}"))["workflowId"]

    told = (await town.ask("POST", f"{EXECUTIONS}/retry", json={"workflowId": workflow})).json()
    events = [(await town.get(f"{EXECUTIONS}/{each}/events?limit=200"))["items"] for each in (*failed, spared)]

    assert told["counts"] == {"DONE": 2}
    assert [any(each["type"] == "ExecutionReopened" for each in log) for log in events] == [True, True, False]


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("cancel", {}, "all"),
        ("cancel", {"state": "FAILED"}, "state"),
        ("retry", {"state": "RUNNING"}, "state"),
        ("retry", {"search": ""}, "search"),
        ("retry", {"search": "a" * 201}, "search"),
        ("cancel", {"all": True, "limit": 0}, "limit"),
        ("cancel", {"all": True, "from": "yesterday"}, "from"),
        ("cancel", {"all": "yes"}, "all"),
        ("cancel", {"every": True}, "every"),
    ],
)
async def test_what_is_not_clear_is_refused_with_its_field(verb: str, body: dict[str, object], field: str, town: Town):
    answer = await town.ask("POST", f"{EXECUTIONS}/{verb}", json=body)

    assert (answer.status_code, fields(answer)) == (422, [field])


async def test_a_share_of_one_workflow_cancels_that_one_alone(town: Town):
    mine, theirs = await town.start(ASK), await town.start({**ASK, "name": "other"})
    for each in (mine, theirs):
        await town.until(each, RunWaiting)
    workflow = (await town.get(f"{EXECUTIONS}/{mine}"))["workflowId"]
    key = await town.shared_with(workflow, Role.OPERATOR)

    everything = await town.tell(f"{EXECUTIONS}/cancel?workspaceId=default", {"all": True}, key)
    body = {"workflowId": workflow}
    told = (await town.tell(f"{EXECUTIONS}/cancel?workspaceId=default", body, key)).json()

    assert everything.status_code == 404
    assert [each["id"] for each in told["executions"]] == [mine]
    assert (await town.get(f"{EXECUTIONS}/{theirs}"))["state"] == "RUNNING"
