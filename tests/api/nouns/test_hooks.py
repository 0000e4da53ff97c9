"""Webhooks: a delivery that proves where it comes from starts one execution; any other changes nothing."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import pytest

from ropewalk.nodes.failure import NodeFailure
from ropewalk.store import triggers
from tests.api.stories import Town

SECRET = "a secret of the sender"
BODY = b'{"order": "A-7", "total": 12}'
Signed = Callable[[bytes, str, int], dict[str, str]]


def digest(key: str, signed: bytes) -> hmac.HMAC:
    return hmac.new(key.encode(), signed, hashlib.sha256)


def standard(body: bytes, key: str = SECRET, at: int = 0, delivery: str = "d1") -> dict[str, str]:
    at = at or int(time.time())
    made = base64.b64encode(digest(key, f"{delivery}.{at}.".encode() + body).digest()).decode()
    return {"webhook-id": delivery, "webhook-timestamp": str(at), "webhook-signature": f"v1,bogus v1,{made}"}


def stripe(body: bytes, key: str = SECRET, at: int = 0) -> dict[str, str]:
    at = at or int(time.time())
    return {"Stripe-Signature": f"t={at},v1={digest(key, f'{at}.'.encode() + body).hexdigest()}"}


def slack(body: bytes, key: str = SECRET, at: int = 0) -> dict[str, str]:
    at = at or int(time.time())
    made = digest(key, f"v0:{at}:".encode() + body).hexdigest()
    return {"X-Slack-Request-Timestamp": str(at), "X-Slack-Signature": f"v0={made}"}


def github(body: bytes, key: str = SECRET, at: int = 0) -> dict[str, str]:
    return {"X-Hub-Signature-256": f"sha256={digest(key, body).hexdigest()}"}


def shopify(body: bytes, key: str = SECRET, at: int = 0) -> dict[str, str]:
    return {"X-Shopify-Hmac-Sha256": base64.b64encode(digest(key, body).digest()).decode()}


def in_header(body: bytes, key: str = SECRET, at: int = 0) -> dict[str, str]:
    return {"X-Sum": f"sum={base64.b64encode(digest(key, body).digest()).decode()}"}


SCHEMES: Mapping[str, Signed] = {
    "hmac": standard, "stripe": stripe, "slack": slack, "github": github, "shopify": shopify, "header": in_header,
}  # fmt: skip


def document(nodes: list[dict[str, Any]] | None = None, **settings: Any) -> dict[str, Any]:
    hook = {"webhook": "orders", "input": "{{ event.body }}", **settings}
    return {"ropewalk": 1, "name": "orders", "nodes": nodes or [{"id": "a", "type": "noop"}], "triggers": [hook]}


async def hooked(town: Town, nodes: list[dict[str, Any]] | None = None, **settings: Any) -> str:
    """The address of a new webhook."""
    if settings.get("auth") != "none":
        kind, values = {
            "bearer": ("http.bearer", {"token": SECRET}),
            "basic": ("http.basic", {"username": "shop", "password": SECRET}),
        }.get(settings.get("auth", ""), ("webhook", {"key": "the new one", "previousKey": SECRET}))
        await town.service.credentials.create("sender", kind, values, [], "test")
        settings = {"credential": "sender", **settings}
    await town.save(document(nodes, **settings))
    (found,) = await triggers.listed(town.service.store, "default")
    return f"/hooks/{found.token}"


async def send(town: Town, path: str, body: bytes = BODY, method: str = "POST", **headers: str) -> httpx2.Response:
    async with town.client(None) as client:
        given = {"Content-Type": "application/json", **headers}
        return await client.request(method, path, content=body, headers=given)


async def started(town: Town) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await town.get("/workflow/executions?limit=200"))["items"]
    return found


@pytest.mark.parametrize("auth", SCHEMES)
async def test_a_signed_delivery_starts_one_execution_with_either_key(town: Town, auth: str):
    path = await hooked(town, auth=auth, **({"header": "X-Sum", "encoding": "base64", "prefix": "sum="}
                                            if auth == "header" else {}))  # fmt: skip
    sign = SCHEMES[auth]

    old = await send(town, path, **sign(BODY, SECRET, 0))
    new = await send(town, path, b'{"order": "B"}', **sign(b'{"order": "B"}', "the new one", 0))
    wrong = [
        await send(town, path, **sign(BODY, "another key", 0)),
        await send(town, path, BODY + b" ", **sign(BODY, SECRET, 0)),
        await send(town, path),
    ]

    assert (old.status_code, new.status_code) == (202, 202)
    assert {each.status_code for each in wrong} == {404}
    one = await town.get(f"/workflow/executions/{old.json()['executionId']}")
    assert (one["trigger"], one["input"]) == ("WEBHOOK", json.loads(BODY))


@pytest.mark.parametrize("auth", ["hmac", "stripe", "slack"])
async def test_a_delivery_whose_time_is_far_off_is_refused(town: Town, auth: str):
    path = await hooked(town, auth=auth)
    now = int(time.time())

    answers = [await send(town, path, **SCHEMES[auth](BODY, SECRET, at)) for at in (now - 400, now + 400)]

    assert [each.status_code for each in answers] == [404, 404]
    assert await started(town) == []


async def test_a_bearer_token_and_a_password_prove_the_sender(town: Town):
    path = await hooked(town, auth="bearer")

    assert (await send(town, path, Authorization=f"Bearer {SECRET}")).status_code == 202
    assert (await send(town, path, Authorization="Bearer no")).status_code == 404
    assert (await send(town, path, Authorization=f"Basic {SECRET}")).status_code == 404


async def test_the_same_delivery_is_answered_the_same_and_starts_nothing(town: Town):
    path = await hooked(town)

    answers = await asyncio.gather(*[send(town, path, **standard(BODY)) for _ in range(20)])
    other = await send(town, path, **standard(BODY, delivery="d2"))

    assert {(each.status_code, each.json()["executionId"]) for each in answers} == {
        (202, answers[0].json()["executionId"])
    }
    assert other.json()["executionId"] != answers[0].json()["executionId"]
    assert len(await started(town)) == 2


async def test_unknown_disabled_and_forbidden_look_the_same_and_write_nothing(town: Town):
    path = await hooked(town, allowFrom=["10.0.0.0/8"])
    unknown = await send(town, "/hooks/abcdefghijklmnopqrstuv", **standard(BODY))
    forbidden = await send(town, path, **standard(BODY))
    method = await send(town, path, method="PUT", **standard(BODY))
    await town.tell("/triggers/orders/disable", {})
    disabled = await send(town, path, **standard(BODY))

    def said(answer: httpx2.Response) -> Any:
        return answer.status_code, {name: each for name, each in answer.json().items() if name != "instance"}

    assert said(unknown) == said(forbidden) == said(method) == said(disabled)
    assert said(unknown)[0] == 404
    assert (await town.get("/triggers/orders/fires"))["items"] == []


async def test_what_came_is_there_for_expressions_without_what_proves_it(town: Town):
    path = await hooked(town, auth="none", path="{region}/{id}", methods=["POST", "GET"], input="{{ event }}",
                        dedupeKey="{{ event.query.k }}")  # fmt: skip

    answer = await send(
        town, f"{path}/eu/A%2F7?k=1&tag=a&tag=b", Authorization="Bearer x", Cookie="c=1", **{"X-A": "b"}
    )

    given = (await town.get(f"/workflow/executions/{answer.json()['executionId']}"))["input"]
    assert (given["method"], given["params"], given["query"]) == (
        "POST", {"region": "eu", "id": "A/7"}, {"k": "1", "tag": ["a", "b"]},
    )  # fmt: skip
    assert (given["headers"]["x-a"], given["body"], given["deliveryId"]) == ("b", json.loads(BODY), "1")
    assert not {"authorization", "cookie"} & set(given["headers"])
    assert (await send(town, f"{path}/eu")).status_code == 404


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("text/plain", b"hello", {"body": "hello"}),
        ("application/x-www-form-urlencoded", b"a=1&b=2&b=3", {"body": {"a": "1", "b": ["2", "3"]}}),
        ("application/octet-stream", b"\x00\xff", {"body": None, "bodyBase64": "AP8="}),
        ("application/cloudevents+json", b'{"a": 1}', {"body": {"a": 1}}),
        ("application/json", b"", {"body": None}),
    ],
)
async def test_a_body_is_read_as_its_type_says(town: Town, kind: str, body: bytes, expected: dict[str, Any]):
    path = await hooked(town, auth="none", input="{{ event }}")

    answer = await send(town, path, body, **{"Content-Type": kind})

    given = (await town.get(f"/workflow/executions/{answer.json()['executionId']}"))["input"]
    assert {name: given.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b'{"a": 1, "a": 2}', {}, 400),
        (b"[" * 200 + b"]" * 200, {}, 400),
        (b'{"a": NaN}', {}, 400),
        (b"x" * 2_000_000, {"Content-Type": "text/plain"}, 413),
        (b"x", {"Content-Encoding": "gzip"}, 415),
    ],
)
async def test_a_body_that_makes_no_sense_is_refused_and_starts_nothing(
    town: Town, body: bytes, headers: dict[str, str], status: int
):
    path = await hooked(town, auth="none")

    assert (await send(town, path, body, **headers)).status_code == status
    assert await started(town) == []


async def test_what_does_not_fit_the_workflow_is_a_422_and_recorded(town: Town):
    await town.save({**document(auth="none"), "input": {"type": "object", "required": ["order"]}})
    (found,) = await triggers.listed(town.service.store, "default")

    answer = await send(town, f"/hooks/{found.token}", b"{}")

    assert answer.status_code == 422
    assert [each["reason"] for each in (await town.get("/triggers/orders/fires"))["items"]] == ["INVALID"]


async def test_a_caller_may_wait_for_the_result(town: Town):
    path = await hooked(town, [{"id": "a", "type": "set", "with": {"values": {"n": "{{ input.total + 1 }}"}}}],
                        auth="none", answer="result")  # fmt: skip

    answer = await send(town, path)

    assert (answer.status_code, answer.json()) == (200, {"a": {"n": 13}})
    assert "sandbox" in answer.headers["content-security-policy"]


async def test_a_respond_node_answers_while_the_nodes_after_it_go_on(town: Town):
    nodes = [
        {"id": "say", "type": "respond",
         "with": {"status": 201, "headers": {"Content-Type": "text/csv", "X-A": "b"}, "body": "a,b"}},
        {"id": "ask", "type": "approval", "with": {"title": "?"}},
    ]  # fmt: skip
    hook = {"webhook": "orders", "auth": "none", "answer": "respond"}
    await town.save({"ropewalk": 1, "name": "orders", "nodes": nodes, "triggers": [hook],
                     "edges": [{"from": "say", "to": "ask"}]})  # fmt: skip
    (found,) = await triggers.listed(town.service.store, "default")

    answer = await send(town, f"/hooks/{found.token}")

    assert (answer.status_code, answer.text, answer.headers["x-a"]) == (201, "a,b", "b")
    assert answer.headers["content-type"].startswith("text/csv")
    assert (await started(town))[0]["state"] == "RUNNING"


async def test_a_caller_that_waited_long_enough_is_told_where_to_look(town: Town):
    path = await hooked(town, [{"id": "a", "type": "approval", "with": {"title": "?"}}],
                        auth="none", answer="result", timeout="1s")  # fmt: skip

    answer = await send(town, path)

    assert answer.status_code == 504
    assert answer.json()["execution"] == f"/api/v1/workflow/executions/{answer.json()['executionId']}"


async def test_the_test_address_shows_what_came_and_starts_nothing(town: Town):
    path = (await hooked(town)).replace("/hooks/", "/hooks/test/")

    answer = await send(town, path, **standard(BODY))
    refused = await send(town, path)

    assert (answer.status_code, answer.json()["starts"], answer.json()["input"]) == (200, True, json.loads(BODY))
    assert refused.status_code == 404
    assert await started(town) == []


async def test_pages_of_named_origins_may_call_it(town: Town):
    path = await hooked(town, auth="none", cors=["https://shop.example"])
    asked = {"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}

    preflight = await send(town, path, b"", "OPTIONS", **asked)
    call = await send(town, path, Origin="https://shop.example")
    other = await send(town, path, Origin="https://evil.example")

    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "https://shop.example"
    assert call.headers["access-control-allow-origin"] == "https://shop.example"
    assert "access-control-allow-origin" not in other.headers


async def test_a_hook_without_a_key_is_refused_when_it_is_saved(town: Town):
    answer = await town.tell("/workflow/definitions", document())
    absent = await town.tell("/workflow/definitions", document(credential="nothing"))

    assert (answer.status_code, answer.json()["problems"][0]["field"]) == (422, "triggers[0]")
    assert (absent.status_code, absent.json()["problems"][0]["field"]) == (422, "triggers[0].credential")


async def test_the_address_stays_when_another_version_is_published(town: Town):
    path = await hooked(town, auth="none")
    await town.save(document(auth="none", priority=7))

    assert (await send(town, path)).status_code == 202


async def test_a_store_that_cannot_be_asked_is_a_503_so_that_the_sender_tries_again(
    town: Town, monkeypatch: pytest.MonkeyPatch
):
    path = await hooked(town)

    async def away(*_: Any) -> Any:
        raise NodeFailure.transient("the store is away")

    monkeypatch.setattr(town.service.stored_credentials, "get", away)
    answer = await send(town, path, **standard(BODY))

    assert answer.status_code == 503
    assert await started(town) == []
