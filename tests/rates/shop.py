"""A server that nodes call: it notes when each request came, and fails some of them.

When a request came is what the kernel says, where it does: this process may be late to look.
"""

import asyncio
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count

ANSWERS = {
    200: b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    503: b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
}


# The time at which a segment arrived comes along with it; Python has no name for that.
STAMPED = 35
TIMESPEC = struct.Struct("@ll")


class Shop:
    """`fails` is told the number of each request, from 0."""

    def __init__(self, fails: Callable[[int], bool]) -> None:
        self._fails = fails
        self._numbers = count()
        self._talks: set[asyncio.Task[None]] = set()
        self.arrivals: list[float] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, listener: socket.socket) -> None:
        """Answer whom it may concern, until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listener)
            talk = loop.create_task(self._talk(connection))
            self._talks.add(talk)
            talk.add_done_callback(self._talks.discard)

    async def _talk(self, connection: socket.socket) -> None:
        loop, heard = asyncio.get_running_loop(), b""
        with connection:
            if sys.platform == "linux":
                connection.setsockopt(socket.SOL_SOCKET, STAMPED, 1)
            with suppress(ConnectionError):
                while True:
                    piece, came = await _received(connection)
                    if not piece:
                        return
                    heard += piece
                    if heard.endswith(b"\r\n\r\n"):
                        heard = b""
                        self.arrivals.append(came)
                        await loop.sock_sendall(connection, ANSWERS[503 if self._fails(next(self._numbers)) else 200])

    async def hang_up(self) -> None:
        for talk in list(self._talks):
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)


async def _received(connection: socket.socket) -> tuple[bytes, float]:
    """What there is to read, and when it came (s)."""
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    loop.add_reader(connection, is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(connection)
    piece, about, _, _ = connection.recvmsg(64 * 1024, 256)
    stamps = [TIMESPEC.unpack(data[: TIMESPEC.size]) for level, kind, data in about
              if (level, kind) == (socket.SOL_SOCKET, STAMPED)]  # fmt: skip
    return piece, stamps[0][0] + stamps[0][1] / 1e9 if stamps else time.time()


@asynccontextmanager
async def opened(fails: Callable[[int], bool]) -> AsyncIterator[Shop]:
    shop = Shop(fails)
    with socket.create_server(("127.0.0.1", 0), backlog=1_000) as listener:
        listener.setblocking(False)
        shop.port = listener.getsockname()[1]
        serving = asyncio.create_task(shop.serve(listener))
        try:
            yield shop
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await shop.hang_up()
