"""Servers to be spoken to: the real one, one that follows a script, and a wire that can be cut."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec
from msgspec import Struct

from ropewalk.access import keys
from ropewalk.access.rights import Role
from ropewalk.api.app import create_app
from ropewalk.api.backend import Backend
from ropewalk.api.doors.server import ServerSettings, address_of, listen, serving
from ropewalk.cli.backend.project import project
from ropewalk.modules import catalogue
from ropewalk.wiring import Settings, open_backend

PATIENCE = 60.0


class Served(Struct, frozen=True):
    """A server, and a token that opens it."""

    url: str
    token: str
    backend: Backend


@asynccontextmanager
async def served(db: str, nodes: tuple[str, ...] = (), port: int = 0) -> AsyncIterator[Served]:
    """The real server on a store of its own, which knows these node types."""
    known = catalogue(project(db, nodes, is_json=True).nodes)
    async with open_backend(Settings(db=db), known.types, known.functions) as backend:
        wanted = keys.Wanted(workspace="default", name="root", role=Role.ADMIN, is_root=True)
        async with backend.store.transaction() as tx:
            _, token = await keys.make(tx, wanted, "test", backend.store.now())
        listener = listen("127.0.0.1", port)
        async with serving(create_app(backend, "test"), listener, ServerSettings(drain=1)):
            yield Served(address_of(listener), token, backend)


@contextmanager
def served_beside(db: str, nodes: tuple[str, ...] = ()) -> Iterator[Served]:
    """The same in a thread, for tests that have no loop, or one of their own."""
    loop, found, end = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    here: list[Served] = []

    async def serve() -> None:
        async with served(db, nodes) as server:
            here.append(server)
            found.set()
            await end.wait()

    def work() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            found.set()
            loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert found.wait(PATIENCE)
        yield here[0]
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(PATIENCE)


class Script(Struct):
    """What a server answers, one connection after the other; None hangs up. `heard` is what it was asked."""

    answers: list[bytes | None]
    heard: list[tuple[str, dict[str, str], bytes]] = []
    url: str = ""


def reply(status: int, body: Any, *headers: str) -> bytes:
    """A whole answer, after which the connection ends."""
    text = msgspec.json.encode(body)
    lines = [f"HTTP/1.1 {status} Whatever", "Content-Type: application/json", "Connection: close", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(text)}", "", ""]).encode() + text


def stream(*messages: str, is_whole: bool = False) -> bytes:
    """The beginning of a stream; the connection ends after it, as if it were cut unless it is whole."""
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    text = "".join(messages)
    if is_whole:
        return f"{head}Connection: close\r\n\r\n{text}".encode()
    return f"{head}Content-Length: {len(text) + 1000}\r\n\r\n{text}".encode()


def event(seq: int) -> str:
    return f'id: {seq}\ndata: {{"seq":{seq}}}\n\n'


FINISHED = 'event: end\ndata: {"reason":"finished","id":"1"}\n\n'


@asynccontextmanager
async def scripted(answers: Sequence[bytes | None]) -> AsyncIterator[Script]:
    """A server on a real socket that follows a script, and refuses every request when it is over."""
    script = Script(list(answers))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            script.heard.append(await _request(reader))
            if script.answers and (text := script.answers.pop(0)) is not None:
                writer.write(text)
                await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield script


async def _request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
    return first, headers, await reader.readexactly(int(headers.get("content-length", 0)))


class Wire(Struct):
    """A way to a server that can be cut."""

    url: str
    writers: list[asyncio.StreamWriter]

    def cut(self) -> int:
        """Cuts every connection there is; how many there were."""
        count = len(self.writers)
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()
        return count


@asynccontextmanager
async def wired(url: str) -> AsyncIterator[Wire]:
    """A wire to the server at this address."""
    host, _, port = url.removeprefix("http://").partition(":")
    wire = Wire("", [])
    tasks: set[asyncio.Task[None]] = set()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(host, int(port))
        wire.writers += [writer, there[1]]
        for ends in ((reader, there[1]), (there[0], writer)):
            task = asyncio.ensure_future(_carry(*ends))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield wire
        wire.cut()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        pass  # cut
    finally:
        writer.close()
