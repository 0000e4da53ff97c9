"""`http.request` against servers that are slow, huge, endless, malformed, lying, circling or gone."""

import asyncio
import gzip
import time
from contextlib import suppress
from email.parser import BytesParser
from email.policy import HTTP

import pytest
from aiohttp import web

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.base import NodeFailure

OK = b"HTTP/1.1 200 OK\r\n"
BOMB = gzip.compress(bytes(2**22))
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def parts_of(site):
    """The name and text of each part of the last form, as another library reads them."""
    form = BytesParser(policy=HTTP).parsebytes(
        f"Content-Type: {site.headers['content-type']}\r\n\r\n{site.body}".encode()
    )
    return [
        (part["Content-Disposition"].params["name"], part.get_payload(decode=True).decode())
        for part in form.iter_parts()
    ]


async def said(run, url, **inputs):
    """The failure, which must come within its time."""
    began = time.monotonic()
    with pytest.raises(NodeFailure) as caught:
        await run("http.request", {"url": url, "timeout": "500ms", **inputs})
    assert time.monotonic() - began < 3
    return caught.value.error


@pytest.mark.parametrize(
    "says",
    [
        OK + b"Content-Length: 100\r\n\r\nshort",
        OK + b"Content-Length: -5\r\n\r\n",
        OK + b"Content-Length: 5, 6\r\n\r\nhello",
        OK + b"Content-Length: five\r\n\r\nhello",
        OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"5\r\nhello",
        CHUNKED + b"FFFFFFFFFFFFFFFFFF\r\nhello",
        CHUNKED + b"-1\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"5\r\nhello world\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000,
        b"HTTP/1.1 200 OK\r\nNo colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nBad\x00Name: x\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"220 mail.example ESMTP\r\n",
        b"",
    ],
)
async def test_an_answer_that_is_malformed_cut_or_lying_is_a_transient_failure(run, peer, says):
    port = (await peer(says)).port

    error = await said(run, f"http://127.0.0.1:{port}/?token=s3cret-token")

    assert error.type is ErrorType.TRANSIENT
    assert "s3cret" not in error.message


async def drip(request):
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    await response.prepare(request)
    never = asyncio.Event()
    while True:
        await response.write(b"x")
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await never.wait()


async def flood(request):
    response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
    await response.prepare(request)
    while True:
        await response.write(bytes(2**20))


async def bomb(request):
    response = web.StreamResponse(headers={"Content-Encoding": "gzip"})
    await response.prepare(request)
    for _ in range(100):
        await response.write(BOMB)
    return response


@pytest.mark.parametrize(
    ("server", "kind", "words"),
    [
        (drip, ErrorType.TIMEOUT, "took longer than 0.5 s"),
        (flood, ErrorType.PERMANENT, "is larger than"),
        (bomb, ErrorType.PERMANENT, "unfolds to too many times its size"),
    ],
)
async def test_an_answer_without_end_is_cut_off(site, run, server, kind, words):
    site.answers["/"] = server

    error = await said(run, site.url)

    assert error.type is kind
    assert words in error.message


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_two_servers_that_lead_to_each_other_are_left(site, other_site, run, status):
    site.redirect("/", f"{other_site.url}/", status)
    other_site.redirect("/", f"{site.url}/", status)

    error = await said(run, site.url)

    assert (error.type, len(site.requests) + len(other_site.requests)) == (ErrorType.PERMANENT, 6)


async def test_a_redirect_to_ever_new_addresses_ends(site, run):
    async def onward(request):
        return web.Response(status=302, headers={"Location": f"/?{len(site.requests)}"})

    site.answers["/"] = onward

    error = await said(run, site.url, maxRedirects=20)

    assert (error.type, len(site.requests)) == (ErrorType.PERMANENT, 21)


async def test_a_redirect_whose_address_is_very_long_is_a_failure_of_that_request(site, run):
    site.redirect("/", "/" + "a" * 7_000)
    site.answer("/" + "a" * 7_000, status=404)

    error = await said(run, site.url)

    assert error.type is ErrorType.PERMANENT


async def test_statuses_can_be_expected_by_class_and_by_span(site, request_, failure):
    site.answer("/made", status=201)
    site.answer("/gone", status=410)

    assert (await request_("/made", expectStatus="2xx"))["status"] == 201
    assert (await request_("/gone", expectStatus=["200-299", 410]))["status"] == 410
    assert (await failure("/made", expectStatus="200-200")).type is ErrorType.PERMANENT


@pytest.mark.parametrize("expected", ["6xx", "abc", "299-200", 99, "2x", ["2xx", "no"]])
async def test_statuses_that_are_none_are_refused(run, expected):
    with pytest.raises(NodeFailure, match="is no status"):
        await run("http.request", {"url": "http://a.example", "expectStatus": expected})


@pytest.mark.parametrize(
    ("arrays", "query", "form"),
    [
        ("repeat", "tag=a&tag=b&n=1", "tag=a&tag=b&n=1"),
        ("brackets", "tag[]=a&tag[]=b&n=1", "tag%5B%5D=a&tag%5B%5D=b&n=1"),
        ("comma", "tag=a,b&n=1", "tag=a,b&n=1"),
    ],
)
async def test_lists_are_written_as_the_server_reads_them(site, request_, arrays, query, form):
    site.answer("/")
    fields = {"tag": ["a", None, "b"], "none": None, "empty": [], "n": 1}

    await request_(method="POST", query=fields, form=fields, arrayFormat=arrays)

    assert (site.query, site.body) == (query, form)


async def test_a_form_in_parts_is_read_by_a_server(site, request_):
    site.answer("/")

    await request_(method="POST", multipart={"title": "grüß", "n": 1, 'odd"\r\nname': "x"})

    assert parts_of(site) == [("title", "grüß"), ("n", "1"), ("odd%22%0D%0Aname", "x")]
