"""Presets of well-known services, against servers that answer as these do."""

import json
import time
from urllib.parse import parse_qsl

import pytest
from aiohttp import web

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.base import NodeFailure

from .conftest import context_of
from .credentials_at_hand import AtHand
from .services import SERVICES, TOKEN

RECORDS = [{"fields": {"a": None}}]
INPUTS = {
    "slack.send": {"channel": "C1", "text": "hello", "threadTs": "1.5"},
    "github.issue": {"repository": "acme/shop", "title": "t", "labels": ["bug"]},
    "github.comment": {"repository": "acme/shop", "number": 17, "body": "Done."},
    "github.dispatch": {"repository": "acme/shop", "workflow": "deploy.yml", "inputs": {"v": "1"}},
    "stripe.charge": {"amount": 1295, "currency": "EUR", "paymentMethod": "pm_1", "metadata": {"order": "o 17"}},
    "stripe.refund": {"payment": "pi_1", "amount": 500},
    "stripe.customer": {"email": "ada@example.org"},
    "stripe.search": {"resource": "customers", "query": "name:'Ada'", "limit": 5},
    "telegram.send": {"chat": -1001, "text": "hello", "replyTo": 7},
    "discord.send": {"channel": "109876", "text": "hello"},
    "google.sheets.append": {"spreadsheet": "sheet-1", "range": "Orders!A1", "rows": [["a", 1]]},
    "google.sheets.read": {"spreadsheet": "sheet-1", "range": "Orders!A1:B9"},
    "notion.page": {"page": "p-0", "properties": {"Name": None}},
    "airtable.records": {
        "action": "create",
        "base": "appShop",
        "table": "Orders",
        "records": [{"fields": {"a": None}}],
    },
}
SENT = {
    "slack.send": {"channel": "C1", "text": "hello", "thread_ts": "1.5"},
    "github.issue": {"title": "t", "labels": ["bug"]},
    "github.comment": {"body": "Done."},
    "github.dispatch": {"ref": "main", "inputs": {"v": "1"}},
    "stripe.charge": [
        ("amount", "1295"), ("currency", "eur"), ("payment_method", "pm_1"), ("off_session", "true"),
        ("metadata[order]", "o 17"), ("confirm", "true"), ("error_on_requires_action", "true"),
    ],
    "stripe.refund": [("payment_intent", "pi_1"), ("amount", "500")],
    "stripe.customer": [("email", "ada@example.org")],
    "telegram.send": {"chat_id": -1001, "text": "hello", "reply_parameters": {"message_id": 7}},
    "discord.send": {"content": "hello", "nonce": "key-of-this-work", "enforce_nonce": True},
    "google.sheets.append": {"values": [["a", 1]]},
    # What the author gave is sent as it is, null or not.
    "notion.page": {"parent": {"page_id": "p-0"}, "properties": {"Name": None}},
    "airtable.records": {"records": RECORDS},
}  # fmt: skip


@pytest.fixture
def credentials(facilities):
    facilities.credentials = AtHand()
    return facilities.credentials


@pytest.fixture
def call(registry, facilities, credentials, site):
    """Runs a preset with a credential for the site; a failure is told as a run tells it."""

    async def run(name, **inputs):
        service = SERVICES[name]
        credentials.add("service", service.credential, **service.at(site.url))
        context = context_of(facilities, get_credentials=lambda: "service")
        node_type = registry.get(name)
        try:
            output = await node_type.run(node_type.accept(INPUTS[name] | inputs), context)
            return context.masked_result(output).value
        except NodeFailure as failure:
            raise context.masked_failure(failure) from None

    return run


@pytest.fixture
def failed(call):
    async def run(name, **inputs):
        with pytest.raises(NodeFailure) as caught:
            await call(name, **inputs)
        return caught.value.error

    return run


def sent_by(site):
    kind, body = site.headers.get("content-type", ""), site.body
    if kind == "application/x-www-form-urlencoded":
        return parse_qsl(body)
    return json.loads(body) if body else None


@pytest.mark.parametrize("name", SERVICES)
async def test_a_preset_asks_its_service_as_that_wants_it(site, call, name):
    SERVICES[name].serve(site)

    output = await call(name)

    assert site.asked[-1] == (SERVICES[name].method, SERVICES[name].path)
    assert sent_by(site) == SENT.get(name)
    assert TOKEN in site.headers.get("authorization", SERVICES[name].path)
    assert site.headers["idempotency-key"] == "key-of-this-work"
    assert output
    assert TOKEN not in json.dumps(output)


TABLE = [
    ("slack.send", 200, {"ok": False, "error": "channel_not_found"}, ErrorType.PERMANENT, None, "channel_not_found"),
    ("slack.send", 200, {"ok": False, "error": "ratelimited"}, ErrorType.TRANSIENT, None, "ratelimited"),
    ("slack.send", 200, {"ok": False, "error": "internal_error"}, ErrorType.TRANSIENT, None, "internal_error"),
    ("slack.send", 200, "<html>", ErrorType.PERMANENT, None, "cannot make its output of the answer"),
    ("slack.send", 429, {}, ErrorType.TRANSIENT, None, "Slack says"),
    ("slack.send", 503, "down", ErrorType.TRANSIENT, None, "answered 503"),
    ("github.issue", 404, {"message": "Not Found"}, ErrorType.PERMANENT, None, "GitHub says Not Found"),
    ("github.issue", 403, {"message": "API rate limit exceeded"}, ErrorType.TRANSIENT, 60.0, "rate limit"),
    ("github.comment", 403, {"message": "Must have rights"}, ErrorType.PERMANENT, None, "Must have rights"),
    ("github.dispatch", 422, {"message": "No ref"}, ErrorType.PERMANENT, None, "No ref"),
    ("stripe.charge", 402, {"error": {"message": "Declined.", "decline_code": "lost_card"}}, ErrorType.PERMANENT, None,
     "stripe.charge: Declined. (lost_card)"),
    ("stripe.refund", 409, {"error": {"code": "idempotency_key_in_use", "message": "wait"}}, ErrorType.TRANSIENT, None,
     "stripe.refund: wait"),
    ("stripe.refund", 400, {"error": {"code": "lock_timeout", "message": "busy"}}, ErrorType.TRANSIENT, None, "busy"),
    ("stripe.customer", 400, {"error": {"message": "No such"}}, ErrorType.PERMANENT, None, "No such"),
    ("stripe.search", 500, {}, ErrorType.TRANSIENT, None, "answered 500"),
    ("telegram.send", 400, {"ok": False, "description": "chat not found"}, ErrorType.PERMANENT, None, "chat not found"),
    ("telegram.send", 429, {"description": "slow", "parameters": {"retry_after": 7}}, ErrorType.TRANSIENT, 7.0, "slow"),
    ("telegram.send", 200, {"ok": False, "description": "odd"}, ErrorType.PERMANENT, None, "odd"),
    ("discord.send", 429, {"message": "limited", "retry_after": 0.5}, ErrorType.TRANSIENT, 0.5, "limited"),
    ("discord.send", 403, {"message": "Missing Access"}, ErrorType.PERMANENT, None, "Missing Access"),
    ("google.sheets.read", 404, {"error": {"message": "not found"}}, ErrorType.PERMANENT, None, "not found"),
    ("google.sheets.append", 403, {"error": {"status": "RESOURCE_EXHAUSTED"}}, ErrorType.TRANSIENT, None, "Google"),
    ("notion.page", 409, {"message": "Conflict"}, ErrorType.TRANSIENT, None, "Conflict"),
    ("airtable.records", 422, {"error": {"message": "bad field"}}, ErrorType.PERMANENT, None, "bad field"),
    ("airtable.records", 404, {"error": "NOT_FOUND"}, ErrorType.PERMANENT, None, "NOT_FOUND"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "status", "body", "kind", "pause", "said"), TABLE)
async def test_a_refusal_is_classified_and_told_in_its_words(site, failed, name, status, body, kind, pause, said):
    SERVICES[name].serve(site)
    site.answer(SERVICES[name].path, status=status, text=json.dumps(body), content_type="application/json")

    error = await failed(name)

    assert (error.type, error.retry_after, error.status) == (kind, pause, status)
    assert said in error.message


@pytest.mark.parametrize("name", SERVICES)
async def test_a_service_that_repeats_the_secret_has_it_masked(site, failed, name):
    SERVICES[name].serve(site)

    async def echo(request):
        told = json.dumps([dict(request.headers), str(request.url)])
        return web.json_response({"message": told, "error": {"message": told}, "description": told}, status=400)

    site.answers[SERVICES[name].path] = echo

    error = await failed(name)

    assert TOKEN not in f"{error.message}{error.detail}{error.body}"


@pytest.mark.parametrize("name", SERVICES)
async def test_a_preset_without_a_credential_says_which_it_needs(registry, facilities, name):
    node_type = registry.get(name)

    with pytest.raises(NodeFailure, match="needs a credential of the type") as caught:
        await node_type.run(node_type.accept(INPUTS[name]), context_of(facilities))

    assert caught.value.error.type is ErrorType.PERMANENT


@pytest.mark.parametrize("name", SERVICES)
async def test_a_service_inside_is_not_called(registry, facilities, credentials, site, name):
    """The address of a credential passes the network guard as any other does."""
    service = SERVICES[name]
    credentials.add("service", service.credential, **service.at("http://169.254.169.254"))
    node_type = registry.get(name)

    with pytest.raises(NodeFailure, match="never allowed"):
        await node_type.run(node_type.accept(INPUTS[name]), context_of(facilities, get_credentials=lambda: "service"))


@pytest.mark.parametrize(
    ("name", "inputs", "said"),
    [
        ("github.issue", {"repository": "../../user"}, "with.repository"),
        ("github.issue", {"repository": "acme"}, "with.repository"),
        ("stripe.charge", {"amount": 0}, "with.amount"),
        ("stripe.charge", {"amount": 1.5}, "with.amount"),
        ("stripe.refund", {"charge": "ch_1"}, "with"),
        ("stripe.customer", {"id": "a/b"}, "with.id"),
        ("discord.send", {"channel": "../users"}, "with.channel"),
        ("slack.send", {"chanel": "x"}, "with.chanel"),
        ("notion.page", {"database": "d"}, "with"),
        ("airtable.records", {"action": "drop"}, "with.action"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_with_their_place(registry, name, inputs, said):
    with pytest.raises(NodeFailure) as caught:
        registry.get(name).accept(INPUTS[name] | inputs)

    assert caught.value.error.message.startswith(said)


async def test_the_pages_of_a_search_are_read_up_to_the_limit(site, call):
    async def search(request):
        page = request.query.get("page")
        return web.json_response({"data": [{"id": page or "first"}], "next_page": None if page == "p3" else
                                  {"p2": "p3", None: "p2"}[page]})  # fmt: skip

    site.answers["/v1/customers/search"] = search

    assert await call("stripe.search") == {"items": [{"id": "first"}, {"id": "p2"}, {"id": "p3"}], "more": False}
    assert await call("stripe.search", limit=2) == {"items": [{"id": "first"}, {"id": "p2"}], "more": True}


async def test_airtable_is_asked_for_each_of_its_actions(site, call):
    asked = []

    async def table(request):
        asked.append((request.method, request.query_string, await request.text()))
        return web.json_response({"records": [{"id": "rec1"}]})

    site.answers["/v0/appShop/Orders"] = table

    listed = await call("airtable.records", action="list", formula="{Total} > 1", limit=3)
    await call("airtable.records", action="update", records=[{"id": "rec1", "fields": {}}], typecast=True)
    await call("airtable.records", action="delete", ids=["rec1", "rec2"])

    assert listed == {"records": [{"id": "rec1"}], "more": False}
    assert asked == [
        ("GET", "filterByFormula={Total} > 1&pageSize=3", ""),
        ("PATCH", "", '{"records":[{"id":"rec1","fields":{}}],"typecast":true}'),
        ("DELETE", "records[]=rec1&records[]=rec2", ""),
    ]


def test_the_breaker_watches_the_service(registry):
    node_type = registry.get("slack.send")

    assert node_type.target(node_type.accept({"channel": "C1"})) == "slack.send https://slack.com"


def test_a_preset_is_read_in_no_time(registry):
    began = time.perf_counter()
    registry.get("slack.send")

    assert time.perf_counter() - began < 0.5
