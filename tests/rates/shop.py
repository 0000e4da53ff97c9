"""A server that nodes call: it notes when each request came, and fails some of them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count

ANSWERS = {
    200: b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    503: b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
}


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

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.get_running_loop().create_task(self._talk(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.arrivals.append(asyncio.get_running_loop().time())
                writer.write(ANSWERS[503 if self._fails(next(self._numbers)) else 200])
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def hang_up(self) -> None:
        for talk in list(self._talks):
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)


@asynccontextmanager
async def opened(fails: Callable[[int], bool]) -> AsyncIterator[Shop]:
    shop = Shop(fails)
    server = await asyncio.start_server(shop.connected, "127.0.0.1", 0)
    shop.port = server.sockets[0].getsockname()[1]
    try:
        yield shop
    finally:
        server.close()
        await shop.hang_up()
