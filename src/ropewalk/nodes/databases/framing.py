"""What a PostgreSQL server sends, looked at before the driver reads it: messages of a true length, and none too large.

The driver believes the lengths that a server tells: one of less than four bytes holds it for ever, and one of a
gigabyte is gathered in memory.
"""

import asyncio
from collections.abc import Callable
from typing import Any

LARGEST_MESSAGE = 64 * 1024 * 1024
HEADER = 5


class FramedLoop:
    """The running loop, for the driver; what it connects is looked at. `refusal` says why it was given up."""

    def __init__(self, loop: asyncio.AbstractEventLoop, is_looked_at: Callable[[Any], bool]) -> None:
        self._loop = loop
        self._is_looked_at = is_looked_at
        self.refusal: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(self, factory: Callable[[], Any], *args: Any, **settings: Any) -> tuple[Any, Any]:
        protocol = factory()
        transport, _ = await self._loop.create_connection(lambda: self._framed(protocol), *args, **settings)
        return transport, protocol

    async def start_tls(self, transport: Any, protocol: Any, *args: Any, **settings: Any) -> Any:
        return _Secured(await self._loop.start_tls(transport, protocol, *args, **settings), self._framed)

    def _framed(self, protocol: Any, transport: Any = None) -> Any:
        return _Framed(protocol, self, transport) if self._is_looked_at(protocol) else protocol


class _Secured:
    """A transport by TLS; the driver puts its protocol there once it speaks."""

    def __init__(self, transport: Any, framed: Callable[[Any, Any], Any]) -> None:
        self._transport = transport
        self._framed = framed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def set_protocol(self, protocol: Any) -> None:
        self._transport.set_protocol(self._framed(protocol, self._transport))


class _Framed(asyncio.Protocol):
    """Hands on what makes sense, and hangs up on the rest."""

    def __init__(self, inner: Any, loop: FramedLoop, transport: Any) -> None:
        self._inner = inner
        self._loop = loop
        self._transport = transport
        self._header = b""
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._loop.refusal is not None:
            return
        self._loop.refusal = self._wrong_with(data)
        if self._loop.refusal is None:
            self._inner.data_received(data)
        elif self._transport is not None:
            self._transport.abort()

    def _wrong_with(self, data: bytes) -> str | None:
        at = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
                at += step
                continue
            taken = data[at : at + HEADER - len(self._header)]
            self._header += taken
            at += len(taken)
            if len(self._header) == HEADER:
                length = int.from_bytes(self._header[1:])
                if not self._header[:1].isalnum() or length < HEADER - 1:
                    return "answers what is no PostgreSQL"
                if length > LARGEST_MESSAGE:
                    return f"sends a row of more than {LARGEST_MESSAGE // 2**20} MiB"
                self._header, self._left = b"", length - HEADER + 1
        return None

    def eof_received(self) -> bool | None:
        return bool(self._inner.eof_received())

    def connection_lost(self, error: Exception | None) -> None:
        self._inner.connection_lost(error)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
