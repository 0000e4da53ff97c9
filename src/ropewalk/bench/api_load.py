"""Who starts executions over HTTP: `python -m ropewalk.bench.api_load READY`, told what to do line by line.

A client as cheap as can be, so that what is measured is the server: requests are made once, and of an answer only the
status and the length are read.
"""

import asyncio
import sys
import time
from typing import Final, cast
from urllib.parse import urlsplit

import msgspec
import uvloop
from msgspec import Struct

from ropewalk.bench.contenders import Broken
from ropewalk.bench.processes import say

START: Final = "/api/v1/workflow/executions/start"
ACCEPTED: Final = b"HTTP/1.1 202 "
LENGTH: Final = b"content-length: "


class Ready(Struct, frozen=True):
    """Where a server is, and what it starts by which token."""

    url: str
    token: str
    workflow: str


class Client(asyncio.Protocol):
    """One connection: a request, its answer, the next request."""

    def __init__(self) -> None:
        self._heard = b""
        self._turn = asyncio.Lock()
        self._answered: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(Broken("the server hung up"))

    async def ask(self, request: bytes) -> None:
        """One request, until its answer is there; the next one of a steady pace waits for it."""
        async with self._turn:
            self._answered = asyncio.get_running_loop().create_future()
            self.transport.write(request)
            await self._answered

    def data_received(self, data: bytes) -> None:
        self._heard += data
        end = self._heard.find(b"\r\n\r\n")
        if end < 0:
            return
        at = self._heard.find(LENGTH) + len(LENGTH)
        size = int(self._heard[at : self._heard.find(b"\r", at)])
        if len(self._heard) < end + 4 + size or self._answered is None:
            return
        answer, self._heard = self._heard, b""
        if answer.startswith(ACCEPTED):
            self._answered.set_result(None)
        else:
            self._answered.set_exception(Broken(f"the server said {answer[:500]!r}"))


def request(ready: Ready, number: int) -> bytes:
    """A start; its input is its number."""
    body = msgspec.json.encode({"workflowDefinitionId": ready.workflow, "input": number})
    head = (
        f"POST {START} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {ready.token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def connected(ready: Ready, clients: int) -> list[Client]:
    place = urlsplit(ready.url)
    host, port, loop = place.hostname or "", place.port or 0, asyncio.get_running_loop()
    return [(await loop.create_connection(Client, host, port))[1] for _ in range(clients)]


async def rush(clients: list[Client], ready: Ready, seconds: float) -> float:
    """Starts per second of all of them, each as fast as it is answered."""
    text, end, done = request(ready, 0), time.perf_counter() + seconds, 0

    async def keep_asking(client: Client) -> None:
        nonlocal done
        while time.perf_counter() < end:
            await client.ask(text)
            done += 1

    began = time.perf_counter()
    await asyncio.gather(*map(keep_asking, clients))
    return done / (time.perf_counter() - began)


async def pace(clients: list[Client], ready: Ready, per_second: float, starts: int) -> dict[int, float]:
    """When each of so many starts was accepted, by its number; one after the other at a steady pace."""
    accepted: dict[int, float] = {}

    async def one(number: int) -> None:
        await asyncio.sleep(number / per_second)
        await clients[number % len(clients)].ask(request(ready, number))
        accepted[number] = time.perf_counter()

    await asyncio.gather(*map(one, range(1, starts + 1)))
    return accepted


async def main(ready: Ready, clients: int) -> None:
    everyone = await connected(ready, clients)
    say("connected")
    while line := await asyncio.to_thread(sys.stdin.readline):
        match line.split():
            case ["rush", seconds]:
                say("rushed", await rush(everyone, ready, float(seconds)))
            case ["pace", per_second, starts]:
                found = await pace(everyone, ready, float(per_second), int(starts))
                say("paced", msgspec.json.encode(found).decode())


if __name__ == "__main__":
    uvloop.run(main(msgspec.json.decode(sys.argv[1], type=Ready), int(sys.argv[2])))
