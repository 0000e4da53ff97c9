"""How a live stream reaches its reader: as server-sent events, or as messages of a WebSocket."""

from typing import Final

import msgspec
from fastapi import WebSocket
from starlette.types import Send

from ropewalk.service.channels import Batch
from ropewalk.service.stream_readers import Ending, Reason

CODES: Final = {
    Reason.FINISHED: 1000,
    Reason.GONE: 1000,
    Reason.RECONNECT: 1012,
    Reason.SLOW: 1013,
    Reason.REVOKED: 1008,
}
"""With which code a WebSocket is closed."""


class SseTransport:
    """Sends a stream as server-sent events."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def begin(self) -> None:
        headers = [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._say(b"retry: 1000\n\n")

    async def snapshot(self, id: str, text: bytes) -> None:  # noqa: A002
        await self._say(b"event: snapshot\nid: %b\ndata: %b\n\n" % (id.encode(), text))

    async def events(self, batch: Batch, payloads: bool) -> None:
        await self._say(batch.sse(payloads))

    async def beat(self) -> None:
        await self._say(b":\n\n")

    async def end(self, ending: Ending) -> None:
        # Without an id: a reader comes back with the id of the last event.
        text = b"event: end\ndata: %b\n\n" % msgspec.json.encode(ending)
        await self._send({"type": "http.response.body", "body": text, "more_body": False})

    async def _say(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})


class WebSocketTransport:
    """Sends a stream as messages of a WebSocket, one for each event."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def snapshot(self, id: str, text: bytes) -> None:  # noqa: A002
        await self._socket.send_text(f'{{"kind":"snapshot","id":"{id}","snapshot":{text.decode()}}}')

    async def events(self, batch: Batch, payloads: bool) -> None:
        for message in batch.messages:
            await self._socket.send_text(message.frame(payloads))

    async def beat(self) -> None:
        """WebSockets have pings of their own."""

    async def end(self, ending: Ending) -> None:
        await self._socket.send_text(f'{{"kind":"end","end":{msgspec.json.encode(ending).decode()}}}')
        await self._socket.close(CODES[ending.reason], ending.reason)
