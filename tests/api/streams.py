"""Those who follow live streams: over real sockets, with as little of their own as possible."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ropewalk.api.doors.server import ServerSettings, address_of, listen, serving
from tests.api.house import API, House

PATIENCE = 30.0
_listeners: list["Listener"] = []


class Said(NamedTuple):
    """One server-sent event."""

    kind: str
    id: str | None
    data: Any


@asynccontextmanager
async def served(house: House) -> AsyncIterator[str]:
    """The house on a socket of this machine; its URL. At the end the socket is closed."""
    listener = listen("127.0.0.1", 0)
    async with serving(house.app, listener, ServerSettings()):
        yield address_of(listener)
    while _listeners:
        _listeners.pop().hang_up()


class Listener:
    """A reader of a stream, as fast or as slow as wanted."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0
        self._pending = b""

    @classmethod
    async def connect(cls, url: str, path: str, token: str, headers: tuple[str, ...] = ()) -> "Listener":
        """Asks for a stream and reads the head of the answer."""
        place = urlsplit(url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=2**20)
        lines = [f"GET {API}{path} HTTP/1.1", "Host: ropewalk.test", f"Authorization: Bearer {token}", *headers]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        listener = cls(reader, writer)
        _listeners.append(listener)
        head = await reader.readuntil(b"\r\n\r\n")
        listener.status = int(head.split(b" ", 2)[1])
        return listener

    async def said(self) -> AsyncIterator[Said]:
        """Everything until the server ends the answer, or hangs up."""
        while (chunk := await self._chunk()) is not None:
            self._pending += chunk
            *whole, self._pending = self._pending.split(b"\n\n")
            for block in whole:
                if (said := _parsed(block)) is not None:
                    yield said

    async def take(self, count: int) -> list[Said]:
        """So many, and no more of them for now."""
        found: list[Said] = []
        async with asyncio.timeout(PATIENCE):
            async for said in self.said():
                found.append(said)
                if len(found) == count:
                    break
        return found

    async def everything(self) -> list[Said]:
        """All there is until the end."""
        async with asyncio.timeout(PATIENCE):
            return [said async for said in self.said()]

    async def unparsed(self) -> bytes:
        """The same as it comes, for those who have no time."""
        pieces = []
        while (chunk := await self._chunk()) is not None:
            pieces.append(chunk)
        return b"".join(pieces)

    async def raw(self) -> bytes | None:
        """The next piece as it comes."""
        return await self._chunk()

    async def _chunk(self) -> bytes | None:
        try:
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            chunk = await self._reader.readexactly(size + 2)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return chunk[:-2] if size else None

    def hang_up(self) -> None:
        self._writer.transport.abort()


def _parsed(block: bytes) -> Said | None:
    fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if ": " in line)
    if "data" not in fields:
        return None
    return Said(fields.get("event", "message"), fields.get("id"), json.loads(fields["data"]))


def numbers(said: list[Said]) -> list[int]:
    """The numbers of the events among what was said."""
    return [each.data["seq"] for each in said if each.kind == "message"]
