"""The server against clients that are slow, greedy, rude, or gone: raw sockets against a real one."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import uvicorn
import websockets
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from ropewalk.api.doors.connection_monitor import ConnectionLimits
from ropewalk.api.doors.server import CannotListen, ServerSettings, listen, serving

HASTY = ConnectionLimits(
    headers=0.2, body=0.4, grace=0.1, slowest=1_000, idle=0.2, writing=0.2, linger=0.2, longest_line=1_000,
    largest_head=4_000, most_headers=20, most_pipelined=2, per_address=3,
)  # fmt: skip
CALM = ConnectionLimits()
HEAD = b"POST /echo HTTP/1.1\r\nhost: x\r\n"
UPGRADE = (
    b"connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
PATIENCE = 20.0
Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Site:
    """A small app behind the real server, and what happened in it."""

    def __init__(self, listener: socket.socket) -> None:
        self.port = listener.getsockname()[1]
        self.entered = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.left: asyncio.Queue[str] = asyncio.Queue()
        self.app = Starlette(
            routes=[
                Route("/echo", self.echo, methods=["POST"]),
                Route("/headers", self.headers, methods=["POST"]),
                Route("/refuse", self.refuse, methods=["POST"]),
                Route("/hold", self.hold),
                Route("/large", self.large),
                Route("/stream", self.stream),
                WebSocketRoute("/talk", self.talk),
            ]
        )

    async def echo(self, request: Request) -> Response:
        return JSONResponse({"size": len(await request.body())})

    async def headers(self, request: Request) -> Response:
        await request.body()
        return JSONResponse([name.decode() for name, _ in request.scope["headers"]])

    async def refuse(self, request: Request) -> Response:
        return JSONResponse({"refused": True}, 413)

    async def hold(self, request: Request) -> Response:
        self.entered.set()
        await self.may_answer.wait()
        return JSONResponse({"held": True})

    async def large(self, request: Request) -> Response:
        async def endless() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"x" * 100_000
                    await asyncio.sleep(0)
            finally:
                self.left.put_nowait("large")

        return StreamingResponse(endless())

    async def stream(self, request: Request) -> Response:
        async def events() -> AsyncIterator[bytes]:
            yield b"data: first\n\n"
            await asyncio.Event().wait()

        return StreamingResponse(events(), media_type="text/event-stream")

    async def talk(self, websocket: WebSocket) -> None:
        await websocket.accept()
        try:
            while True:
                await websocket.send_text(await websocket.receive_text())
        except WebSocketDisconnect as end:
            self.left.put_nowait(str(end.code))

    async def connect(self) -> Peer:
        return await asyncio.open_connection("127.0.0.1", self.port)


@asynccontextmanager
async def opened(limits: ConnectionLimits) -> AsyncIterator[Site]:
    listener = listen("127.0.0.1", 0)
    site = Site(listener)
    async with serving(site.app, listener, ServerSettings(limits=limits, drain=2)):
        yield site


@pytest.fixture
async def hasty() -> AsyncIterator[Site]:
    """A server that does not wait for slow clients."""
    async with opened(HASTY) as site:
        yield site


@pytest.fixture
async def calm() -> AsyncIterator[Site]:
    """A server with the limits it has by default."""
    async with opened(CALM) as site:
        yield site


async def everything(peer: Peer) -> bytes:
    """What the server says until it hangs up."""
    try:
        return await asyncio.wait_for(peer[0].read(), PATIENCE)
    except ConnectionResetError:
        return b""
    finally:
        peer[1].close()


async def dripping(peer: Peer, drop: bytes) -> bytes:
    """The same, while a drop is sent again and again."""
    listening = asyncio.ensure_future(everything(peer))
    while not listening.done():
        peer[1].write(drop)
        await asyncio.wait((listening,), timeout=0.02)
    return listening.result()


async def answered(peer: Peer) -> bytes:
    """One answer with its body."""
    head = await asyncio.wait_for(peer[0].readuntil(b"\r\n\r\n"), PATIENCE)
    size = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
    return head + await asyncio.wait_for(peer[0].readexactly(int(size.split(b":")[1])), PATIENCE)


@pytest.mark.parametrize(
    ("before", "drop", "status"),
    [
        pytest.param(b"GET /ho", b"o", b"HTTP/1.1 408 ", id="in the request line"),
        pytest.param(HEAD, b"a: b\r\n", b"HTTP/1.1 4", id="in the headers"),
        pytest.param(HEAD + b"a: ", b"b", b"HTTP/1.1 408 ", id="in one header"),
        pytest.param(HEAD + b"content-length: 1000\r\n\r\n", b"x", b"HTTP/1.1 408 ", id="in the body"),
        pytest.param(
            HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n", b"HTTP/1.1 408 ", id="in a chunked body"
        ),
        pytest.param(b"", b"\r\n", b"", id="in what comes before"),
    ],
)
async def test_a_client_that_drips_is_cut_off(hasty: Site, before: bytes, drop: bytes, status: bytes):
    peer = await hasty.connect()
    peer[1].write(before)

    said = await dripping(peer, drop)

    assert said.startswith(status)
    assert (b"application/problem+json" in said) == bool(status)


async def test_a_silent_client_is_cut_off(hasty: Site):
    assert await everything(await hasty.connect()) == b""


async def test_a_connection_that_is_kept_open_for_nothing_ends(hasty: Site):
    peer = await hasty.connect()
    peer[1].write(HEAD + b"content-length: 2\r\n\r\n{}")

    said = await everything(peer)

    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.endswith(b'{"size":2}')


async def test_a_request_may_take_its_time_once_it_is_complete(hasty: Site):
    peer = await hasty.connect()
    peer[1].write(b"GET /hold HTTP/1.1\r\nhost: x\r\n\r\n")
    await hasty.entered.wait()
    # Others come and go meanwhile, each for longer than any deadline.
    await everything(await hasty.connect())
    await everything(await hasty.connect())
    hasty.may_answer.set()

    assert (await answered(peer)).endswith(b'{"held":true}')
    peer[1].close()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param(b"GET /" + b"a" * 2_000 + b" HTTP/1.1\r\n\r\n", b"414", id="a long path"),
        pytest.param(HEAD + b"a: " + b"b" * 5_000 + b"\r\n\r\n", b"431", id="a large header"),
        pytest.param(HEAD + b"a: " + b"b" * 50_000, b"431", id="a header without an end"),
        pytest.param(HEAD + b"a: b\r\n" * 30 + b"\r\n", b"431", id="many headers"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00", b"400", id="no HTTP at all"),
        pytest.param(HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\n", b"400", id="two lengths"),
        pytest.param(
            HEAD + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", b"400", id="a length and chunks"
        ),
        pytest.param(HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n", b"400", id="chunks of no size"),
        pytest.param(HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", b"400", id="chunks of what else"),
        pytest.param(HEAD + b"host: y\r\n\r\n", b"400", id="two hosts"),
        pytest.param(HEAD.replace(b"host: x\r\n", b"\r\n"), b"400", id="no host"),
        pytest.param(HEAD + UPGRADE + b"content-length: 2\r\n\r\n{}", b"400", id="a websocket with a body"),
        pytest.param(HEAD + UPGRADE + b"transfer-encoding: chunked\r\n\r\n", b"400", id="a websocket with chunks"),
    ],
)
async def test_what_is_too_much_or_no_request_is_refused_as_a_problem(hasty: Site, head: bytes, status: bytes):
    peer = await hasty.connect()
    peer[1].write(head)

    said = await everything(peer)

    assert said.startswith(b"HTTP/1.1 " + status)
    assert b"content-type: application/problem+json" in said
    assert b"x-content-type-options: nosniff" in said


async def test_a_client_that_offers_http_2_is_answered_in_http_1_with_the_whole_body(hasty: Site):
    peer = await hasty.connect()
    offer = b"connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"
    peer[1].write(HEAD + offer + b"content-length: 4\r\n\r\nh2c!")

    said = await answered(peer)
    peer[1].close()

    assert said.startswith(b"HTTP/1.1 200")
    assert said.endswith(b'{"size":4}')


async def test_requests_sent_ahead_are_answered_in_order(hasty: Site):
    peer = await hasty.connect()
    peer[1].write((HEAD + b"content-length: 1\r\n\r\nx") + (HEAD + b"content-length: 2\r\n\r\nxx"))

    first, second = await answered(peer), await answered(peer)

    assert first.endswith(b'{"size":1}')
    assert second.endswith(b'{"size":2}')
    peer[1].close()


async def test_only_so_many_requests_may_be_sent_ahead(hasty: Site):
    peer = await hasty.connect()
    peer[1].write(b"GET /hold HTTP/1.1\r\nhost: x\r\n\r\n" * 50)

    assert await everything(peer) == b""


async def test_an_answer_that_comes_before_the_end_of_the_body_is_heard_and_the_rest_cut_off(hasty: Site):
    peer = await hasty.connect()
    peer[1].write(b"POST /refuse HTTP/1.1\r\nhost: x\r\ncontent-length: 900000000\r\n\r\n")

    said = await answered(peer)
    more = await dripping(peer, b"x" * 1_000)

    assert said.endswith(b'{"refused":true}')
    assert more == b""


async def test_a_client_that_does_not_read_is_cut_off(hasty: Site):
    peer = await hasty.connect()
    peer[0]._transport.pause_reading()  # type: ignore[attr-defined]  # a reader that does not read
    peer[1].write(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")

    assert await asyncio.wait_for(hasty.left.get(), PATIENCE) == "large"
    peer[1].close()


async def test_one_address_has_so_many_connections_and_gets_them_back(hasty: Site):
    first = [await hasty.connect() for _ in range(HASTY.per_address)]
    refused = await everything(await hasty.connect())
    for peer in first:
        await everything(peer)
    again = await hasty.connect()
    again[1].write(HEAD + b"content-length: 0\r\n\r\n")

    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in refused
    assert (await answered(again)).startswith(b"HTTP/1.1 200 ")
    again[1].close()


async def test_a_websocket_is_one_connection_from_beginning_to_end(hasty: Site):
    for _ in range(HASTY.per_address + 1):
        async with websockets.connect(f"ws://127.0.0.1:{hasty.port}/talk") as talk:
            await talk.send("a")
            said = await talk.recv()
        await hasty.left.get()

        assert said == "a"


async def test_a_message_may_be_only_so_large(calm: Site):
    async with websockets.connect(f"ws://127.0.0.1:{calm.port}/talk") as talk:
        await talk.send("a" * 100_000)

        with pytest.raises(websockets.ConnectionClosedError):
            await talk.recv()
    assert await asyncio.wait_for(calm.left.get(), PATIENCE) == "1009"


async def test_a_request_under_way_gets_an_answer_when_the_server_leaves():
    async with opened(CALM) as site:
        held, idle, half = [await site.connect() for _ in range(3)]
        held[1].write(b"GET /hold HTTP/1.1\r\nhost: x\r\n\r\n")
        half[1].write(HEAD)
        await site.entered.wait()
        asyncio.get_running_loop().call_later(0.3, site.may_answer.set)

    assert (await answered(held)).endswith(b'{"held":true}')
    assert await everything(idle) == b""
    assert await everything(half) == b""
    with pytest.raises(OSError):
        await site.connect()
    held[1].close()


async def test_a_stream_ends_whole_when_the_server_leaves():
    async with opened(CALM) as site:
        peer = await site.connect()
        peer[1].write(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n")
        begun = await peer[0].readuntil(b"first\n\n\r\n")

    assert b"text/event-stream" in begun
    assert await everything(peer) == b"0\r\n\r\n"


def test_a_port_that_is_taken_is_said_so():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(CannotListen, match=f"port {port} of 127.0.0.1 is taken"):
            listen("127.0.0.1", port)


def test_what_is_no_address_is_said_so():
    with pytest.raises(CannotListen, match="is no address to listen on"):
        listen("nowhere.invalid", 0)


async def test_a_server_that_fails_does_not_stay_without_answering(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def faulty(server: uvicorn.Server) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(uvicorn.Server, "main_loop", faulty)
    with listen("127.0.0.1", 0) as listener, pytest.raises(ZeroDivisionError):
        async with serving(Starlette(), listener, ServerSettings(drain=1)):
            await asyncio.wait_for(asyncio.Event().wait(), PATIENCE)

    assert [each.getMessage() for each in caplog.records if each.exc_info] == ["the server has failed, and ends"]


CHUNKED = b"POST /headers HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"


@pytest.mark.parametrize("is_in_parts", [False, True])
async def test_what_comes_after_the_body_is_never_a_header_of_the_request(calm: Site, is_in_parts: bool):
    peer = await calm.connect()
    for part in (
        (CHUNKED, b"authorization: Bearer x\r\n", b"\r\n")
        if is_in_parts
        else (CHUNKED + b"authorization: Bearer x\r\n\r\n",)
    ):
        peer[1].write(part)
        await peer[1].drain()
    said = await answered(peer)
    peer[1].write(CHUNKED + b"\r\n")
    again = await answered(peer)
    peer[1].close()

    assert [json.loads(each.partition(b"\r\n\r\n")[2]) for each in (said, again)] == [["host", "transfer-encoding"]] * 2


async def test_what_comes_after_the_body_may_not_be_larger_than_the_headers(calm: Site):
    peer = await calm.connect()
    peer[1].write(CHUNKED + b"a: ")
    filling = asyncio.ensure_future(_fill(peer))

    assert (await everything(peer)).startswith(b"HTTP/1.1 431 ")
    filling.cancel()


async def _fill(peer: Peer) -> None:
    with suppress(ConnectionError):
        while True:
            peer[1].write(b"x" * 10_000)
            await peer[1].drain()
