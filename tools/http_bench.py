"""What a call over HTTP costs beside what it is made of: `python -m tools.http_bench [--executions 1000] [--rounds 5]`.

Three things in one run, one after the other in each round, against one server in a process of its own:

- ours: so many executions of one `http.request`, each recorded as any other
- bare: the same calls by aiohttp alone, from one session, the body read as JSON
- engine: so many executions of a `noop`, which is what recording costs

The ratio is ours ÷ (bare + engine); at most 1.5 is wanted, and the exit code is 1 if it is more. Each counts with its
best round, since other processes of the machine make the others slower; the medians are shown beside. So is the same
ratio of processor time, in which waiting for the server and for the disk does not count.
`--profile` prints where one round of ours spends its time.
"""

import argparse
import asyncio
import cProfile
import gc
import json
import multiprocessing
import pstats
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import uvloop
from aiohttp import web

from ropewalk.local import LocalEngine
from ropewalk.nodes.base import Registry
from ropewalk.wiring import Settings, open_service

BAR: Final = 1.5
AT_ONCE: Final = 1000
"""How many calls are under way at a time, ours and bare alike."""
BODY: Final = {"id": "o-17", "total": 129.5, "customer": {"name": "Ada", "city": "London"}, "lines": ["pen", "ink"]}


def serve(ready: Connection) -> None:
    """Answers every request with the same JSON, until the process is stopped."""
    content = json.dumps(BODY).encode()

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(body=content, content_type="application/json")

    async def forever() -> None:
        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ready.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(forever())


def document(node: dict[str, Any]) -> dict[str, Any]:
    return {"ropewalk": 1, "name": node["type"], "nodes": [{"id": "a", **node}]}


class Took(NamedTuple):
    """How long something took, and how long the processor worked for it (s)."""

    wall: float
    processor: float


async def timed(count: int, once: Callable[[], Awaitable[object]]) -> Took:
    """How long so many take, some at a time."""
    left = iter(range(count))

    async def hand() -> None:
        for _ in left:
            await once()

    began, worked = time.perf_counter(), time.process_time()
    await asyncio.gather(*(hand() for _ in range(AT_ONCE)))
    return Took(time.perf_counter() - began, time.process_time() - worked)


async def executed(engine: LocalEngine, workflow: dict[str, Any]) -> None:
    execution = await engine.start(workflow)
    await execution.result()


async def fetched(session: aiohttp.ClientSession, url: str) -> None:
    async with session.get(url) as response:
        body = await response.json()
        _ = {"status": response.status, "headers": dict(response.headers), "body": body}


async def measure(url: str, count: int, rounds: int, is_profiled: bool) -> dict[str, list[Took]]:
    """What each round of each of the three took."""
    times: dict[str, list[Took]] = {"bare": [], "engine": [], "ours": []}
    calls, nothing = document({"type": "http.request", "with": {"url": url}}), document({"type": "noop"})
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(db=str(Path(folder) / "bench.db"), allow_hosts=("127.0.0.1",))
        async with (
            open_service(settings, Registry.builtin()) as service,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=512)) as session,
        ):
            engine = LocalEngine(service)
            work: dict[str, Callable[[], Awaitable[object]]] = {
                "bare": lambda: fetched(session, url),
                "engine": lambda: executed(engine, nothing),
                "ours": lambda: executed(engine, calls),
            }
            for once in work.values():
                await timed(AT_ONCE, once)
            for _ in range(rounds):
                for name, once in work.items():
                    times[name].append(await timed(count, once))
            if is_profiled:
                await profiled(count, work["ours"])
    return times


async def profiled(count: int, once: Callable[[], Awaitable[object]]) -> None:
    profile = cProfile.Profile()
    profile.enable()
    await timed(count, once)
    profile.disable()
    pstats.Stats(profile).sort_stats("cumtime").print_stats(60)


def ratio_of(found: dict[str, list[float]], chosen: Callable[[list[float]], float]) -> float:
    """What ours takes of what it is made of."""
    return chosen(found["ours"]) / (chosen(found["bare"]) + chosen(found["engine"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    gc.set_threshold(50_000, 20, 50)  # as every command sets it
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{here.recv()}/orders"
        # The loop that commands and servers run on, for all three.
        found = uvloop.run(measure(url, arguments.executions, arguments.rounds, arguments.profile))
    finally:
        server.terminate()
        server.join()
    walls = {name: [each.wall for each in rounds] for name, rounds in found.items()}
    processor = {name: [each.processor for each in rounds] for name, rounds in found.items()}
    print(f"{'':>8}  {'best':>8}  {'median':>8}  {'processor':>9}")
    for name in found:
        row = (min(walls[name]), statistics.median(walls[name]), statistics.median(processor[name]))
        print("{:>8}  {:5.0f} ms  {:5.0f} ms  {:6.0f} ms".format(name, *(each * 1_000 for each in row)))
    best, median, worked = (
        ratio_of(walls, min), ratio_of(walls, statistics.median), ratio_of(processor, statistics.median)
    )  # fmt: skip
    print(f"   ratio  {best:8.2f}  {median:8.2f}  {worked:9.2f}   (at most {BAR} is wanted)")
    return 0 if best <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
