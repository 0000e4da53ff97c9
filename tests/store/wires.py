"""What may stand between a worker and its database: a line that is cut, and a transaction pooler."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from urllib.parse import urlsplit

_IDLE = b"Z\0\0\0\5I"
_ROLLBACK = b"Q\0\0\0\rrollback\0"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Line:
    """Carries every byte to the server and back, until it is told to fail."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.is_losing_answers = False
        self.is_losing_requests = False
        self.is_down = False
        self.losses = 0

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        self.join((reader, writer), await asyncio.open_connection("127.0.0.1", self._port))

    def join(self, near: Streams, far: Streams) -> None:
        """From now on what one end says is heard at the other."""
        (reader, writer), (far_reader, far_writer) = near, far
        self._writers += [writer, far_writer]
        self._tasks += [
            asyncio.create_task(self._pump(reader, far_writer, writer, is_answer=False)),
            asyncio.create_task(self._pump(far_reader, writer, far_writer, is_answer=True)),
        ]

    def cut(self) -> None:
        """Every client loses its connection; the server is told nothing."""
        for writer in self._writers[::2]:
            writer.transport.abort()

    async def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _pump(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        other: asyncio.StreamWriter,
        *,
        is_answer: bool,
    ) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                if self.is_losing_answers if is_answer else self.is_losing_requests:
                    self.is_losing_answers = self.is_losing_requests = False
                    self.losses += 1
                    break
                target.write(data)
                await target.drain()
        target.close()
        other.close()


class Pooler:
    """Hands each transaction to the next of its server connections, as such poolers do, and remembers nothing."""

    def __init__(self, server: list[Streams], hello: bytes) -> None:
        self._server = cycle(server)
        self._hello = hello
        self._free = asyncio.Lock()
        self._clients: dict[asyncio.Task[object], asyncio.StreamWriter] = {}
        self.transactions = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._clients[task] = writer
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await _startup(reader, writer)
            writer.write(self._hello)
            while True:
                first = await _message(reader)
                if first[:1] == b"X":
                    break
                # One transaction at a time is slow, and as strict as it gets.
                async with self._free:
                    await self._transact(next(self._server), first, reader, writer)
        writer.close()

    async def close(self) -> None:
        for writer in self._clients.values():
            writer.transport.abort()
        await asyncio.gather(*self._clients, return_exceptions=True)

    async def _transact(
        self, server: Streams, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Carries messages both ways until the server says that no transaction is open."""
        self.transactions += 1
        asked = asyncio.create_task(_forward(first, reader, server[1]))
        try:
            while (answer := await _message(server[0])) != _IDLE:
                writer.write(answer)
            writer.write(answer)
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)


async def _forward(first: bytes, reader: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
    """Carries what the client says; a client that hangs up in a transaction leaves none open."""
    message = first
    while True:
        server.write(message)
        try:
            message = await _message(reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            server.write(_ROLLBACK)
            return


class Past:
    """A server as it once was: it says that it is of this version, and knows no settings that came later."""

    def __init__(self, port: int, version: str, unknown: str) -> None:
        self._port = port
        self._version = version.encode()
        self._unknown = unknown.encode()
        self._line = Line(port)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        words = await _startup(reader, writer)
        if self._unknown in words:
            writer.write(_fatal(b"42704", b'unrecognized configuration parameter "%b"' % self._unknown))
            writer.close()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        far_writer.write((len(words) + 4).to_bytes(4) + words)
        while (said := await _message(far_reader)) != _IDLE:
            writer.write(self._aged(said))
        writer.write(said)
        self._line.join((reader, writer), (far_reader, far_writer))

    def _aged(self, said: bytes) -> bytes:
        is_version = said[:1] == b"S" and said[5:].startswith(b"server_version\0")
        return _framed(b"S", b"server_version\0%b\0" % self._version) if is_version else said

    async def close(self) -> None:
        await self._line.close()


def _framed(kind: bytes, words: bytes) -> bytes:
    return kind + (len(words) + 4).to_bytes(4) + words


def _fatal(code: bytes, message: bytes) -> bytes:
    return _framed(b"E", b"SFATAL\0VFATAL\0C%b\0M%b\0\0" % (code, message))


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:]) - 4)


async def _startup(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Reads who the client says it is, and what it wants set; there is no encryption."""
    while True:
        size = int.from_bytes(await reader.readexactly(4))
        words = await reader.readexactly(size - 4)
        if words[:4] != (80877103).to_bytes(4):
            return words
        writer.write(b"N")


async def _logged_in(port: int, database: str) -> tuple[Streams, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    words = (3 << 16).to_bytes(4) + b"user\0postgres\0database\0" + database.encode() + b"\0client_encoding\0utf-8\0\0"
    writer.write((len(words) + 4).to_bytes(4) + words)
    hello = b""
    while not hello.endswith(_IDLE):
        hello += await _message(reader)
    return (reader, writer), hello


def _parts(url: str) -> tuple[int, str]:
    parts = urlsplit(url)
    assert parts.port
    return parts.port, parts.path.lstrip("/")


def _through(server: asyncio.Server, database: str) -> str:
    return f"postgresql://postgres@127.0.0.1:{server.sockets[0].getsockname()[1]}/{database}"


@asynccontextmanager
async def a_line(url: str) -> AsyncIterator[tuple[Line, str]]:
    """A line to the database, and the URL of its near end."""
    port, database = _parts(url)
    line = Line(port)
    server = await asyncio.start_server(line.carry, "127.0.0.1", 0)
    try:
        yield line, _through(server, database)
    finally:
        server.close()
        await line.close()


@asynccontextmanager
async def a_past(url: str, version: str, unknown: str) -> AsyncIterator[str]:
    """The URL of the server as it was when it had this version, and one of our settings was unknown to it."""
    port, database = _parts(url)
    past = Past(port, version, unknown)
    server = await asyncio.start_server(past.serve, "127.0.0.1", 0)
    try:
        yield _through(server, database)
    finally:
        server.close()
        await past.close()


@asynccontextmanager
async def a_pooler(url: str, connections: int = 3) -> AsyncIterator[tuple[Pooler, str]]:
    """A pooler before the database, and its URL."""
    port, database = _parts(url)
    logged_in = [await _logged_in(port, database) for _ in range(connections)]
    pooler = Pooler([streams for streams, _ in logged_in], logged_in[0][1])
    server = await asyncio.start_server(pooler.serve, "127.0.0.1", 0)
    try:
        yield pooler, _through(server, database)
    finally:
        server.close()
        await pooler.close()
        for writer in _writers(logged_in):
            writer.transport.abort()


def _writers(logged_in: list[tuple[Streams, bytes]]) -> Iterator[asyncio.StreamWriter]:
    return (writer for (_, writer), _ in logged_in)
