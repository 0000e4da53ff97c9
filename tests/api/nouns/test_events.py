"""Events over HTTP: every execution that waits for one is told, durably."""

import json
from typing import Any

import pytest

from ropewalk.access.rights import Role
from ropewalk.core.events import RunWaiting
from ropewalk.store import audit
from tests.api.stories import Town
from tests.engines.worlds import flow, node

WAITS = flow(node("w", "wait", event="order.*", filter="item.total > 10"), name="waits")


async def test_those_who_wait_for_an_event_are_told_if_their_filter_lets_it_through(each_town: Town):
    waiting = [await each_town.start(WAITS) for _ in range(2)]
    for each in waiting:
        await each_town.until(each, RunWaiting)

    small = await each_town.tell("/events", {"subject": "order.paid", "payload": {"total": 1}})
    other = await each_town.tell("/events", {"subject": "invoice.paid", "payload": {"total": 11}})
    meant = await each_town.tell("/events", {"subject": "order.paid", "payload": {"total": 11}})

    assert [each.json()["told"] for each in (small, other, meant)] == [0, 0, 2]
    assert {each.status_code for each in (small, other, meant)} == {202}
    assert [(await each_town.service.ended(each)).output["w"] for each in waiting] == [
        {"subject": "order.paid", "payload": {"total": 11}}
    ] * 2


async def test_who_published_what_is_in_the_audit_log(town: Town):
    operator = await town.key(Role.OPERATOR)
    await town.tell("/events", {"subject": "order.paid"}, operator)

    (row,) = await audit.listed(town.backend.store, "default", audit.Filter(verb="publish"))

    assert (row.actor, row.object) == (f"key:{operator.split('_')[1]}", "order.paid")


async def test_an_event_stays_in_its_workspace(town: Town):
    execution = await town.start(WAITS)
    await town.until(execution, RunWaiting)
    await town.workspace("acme")
    stranger, viewer = await town.key(Role.ADMIN, "acme"), await town.key(Role.VIEWER)
    body = {"subject": "order.paid", "payload": {"total": 11}}

    assert (await town.tell("/events", body, stranger)).json()["told"] == 0
    assert (await town.tell("/events", body, viewer)).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"subject": ""},
        {"subject": "order..paid"},
        {"subject": "order.*"},
        {"subject": "breaker:shop"},
        {"subject": "order.paid\n"},
        {"subject": "x" * 256},
        {"subject": 7},
        {"subject": "a", "who": 1},
    ],
)
async def test_an_event_without_a_proper_subject_is_refused(town: Town, body: Any):
    answer = await town.tell("/events", body)

    assert answer.status_code == 422
    assert answer.json()["problems"]
    assert await audit.listed(town.backend.store, "default", audit.Filter(verb="publish")) == []


LISTENING = {"ropewalk": 1, "name": "listening", "nodes": [{"id": "a", "type": "noop"}],
             "triggers": [{"event": "order.>", "name": "ear", "input": "{{ event }}"}]}  # fmt: skip


async def test_an_event_fires_the_triggers_that_listen_once_for_its_id(town: Town):
    await town.save(LISTENING)

    first = await town.tell("/events", {"subject": "order.paid", "payload": 1, "id": "7"})
    second = await town.tell("/events", {"subject": "order.paid", "payload": 1, "id": "7"})
    batch = await town.tell("/events/batch", {"events": [{"subject": "order.a"}, {"subject": "other"}]})

    assert (first.status_code, first.json()["started"]) == (202, second.json()["started"])
    assert [len(each["started"]) for each in batch.json()["published"]] == [1, 0]
    assert len((await town.get("/workflow/executions?trigger=EVENT"))["items"]) == 2


async def test_cloud_events_come_as_json_as_a_batch_and_in_binary_mode(town: Town):
    await town.save(LISTENING)
    event = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.paid", "data": {"n": 1}}
    binary = {f"ce-{name}": event[name] for name in ("specversion", "id", "source", "type")}

    async def send(body: Any, kind: str, **headers: str) -> Any:
        more = {"content": json.dumps(body), "headers": {"Content-Type": kind, **headers}}
        answer = await town.ask("POST", "/events/cloudevents", **more)
        assert answer.status_code == 202, answer.text
        return answer.json()["published"]

    (one,) = await send(event, "application/cloudevents+json")
    (same,) = await send({"n": 1}, "application/json", **binary)
    batch = await send([{**event, "id": "2"}, {**event, "id": "3"}], "application/cloudevents-batch+json")

    assert one["started"] == same["started"]
    assert len(batch) == 2
    given = (await town.get(f"/workflow/executions/{one['started'][0]}"))["input"]
    assert (given["payload"], given["attributes"]["source"]) == ({"n": 1}, "/shop")


@pytest.mark.parametrize(
    "body", [5, {}, {"specversion": "0.3", "id": "1", "source": "s", "type": "a"}, [], {"specversion": "1.0"},
             {"specversion": "1.0", "id": "1", "source": "s", "type": "no subject"}]
)  # fmt: skip
async def test_what_is_no_cloud_event_is_refused(town: Town, body: Any):
    assert (await town.tell("/events/cloudevents", body)).status_code == 422
