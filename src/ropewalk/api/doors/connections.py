"""Connections that end in time: a client that lets the server wait, or does not read its answer, is cut off.

A connection is always in one phase, and each phase has a deadline, which the connection monitor looks at.
"""

import asyncio
import re
from collections.abc import Mapping
from enum import Enum, auto
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ropewalk.api.doors.connection_monitor import LOOKS_EVERY, ConnectionMonitor, Outgoing
from ropewalk.api.doors.whole_answers import WHOLE
from ropewalk.api.shapes.problems import RETRY_AFTER, problem
from ropewalk.api.streaming.waiters import DEPARTED

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

_H2C: Final = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n|$)", re.IGNORECASE)


class Phase(Enum):
    """What a connection is waiting for."""

    HEADERS = auto()
    BODY = auto()
    ANSWER = auto()
    IDLE = auto()
    LINGERING = auto()
    """The answer is out, and the client still sends, which the server does not read."""


class Refusal(Exception):
    """What a client sends is more than is read."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class HttpConnection(HttpToolsProtocol):
    """One client, from request to request."""

    def __init__(self, monitor: ConnectionMonitor, **given: Any) -> None:
        super().__init__(**given)
        self._monitor = monitor
        self._limits = monitor.limits
        self._phase = Phase.HEADERS
        self._since = monitor.now
        self._host = ""
        self._messages = 0
        self._head = self._received = 0
        self._refusal: Refusal | None = None
        self._is_deaf = False
        self._departure: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._outgoing = Outgoing(transport, self._limits)
        self._host = self.client[0] if self.client else ""
        self._enter(Phase.HEADERS)
        if not self._monitor.admits(self._host):
            transport.write(_as_bytes(503, "there are too many connections", {"Retry-After": RETRY_AFTER}))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._monitor.left(self._host)
        super().connection_lost(exc)
        self._tell_departure()

    def departed(self) -> asyncio.Future[None]:
        """Done when the client has hung up. One request is answered at a time, so only one handler asks."""
        self.flow.resume_reading()
        self._departure = self.loop.create_future()
        if self._is_deaf or self.transport.is_closing():
            self._departure.set_result(None)
        return self._departure

    def _write_whole(self, cycle: RequestResponseCycle, answer: Message) -> bool:
        """Write a whole answer at once, so that the client reads it at once; False if it has to go the usual way."""
        if cycle.disconnected or cycle.response_started or self.flow.write_paused or not cycle.keep_alive:
            return False
        headers = (*cycle.default_headers, *answer["headers"])
        head = b"".join([part for name, value in headers for part in (name, b": ", value, b"\r\n")])
        self.transport.write(b"".join((STATUS_LINE[answer["status"]], head, b"\r\n", answer["body"])))
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        self.on_response_complete()
        return True

    def _tell_departure(self) -> None:
        if self._departure is not None and not self._departure.done():
            self._departure.set_result(None)

    # Called by the parser

    def data_received(self, data: bytes) -> None:
        if self._is_deaf or self.transport.is_closing():
            return
        is_between, messages, received = self._phase in (Phase.IDLE, Phase.HEADERS), self._messages, self._received
        super().data_received(_without_h2c(data) if is_between else data)
        if is_between:
            if self._phase is Phase.HEADERS and self._messages - messages <= 1:
                self._count_head(len(data))
        elif self._phase is Phase.BODY and self._received == received:
            # The data frames chunks, or comes after the last one.
            self._count_head(len(data))
        else:
            self._head = 0

    def _count_head(self, size: int) -> None:
        """A head that comes in parts is counted before it is complete: the parser keeps as much as comes."""
        self._head += size
        if self._head > self._limits.largest_head:
            self._refuse(431, f"the headers may have {self._limits.largest_head:,} bytes together")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._messages += 1
        self._head = self._received = 0
        self._enter(Phase.HEADERS)

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._limits.longest_line:
            self._exceed(414, f"a path may have {self._limits.longest_line:,} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase is not Phase.HEADERS:
            # A trailer, sent after the body: the request is with its handler already, and no rule looks at it again.
            return
        super().on_header(name, value)
        self._received += len(name) + len(value)
        if len(self.headers) > self._limits.most_headers or self._received > self._limits.largest_head:
            self._exceed(431, f"there may be {self._limits.most_headers} headers of "
                              f"{self._limits.largest_head:,} bytes together")  # fmt: skip

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= self._limits.most_pipelined:
            self._exceed(400, f"{self._limits.most_pipelined} requests may be sent ahead")
        if self.parser.should_upgrade() and any(_is_of_body(name, value) for name, value in self.headers):
            # The parser would take the body for the new protocol, and we would wait for it.
            self._exceed(400, "a request to switch protocols has no body")
        self._require_one_reading()
        self._received = 0
        self._enter(Phase.BODY)
        # The scope's type knows only the names of the standard.
        scope = cast(dict[str, Any], self.scope)
        scope[DEPARTED] = self.departed
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            scope[WHOLE] = partial(self._write_whole, self.cycle)

    def _require_one_reading(self) -> None:
        """What a proxy on the way may have understood in another way is refused: to whom it goes, where it ends."""
        hosts = 0
        for name, value in self.headers:
            hosts += name == b"host"
            if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
                self._exceed(400, "a body comes as it is or in chunks, in no other coding")
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            self._exceed(400, "a request names one host")

    def on_body(self, body: bytes) -> None:
        self._received += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        is_answered = self._phase is Phase.LINGERING
        self._enter(Phase.IDLE if is_answered else Phase.ANSWER)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._phase is Phase.ANSWER and not self.pipeline:
            self._enter(Phase.IDLE)
        elif self._phase is Phase.BODY and not self.pipeline:
            self._enter(Phase.LINGERING)
        super().on_response_complete()

    def _exceed(self, status: int, detail: str) -> None:
        self._refusal = Refusal(status, detail)
        raise self._refusal

    # Called by the monitor

    def _enter(self, phase: Phase) -> None:
        self._phase, self._since = phase, self._monitor.now

    def look(self, now: float) -> None:
        """Ends the connection if its phase has taken too long."""
        self._outgoing.look(now, is_stuck=self.flow.write_paused)
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            # The server does not read on, so the time is not the client's.
            self._since += LOOKS_EVERY
        elif self._is_overdue(now - self._since):
            self._end()

    def _is_overdue(self, taken: float) -> bool:
        limits = self._limits
        match self._phase:
            case Phase.HEADERS:
                return taken > limits.headers
            case Phase.BODY:
                # A file may take as long as it is large, at a rate that costs a client as much as it costs us.
                longest = limits.body + self._received / limits.steady
                return taken > longest or self._received < limits.slowest * (taken - limits.grace)
            case Phase.IDLE:
                return taken > limits.idle
            case Phase.LINGERING:
                return taken > limits.linger
            case Phase.ANSWER:
                return False

    def _end(self) -> None:
        if self._phase in (Phase.IDLE, Phase.LINGERING) or not self._messages:
            self.transport.close()
        else:
            self._refuse(408, f"the {self._phase.name.lower()} took too long")

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, or a request over a limit."""
        if self._refusal is None:
            self._refuse(400, "this is no HTTP/1.1 request")
        else:
            self._refuse(self._refusal.status, self._refusal.detail)

    def _refuse(self, status: int, detail: str) -> None:
        """Says why, unless that would be taken for the answer to something else, and hangs up."""
        may_answer = self._may_answer()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._tell_departure()
        if not may_answer:
            self.transport.close()
            return
        self.transport.write(_as_bytes(status, detail, {}))
        # Closed while something unread is coming in, the connection would be reset, and the answer lost with it.
        self.transport.write_eof()
        self._is_deaf = True
        self._enter(Phase.LINGERING)

    def _may_answer(self) -> bool:
        if self.cycle is None or self.cycle.response_complete:
            return True
        return self._phase is Phase.BODY and not self.pipeline and not self.cycle.response_started

    def shutdown(self) -> None:
        """Requests are still answered; a stream ends here, since nothing else would end it."""
        if self.cycle is not None and _is_stream(self.cycle):
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self.transport.write(b"0\r\n\r\n")
            self.transport.close()
        else:
            super().shutdown()


def _without_h2c(data: bytes) -> bytes:
    """HTTP/2 is not spoken here. Many clients offer it with every request, and the parser must not hear of it."""
    if b"h2c" not in data:
        return data
    head, end, rest = data.partition(b"\r\n\r\n")
    return _H2C.sub(b"", head) + end + rest


def _is_of_body(name: bytes, value: bytes) -> bool:
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")


def _is_stream(cycle: RequestResponseCycle) -> bool:
    """Answers have a length; one without goes on until the client or the server leaves."""
    return bool(cycle.response_started and not cycle.response_complete and cycle.chunked_encoding)


def _as_bytes(status: int, detail: str, headers: Mapping[str, str]) -> bytes:
    answer = problem(status, detail, (), headers)
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
    lines += [name + b": " + value for name, value in answer.raw_headers]
    return b"\r\n".join([*lines, b"connection: close", b"", bytes(answer.body)])


class WebSocketConnection(WebSocketsSansIOProtocol):
    """One WebSocket; its client was counted when it came as a request."""

    def __init__(self, monitor: ConnectionMonitor, **given: Any) -> None:
        super().__init__(**given)
        self._monitor = monitor
        self._since = monitor.now

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._outgoing = Outgoing(self.transport, self._monitor.limits)

    def connection_lost(self, exc: Exception | None) -> None:
        self._monitor.left(self.client[0] if self.client else "")
        super().connection_lost(exc)

    async def send(self, message: "ASGISendEvent") -> None:
        """As in uvicorn, which forgets that a refusal ends the handshake, and would report a fault of ours."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    def look(self, now: float) -> None:
        """Ends the connection if the client does not read; whether it is there at all, pings find out."""
        self._outgoing.look(now, is_stuck=not self.writable.is_set())
        if not self.handshake_initiated and now - self._since > self._monitor.limits.headers:
            self.transport.abort()
