"""`http.request` against real servers."""

import asyncio
import base64
import time

import pytest
from aiohttp import web

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType
from ropewalk.nodes import body as bodies
from ropewalk.nodes.base import NodeFailure

from .conftest import NOON


async def test_an_answer_has_status_lower_case_headers_and_body(site, request_):
    site.answer("/", body=b'{"total": 120.5}', content_type="application/json", headers={"X-Kind": "order"})

    output = await request_()

    assert (output["status"], output["body"]) == (200, {"total": 120.5})
    assert output["headers"]["x-kind"] == "order"


async def test_repeated_headers_are_joined_and_cookies_listed(site, request_):
    headers = [("X-A", "1"), ("X-A", "2"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
    site.answer("/", headers=headers)

    output = await request_()

    assert (output["headers"]["x-a"], output["headers"]["set-cookie"]) == ("1, 2", ["a=1", "b=2"])


@pytest.mark.parametrize(
    ("inputs", "body", "content_type"),
    [
        ({"body": {"a": [1, None]}}, '{"a":[1,null]}', "application/json"),
        ({"body": False}, "false", "application/json"),
        ({"text": "grüß"}, "grüß", "text/plain; charset=utf-8"),
        ({"form": {"a b": "x&y", "n": 1, "t": True}}, "a+b=x%26y&n=1&t=true", "application/x-www-form-urlencoded"),
        ({"text": "<a/>", "headers": {"content-type": "text/xml"}}, "<a/>", "text/xml"),
    ],
)
async def test_bodies_are_sent_as_what_they_are(site, request_, inputs, body, content_type):
    site.answer("/")

    await request_(method="POST", **inputs)

    assert (site.body, site.headers["content-type"]) == (body, content_type)


async def test_the_query_is_added_to_the_address(site, request_):
    site.answer("/find")

    await request_("/find?a=1", query={"b": ["x y", 2], "c": None, "d": True})

    assert site.query == "a=1&b=x y&b=2&d=true"


async def test_the_idempotency_key_is_sent_unless_the_author_sent_one(site, request_):
    site.answer("/")

    await request_()
    first = site.headers["idempotency-key"]
    await request_(headers={"idempotency-KEY": "mine"})

    assert (first, site.headers["idempotency-key"]) == ("key-of-this-work", "mine")


@pytest.mark.parametrize(
    ("body", "content_type", "response_type", "expected"),
    [
        (b"", "application/json", "auto", None),
        (b"[1]", "application/problem+json", "auto", [1]),
        (b"{oops", "application/json", "auto", "{oops"),
        (b"[1]", "text/plain", "auto", "[1]"),
        (b"[1]", "text/plain", "json", [1]),
        (b"\xef\xbb\xbf[1]", "application/json", "auto", [1]),
        (b"\xef\xbb\xbf[1]", "text/plain", "json", [1]),
        (b"[1]", "application/json", "text", "[1]"),
        (b"\xff\x00", "application/octet-stream", "auto", base64.b64encode(b"\xff\x00").decode()),
        (b"plain", "application/octet-stream", "auto", "plain"),
        (b"abc", "text/plain", "base64", "YWJj"),
        ("ä".encode("latin-1"), "text/plain; charset=iso-8859-1", "auto", "ä"),
        (b"abc", "text/plain; charset=punycode", "auto", "abc"),
        (b"\xff", "text/plain; charset=utf-8", "auto", "�"),
    ],
)
async def test_bodies_are_read_by_their_type_or_as_told(site, request_, body, content_type, response_type, expected):
    site.answer("/", body=body, headers={"Content-Type": content_type})

    output = await request_(responseType=response_type)

    assert output["body"] == expected


async def test_json_that_was_asked_for_and_is_none_is_a_permanent_failure(site, failure):
    site.answer("/", text="<html>")

    error = await failure(responseType="json")

    assert error.type is ErrorType.PERMANENT
    assert error.message.startswith("the answer is not JSON")


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("DELETE", 204), ("PUT", 205), ("GET", 304)])
async def test_json_that_was_asked_for_is_null_where_an_answer_has_no_body(site, request_, method, status):
    site.answer("/", status=status)

    output = await request_(method=method, responseType="json")

    assert (output["status"], output["body"]) == (status, None)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, ErrorType.TRANSIENT) for status in (408, 425, 429, 500, 502, 503, 504, 599)),
        *((status, ErrorType.PERMANENT) for status in (400, 401, 403, 404, 409, 410, 422, 451)),
    ],
)
async def test_a_status_says_whether_trying_again_can_help(site, failure, status, kind):
    site.answer("/orders", status=status, text="because")

    error = await failure("/orders?token=secret")

    assert (error.type, error.detail) == (kind, "because")
    assert error.message.startswith(f"GET {site.url}/orders answered {status}")
    assert "secret" not in error.message


@pytest.mark.parametrize(
    ("longest", "inputs", "limits"),
    [(0.01, {}, {}), (60, {"timeout": "1s"}, {}), (60, {}, {"deadline": NOON + SECOND})],
    ids=["the excerpt's time", "the request's time", "the attempt's time"],
)
async def test_a_status_stands_though_its_explanation_never_comes(site, run, monkeypatch, longest, inputs, limits):
    monkeypatch.setattr(bodies, "EXCERPT_TIMEOUT", longest)
    is_over = asyncio.Event()

    async def begin(request):
        response = web.StreamResponse(status=429, headers={"Retry-After": "7", "Content-Length": "100"})
        await response.prepare(request)
        await is_over.wait()
        return response

    site.answers["/"] = begin
    try:
        with pytest.raises(NodeFailure) as caught:
            # The worker stops an attempt whose time is up: what it says afterwards is not heard.
            async with asyncio.timeout(1):
                await run("http.request", {"url": site.url, **inputs}, **limits)
    finally:
        is_over.set()

    error = caught.value.error
    assert (error.type, error.retry_after, error.detail) == (ErrorType.TRANSIENT, 7.0, None)


async def test_a_failure_is_told_on_one_line_with_any_address(site, failure):
    site.answer("/a\r\nb\0", status=404)

    error = await failure("/a%0D%0Ab%00?token=secret")

    assert error.message == f"GET {site.url}/a%0D%0Ab%00 answered 404 Not Found"


async def test_an_excerpt_of_the_answer_is_bounded_and_has_no_credentials(site, failure):
    async def echo(request):
        return web.Response(status=403, text=f"bad {request.headers['Authorization']} {'x' * 5000}")

    site.answers["/"] = echo

    error = await failure(headers={"Authorization": "Bearer top-secret-token"})

    assert error.detail.startswith("bad *** xxx")
    assert len(error.detail) <= 500


@pytest.fixture
def far_east(monkeypatch):
    """This machine is where the day begins."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Pacific/Auckland")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "17"}, 17.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:30 GMT", "Date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 30.0),
        ({"Retry-After": "Fri, 15 Jan 2027 08:01:00 GMT", "Date": "never"}, 60.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT", "Date": "Wed, 21 Oct 2015 07:29:00 GMT"}, 0.0),
        ({"Retry-After": "Fri Jan 15 08:01:00 2027", "Date": "never"}, 60.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "٣"}, None),
        ({}, None),
    ],
)
async def test_the_servers_wish_for_a_pause_is_read_by_its_own_clock(site, failure, headers, seconds, far_east):
    site.answer("/", status=503, headers=headers)

    assert NOON == 1_800_000_000 * 10**6
    assert (await failure()).retry_after == seconds


@pytest.mark.parametrize(
    ("expected", "status", "kind"),
    [
        (404, 404, None),
        ([200, 404], 404, None),
        (201, 200, ErrorType.PERMANENT),
        (200, 503, ErrorType.TRANSIENT),
        (503, 503, None),
    ],
)
async def test_expected_statuses_are_the_only_successes(site, request_, expected, status, kind):
    site.answer("/", status=status)

    caught = None
    try:
        await request_(expectStatus=expected)
    except NodeFailure as failure:
        caught = failure.error.type

    assert caught is kind


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", b"SSH-2.0-OpenSSH\r\n"])
async def test_a_broken_connection_may_work_next_time(run, peer, says):
    port = (await peer(says)).port

    with pytest.raises(NodeFailure) as caught:
        await run("http.request", {"url": f"http://127.0.0.1:{port}/?token=secret"})

    assert caught.value.error.type is ErrorType.TRANSIENT
    assert "secret" not in caught.value.error.message


async def test_a_closed_port_may_be_open_next_time(run, peer):
    url = "http://127.0.0.1:1/?token=secret"

    with pytest.raises(NodeFailure) as caught:
        await run("http.request", {"url": url})

    assert caught.value.error.type is ErrorType.TRANSIENT
    assert caught.value.error.message.startswith("GET http://127.0.0.1:1/: cannot connect")


async def test_a_server_that_never_answers_runs_into_the_time_limit(run, peer):
    silent = await peer(None)

    with pytest.raises(NodeFailure) as caught:
        await run("http.request", {"url": f"http://127.0.0.1:{silent.port}/", "timeout": "50ms"})

    assert silent.met.is_set()
    assert caught.value.error.type is ErrorType.TIMEOUT


async def test_no_proxy_and_no_netrc_of_the_environment_is_used(site, other_site, request_, monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ada password s3cret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", other_site.url)
    site.answer("/")

    await request_()

    assert other_site.requests == []
    assert "authorization" not in site.headers


async def test_no_cookie_is_kept(site, request_):
    site.answer("/", headers={"Set-Cookie": "session=1"})

    await request_()
    await request_()

    assert "cookie" not in site.headers


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"url": "http://a.example", "method": "TRACE"}, "with.method: "),
        ({"url": "http://a.example", "headers": {"X": "a\r\nHost: b"}}, "with.headers: the header X has a line break"),
        ({"url": "http://a.example", "headers": {"X Y": "a"}}, "with.headers: a header's name is not allowed"),
        ({"url": "http://a.example", "headers": {"Host": "b"}}, "with.headers: the header Host is set by the request"),
        ({"url": "http://a.example", "headers": {"transfer-encoding": "chunked"}}, "with.headers: the header transfer"),
        ({"url": "http://a.example", "body": 1, "text": "a"}, "with: give at most one of body, text,"),
        ({"url": "http://a.example", "timeout": "2h"}, "with.timeout: must be from"),
        ({"url": "http://[::1"}, "with.url: is no address"),
        ({"url": "/orders"}, "only http and https are allowed"),
        ({"url": "http://ada:s3cret@a.example/"}, "a user name or password in the address is not allowed"),
        ({"url": "http://a.example:99999/"}, "with.url: is no address"),
        ({"url": "http://127.0.0.2/"}, "127.0.0.2 is not on the public internet"),
    ],
)
async def test_a_request_that_cannot_be_sent_is_a_permanent_failure(run, inputs, message):
    with pytest.raises(NodeFailure) as caught:
        await run("http.request", inputs)

    assert caught.value.error.type is ErrorType.PERMANENT
    assert caught.value.error.message.startswith(message)
    assert "s3cret" not in caught.value.error.message


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://shop.example/orders?x=1", "http.request https://shop.example"),
        ("http://ada:s3cret@shop.example:8080/", "http.request http://shop.example:8080"),
        ("nonsense", None),
        ("http://[", None),
    ],
)
def test_the_breaker_watches_the_origin(registry, url, target):
    node_type = registry.get("http.request")

    assert node_type.target(node_type.accept({"url": url})) == target


async def test_a_connection_is_used_again(site, request_, facilities):
    site.answer("/", text="x")
    made = []
    gate = facilities.guard.open_socket
    facilities.guard.open_socket = lambda info: made.append(info) or gate(info)

    for _ in range(3):
        await request_()

    assert len(made) == 1


@pytest.mark.parametrize("junk", [b"\xff" * 100, b"HTTP/1.1 999999 x\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a" * 100_000])
async def test_no_answer_however_broken_gets_past_classification(run, peer, junk):
    port = (await peer(junk)).port

    with pytest.raises(NodeFailure) as failure:
        await run("http.request", {"url": f"http://127.0.0.1:{port}/"})

    assert failure.value.error.type is ErrorType.TRANSIENT


async def test_a_status_that_is_a_failure_is_told_with_the_first_4_kib_of_the_body(site, failure):
    site.answer("/", status=422, text='{"why": "' + "é" * 4000)

    error = await failure()

    assert error.status == 422
    assert error.body.startswith('{"why": "éé')
    assert len(error.body.encode()) in (4095, 4096)
    assert len(error.detail) == 500


async def test_a_body_that_comes_in_pieces_is_read_until_there_is_enough(site, failure):
    async def drip(request):
        response = web.StreamResponse(status=500)
        await response.prepare(request)
        for part in range(8):
            await response.write(bytes([65 + part]) * 1024)
            await asyncio.sleep(0)  # the client reads each piece in the turn it comes in
        return response

    site.answers["/"] = drip

    error = await failure()

    assert error.body == "A" * 1024 + "B" * 1024 + "C" * 1024 + "D" * 1024


async def test_the_body_of_a_failure_has_no_credentials(site, failure):
    async def echo(request):
        return web.Response(status=403, text=f"{'x' * 1000} {request.headers['Authorization']}")

    site.answers["/"] = echo

    error = await failure(headers={"Authorization": "Bearer top-secret-token"})

    assert "top-secret" not in error.body
    assert error.body.endswith("***")


@pytest.mark.parametrize("ahead", [4_080, 4_088, 4_095])
async def test_no_half_of_a_credential_is_left_where_a_body_is_cut(site, failure, ahead):
    async def echo(request):
        return web.Response(status=403, text="x" * ahead + request.headers["X-Key"])

    site.answers["/"] = echo

    error = await failure(headers={"X-Key": "top-secret-token-of-mine"})

    assert "top-" not in error.body
