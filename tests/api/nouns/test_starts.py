"""Starts over HTTP: one, many at once, and again under the same key."""

import asyncio
from typing import Any

import pytest

from ropewalk.access.rights import Role
from ropewalk.service import definitions
from ropewalk.store import audit
from tests.api.house import House
from tests.api.stories import BATCH, EXECUTIONS, ONE, START, UNKNOWN_ID, Town, fields, town_on

TYPED = {**ONE, "name": "typed", "input": {"type": "object", "required": ["orderId"]}, "vars": {"shop": "x"}}


async def test_a_start_is_accepted_and_comes_to_its_end(house: House):
    workflow = await house.save(ONE)

    answer = await house.ask("POST", START, json={"workflowDefinitionId": workflow})

    assert answer.status_code == 202
    ended = await house.service.ended(answer.json()["executionId"])
    assert ended.state == "SUCCESS"


async def test_a_viewer_may_not_start(house: House):
    workflow, viewer = await house.save(ONE), await house.key(Role.VIEWER)

    answer = await house.ask("POST", START, viewer, json={"workflowDefinitionId": workflow})

    assert answer.status_code == 403
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("header", ["Idempotency-Key", "Content-Type", "traceparent"])
async def test_what_is_said_twice_in_headers_starts_nothing(house: House, header: str):
    workflow, twice = await house.save(ONE), [(header, "application/json"), (header, "application/json")]

    answer = await house.ask("POST", START, json={"workflowDefinitionId": workflow}, headers=twice)

    assert answer.status_code == 400
    assert fields(answer) == [f"header.{header.lower()}"]
    assert (await house.ask("GET", EXECUTIONS)).json()["items"] == []


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonl", ""])
async def test_a_body_that_does_not_say_it_is_json_is_told_so(house: House, kind: str):
    text = '{"workflowDefinitionId": "%s"}' % await house.save(ONE)

    answer = await house.ask("POST", START, content=text, headers={"Content-Type": kind})

    assert answer.status_code == 415
    assert fields(answer) == ["header.content-type"]


async def test_the_same_request_under_the_same_key_is_accepted_once(town: Town):
    body = {"workflowDefinitionId": await town.save(ONE), "input": {"n": 1}}
    key = {"Idempotency-Key": "order A-7"}

    first, second = await asyncio.gather(*(town.tell(START, body, headers=key) for _ in range(2)))
    other = await town.tell(START, {**body, "input": {"n": 2}}, headers=key)

    assert (first.status_code, second.status_code, other.status_code) == (202, 202, 409)
    assert first.json() == second.json()
    assert len((await town.get(EXECUTIONS))["items"]) == 1


async def test_many_at_once_under_the_same_key_are_one_on_a_shared_store(database: str):
    async with town_on(database) as town:
        body = {"workflowDefinitionId": await town.save(ONE)}
        key = {"Idempotency-Key": "once"}

        answers = await asyncio.gather(*(town.tell(START, body, headers=key) for _ in range(8)))

        assert {each.status_code for each in answers} == {202}
        assert len({each.json()["executionId"] for each in answers}) == 1


@pytest.mark.parametrize("route", [START, BATCH])
async def test_a_repeated_request_is_answered_the_same_also_after_publishing_and_archiving(town: Town, route: str):
    start = {"workflowDefinitionId": await town.save(ONE)}
    body = start if route == START else {"starts": [start]}
    key = {"Idempotency-Key": "again"}
    first = await town.tell(route, body, headers=key)
    await town.save({**ONE, "description": "another version"})
    second = await town.tell(route, body, headers=key)
    workflow = (await town.get(f"/workflow/definitions/{start['workflowDefinitionId']}"))["id"]
    await town.ask("POST", f"/workflow/definitions/{workflow}/archive")

    third = await town.tell(route, body, headers=key)

    assert first.json() == second.json() == third.json()
    assert (await town.tell(route, body)).status_code in (409, 422)


async def test_a_batch_is_accepted_in_order_with_an_audit_row_each(town: Town):
    workflow = await town.save(ONE)
    starts = [{"workflowDefinitionId": workflow, "input": number, "priority": 7} for number in range(5)]

    answer = await town.tell(BATCH, {"starts": starts})

    assert (answer.status_code, answer.json()["count"]) == (202, 5)
    ids = [each["executionId"] for each in answer.json()["started"]]
    assert [(await town.get(f"{EXECUTIONS}/{each}"))["input"] for each in ids] == list(range(5))
    rows = await audit.listed(town.backend.store, "default", audit.Filter(verb="start"))
    assert sorted(row.object for row in rows) == sorted(ids)


async def test_a_batch_names_every_start_that_cannot_be_and_accepts_none(town: Town):
    typed, keyed = await town.save(TYPED), await town.save({**ONE, "name": "k", "concurrencyKey": "{{ input + 1 }}"})
    good = {"workflowDefinitionId": typed, "input": {"orderId": "A-7"}}

    bad_inputs = await town.tell(BATCH, {"starts": [good, {**good, "input": {}}, good, {**good, "vars": {"x": 1}}]})
    bad_workflow = await town.tell(BATCH, {"starts": [good, {"workflowDefinitionId": UNKNOWN_ID}]})
    bad_version = await town.tell(BATCH, {"starts": [good, {**good, "version": 99}]})
    bad_key = await town.tell(BATCH, {"starts": [good, {"workflowDefinitionId": keyed, "input": "x"}]})

    assert {each.status_code for each in (bad_inputs, bad_workflow, bad_version, bad_key)} == {422}
    assert [field.split(".")[0] for field in fields(bad_inputs)] == ["starts[1]", "starts[3]"]
    assert fields(bad_workflow) == ["starts[1].workflowDefinitionId"]
    assert fields(bad_version) == ["starts[1].version"]
    assert fields(bad_key) == ["starts[1].concurrencyKey"]
    assert (await town.get(EXECUTIONS))["items"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "workflowDefinitionId"),
        ({"workflowDefinitionId": "a" * 201}, "workflowDefinitionId"),
        ({"workflowDefinitionId": ""}, "workflowDefinitionId"),
        ({"workflowDefinitionId": UNKNOWN_ID, "priority": 10}, "priority"),
        ({"workflowDefinitionId": UNKNOWN_ID, "priority": "5"}, "priority"),
        ({"workflowDefinitionId": UNKNOWN_ID, "version": 0}, "version"),
        ({"workflowDefinitionId": UNKNOWN_ID, "vars": []}, "vars"),
        ({"workflowDefinitionId": UNKNOWN_ID, "who": 1}, "who"),
    ],
)
async def test_a_start_that_makes_no_sense_is_refused_by_its_field(town: Town, body: Any, field: str):
    single, batch = await town.tell(START, body), await town.tell(BATCH, {"starts": [body]})

    assert (single.status_code, fields(single)) == (422, [field])
    assert (batch.status_code, fields(batch)) == (422, [f"starts[0].{field}"])


@pytest.mark.parametrize("count", [0, 1001])
async def test_a_batch_has_one_to_a_thousand_starts(town: Town, count: int):
    answer = await town.tell(BATCH, {"starts": [{"workflowDefinitionId": UNKNOWN_ID}] * count})

    assert (answer.status_code, fields(answer)) == (422, ["starts"])


async def test_what_has_no_published_version_is_not_started(town: Town):
    await definitions.create(town.service, ONE, "ann", is_published=False)
    (workflow,) = (await town.get("/workflow/definitions"))["items"]

    answer = await town.tell(START, {"workflowDefinitionId": workflow["id"]})

    assert answer.status_code == 409


@pytest.mark.parametrize("route", [START, BATCH])
async def test_a_workspace_named_in_the_body_is_as_good_as_one_in_the_query(town: Town, route: str):
    workflow = await town.save(ONE)
    guest = await town.shared_with(workflow, Role.OPERATOR)
    lacking = await town.key(Role.RUNNER, "elsewhere")
    one = {"workflowDefinitionId": workflow}
    body = one if route == START else {"starts": [one]}

    by_query = await town.ask("POST", route, guest, json=body, params={"workspaceId": "default"})
    by_body = await town.ask("POST", route, guest, json={**body, "workspaceId": "default"})
    at_home = await town.ask("POST", route, lacking, json=body)
    foreign = await town.ask("POST", route, lacking, json={**body, "workspaceId": "default"})

    assert [by_query.status_code, by_body.status_code] == [202, 202]
    assert [at_home.status_code, foreign.status_code] == [403, 404]
