"""Streams between the loop and code that reads and writes them on a thread, a part at a time.

Parsers are plain code: they ask for the next part and wait for it. On a thread of their own they can, while the loop
fetches it. Nothing is read that is not asked for, so what a stream takes in memory are a few parts.
"""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterator
from threading import Event, get_ident
from typing import Any, Final, TypeVar

from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.files import File, file_of
from ropewalk.nodes.folder import on_a_thread

PART: Final = 256 * 1024
"""What is written is handed on when there are so many bytes."""
LONGEST_LINE: Final = 1024 * 1024
T = TypeVar("T")


class Stopped(Exception):
    """The node is told to stop."""


class Pulled(io.RawIOBase):
    """The bytes of a stream, for code on a thread: it asks, and the loop fetches."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._loop, self._home = asyncio.get_running_loop(), get_ident()
        self._rest = memoryview(b"")
        self.stop = Event()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            assert get_ident() != self._home, "the loop cannot wait for itself"
            if self.stop.is_set():
                raise Stopped
            self._rest = memoryview(asyncio.run_coroutine_threadsafe(self._next(), self._loop).result())
        size = min(len(self._rest), len(buffer))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    async def _next(self) -> bytes:
        async for chunk in self._chunks:
            if chunk:
                return chunk
        return b""


async def pulled_through(chunks: AsyncIterator[bytes], work: Callable[[Pulled], T]) -> T:
    """What the work gives, on a thread, with the stream to read."""
    pulled = Pulled(chunks)
    return await until_stopped(lambda _: work(pulled), pulled.stop)


async def until_stopped(work: Callable[[Event], T], stop: Event | None = None) -> T:
    """What the work gives, on a thread. A caller that is cancelled sets the event, and waits for the work to end."""
    stop = Event() if stop is None else stop
    working = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([working])
        raise


async def stepped(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """What an iterator gives, each part made on a thread."""
    while (part := await on_a_thread(next, parts, None)) is not None:
        yield part


def gathered(texts: Iterator[str], encoding: str = "utf-8") -> Iterator[bytes]:
    """The texts as bytes, many together."""
    made = io.BytesIO()
    for text in texts:
        made.write(text.encode(encoding, "replace"))
        if made.tell() >= PART:
            yield made.getvalue()
            made = io.BytesIO()
    if made.tell():
        yield made.getvalue()


def lines_of(raw: Pulled, place: str, encoding: str = "utf-8", longest: int = LONGEST_LINE) -> Iterator[str]:
    """The lines of a text with their ends; a permanent failure for what is no text, or a line that does not end."""
    # The mark in front of the text, which some programs write, is none of it.
    wrapped = io.TextIOWrapper(
        io.BufferedReader(raw, PART), "utf-8-sig" if encoding == "utf-8" else encoding, newline=""
    )
    at = 0
    try:
        while line := wrapped.readline(longest + 1):
            at += 1
            if len(line) > longest:
                raise NodeFailure.permanent(f"{place}: line {at}: is longer than {longest:,} characters")
            yield line
    except UnicodeError:
        raise NodeFailure.permanent(f"{place}: is no text in {encoding}, after line {at}") from None


def given_file(value: Any, place: str) -> File:
    """The file that a parameter is; a permanent failure if it is none."""
    file = file_of(value)
    if file is None:
        raise NodeFailure.permanent(f"{place}: is no file; give the value that a node or an upload gave")
    return file


async def text_of_file(context: NodeContext, file: File, place: str, most: int, encoding: str = "utf-8") -> str:
    """All of the text of a file that is not large."""
    if file.size > most:
        raise NodeFailure.permanent(f"{place}: is larger than {most // 2**20} MiB; read it in parts")
    content = b"".join([chunk async for chunk in context.files.read(file)])
    try:
        return content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeError:
        raise NodeFailure.permanent(f"{place}: is no text in {encoding}") from None
