"""Two thousand slow clients, and the requests of all others."""

import asyncio
import time
from pathlib import Path

import httpx2

from ropewalk.bench.figures import percentile
from tests.api.servers import UpServer, up

SLOW = 2_000
LONGEST = 30.0
DRIP_EVERY = 1.0
HEAD = b"POST /api/v1/workflow/executions/start HTTP/1.1\r\nhost: x\r\n"
KINDS = (
    (HEAD, b"a: b\r\n"),
    (HEAD + b"content-type: application/json\r\ncontent-length: 100000\r\n\r\n", b" "),
    (b"", None),
    (b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", None),
)


class Slow(asyncio.Protocol):
    """A connection that sends a drop now and then, and knows when it was cut."""

    def __init__(self, kind: int) -> None:
        self.beginning, self.drop = KINDS[kind]
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.at = transport, time.perf_counter()
        if self.beginning:
            transport.write(self.beginning)
        self.drip()

    def drip(self) -> None:
        if self.drop is not None and not self.lost.done():
            self.transport.write(self.drop)
            asyncio.get_running_loop().call_later(DRIP_EVERY, self.drip)

    def connection_lost(self, _: Exception | None) -> None:
        self.lost.set_result(time.perf_counter() - self.at)


async def besiege(server: UpServer) -> list[float]:
    """How long each of them was let stay (s)."""
    loop = asyncio.get_running_loop()
    slow = []
    for number in range(SLOW):
        made = await loop.create_connection(lambda kind=number % 4: Slow(kind), "127.0.0.1", server.port)  # type: ignore[misc]
        slow.append(made[1].lost)
    return await asyncio.wait_for(asyncio.gather(*slow), LONGEST + 15)


async def ask(server: UpServer, until: asyncio.Future[list[float]]) -> list[float]:
    """How long ordinary requests take meanwhile (ms)."""
    taken = []
    async with httpx2.AsyncClient(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}) as client:
        while not until.done():
            began = time.perf_counter()
            answer = await client.get("/api/v1/workflow/executions")
            taken.append((time.perf_counter() - began) * 1_000)
            assert answer.status_code == 200
            await asyncio.wait((until,), timeout=0.05)
    return sorted(taken)


async def test_two_thousand_slow_connections_are_closed_in_time_and_delay_no_other(tmp_path: Path):
    with up(tmp_path) as server:
        siege = asyncio.ensure_future(besiege(server))
        taken = await ask(server, siege)
        stayed = siege.result()

    figures = f"stayed at most {max(stayed):.1f} s; {len(taken)} others' requests: p95 {percentile(taken, 95):.0f} ms"
    print(f"{SLOW} slow connections: {figures}")  # noqa: T201  # for people: how fast a machine is, is no guarantee
    assert len(stayed) == SLOW
    assert max(stayed) <= LONGEST
