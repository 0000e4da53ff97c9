"""What both doors over HTTP have in common: `ropewalk up` and `ropewalk worker` as people start them, `AsyncClient`.

The limits on how often one caller may come are off: one caller stands for many here.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from subprocess import DEVNULL, PIPE, Popen
from typing import Final

import uvloop
from msgspec import Struct

from ropewalk.bench.contenders import Broken
from ropewalk.bench.figures import Round, percentile
from ropewalk.bench.processes import LIMIT
from ropewalk.bench.rounds import latency, timed
from ropewalk.bench.shapes import Shape, diamond, single
from ropewalk.client import AsyncClient
from ropewalk.store.address import is_shared

IN_FLIGHT: Final = 64
NODE: Final = "noop"
UNLIMITED: Final = {"ROPEWALK_ACCESS_RATE_PER_ACTOR": "0", "ROPEWALK_ACCESS_RATE_PER_ADDRESS": "0"}


class Served(Struct, frozen=True):
    """Where a server is, and a token that opens it."""

    url: str
    token: str


@contextmanager
def serving(db: str, *options: str, workers: int = 0) -> Iterator[Served]:
    """`ropewalk up` with these options on this store, and so many `ropewalk worker` beside it; gone at the end."""
    # The processes run in a folder of their own.
    db = db if is_shared(db) else os.path.abspath(db)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ropewalk-bench-"))
        server = stack.enter_context(_running(folder, "up", "--db", db, "--json", "--port", "0", *options))
        served = _introduced(server)
        for _ in range(workers):
            stack.enter_context(_running(folder, "worker", "--db", db, "--json"))
        yield served


@contextmanager
def _running(folder: str, *words: str) -> Iterator["Popen[str]"]:
    command = [sys.executable, "-m", "ropewalk", *words]
    environment = {**os.environ, **UNLIMITED, "XDG_RUNTIME_DIR": folder, "XDG_CONFIG_HOME": folder}
    with Popen(command, cwd=folder, env=environment, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            forced = threading.Timer(LIMIT, process.kill)
            forced.start()
            process.wait()
            forced.cancel()


def _introduced(server: "Popen[str]") -> Served:
    assert server.stdout is not None
    for line in server.stdout:
        said = json.loads(line)
        if "url" in said:
            # Nothing of what it says later is read; a full pipe would hold it up.
            threading.Thread(target=server.stdout.read, daemon=True).start()
            return Served(said["url"], said["token"])
    raise Broken("the server ended before it said where it is")


def one_by_one(served: Served, repeats: int, limit: float) -> Round:
    """W1: one node, each from the request to the result."""
    return latency(single(), uvloop.run(_one_by_one(served, repeats, limit)))


async def _one_by_one(served: Served, repeats: int, limit: float) -> Sequence[float]:
    async with AsyncClient(served.url, served.token) as client:
        shape = await _saved(client, single())
        for _ in range(max(5, repeats // 5)):
            await _execute(client, shape)
        return await timed(lambda: _execute(client, shape), repeats, limit)


def notices(served: Served, repeats: int, limit: float) -> Round:
    """From the end of an execution, as its worker dates it, until the caller who waits for it elsewhere has it: the
    last commit, the notice of it, the reading and the answer."""
    times = sorted(uvloop.run(_notices(served, repeats, limit)))
    return {"notice_ms_p95": percentile(times, 95)}


async def _notices(served: Served, repeats: int, limit: float) -> list[float]:
    async with AsyncClient(served.url, served.token) as client:
        shape = await _saved(client, single())
        try:
            async with asyncio.timeout(limit):
                return [await _notice(client, shape) for _ in range(repeats)]
        except TimeoutError:
            raise Broken(f"{repeats} executions did not end within {limit:g} s") from None


async def _notice(client: AsyncClient, shape: Shape) -> float:
    """One in milliseconds. The worker's time is the database's, which is on this machine."""
    execution = await client.start(shape.name)
    ended = await execution.wait()
    heard_at = time.time()
    if (finished_at := ended["finishedAt"]) is None:
        raise Broken(f"an execution did not end: it is {ended['state']}")
    return (heard_at - datetime.fromisoformat(finished_at).timestamp()) * 1000


def at_once(served: Served, executions: int, limit: float) -> Round:
    """W4: so many a → b, c, d → e, 64 of them in flight at any moment."""
    rate = executions / uvloop.run(_at_once(served, executions, limit))
    return {"executions_per_s": rate, "nodes_per_s": rate * diamond().size}


async def _at_once(served: Served, executions: int, limit: float) -> float:
    async with AsyncClient(served.url, served.token) as client:
        shape = await _saved(client, diamond())
        try:
            async with asyncio.timeout(limit):
                await _flight(client, shape, max(IN_FLIGHT, executions // 5))
                began = time.perf_counter()
                await _flight(client, shape, executions)
                return time.perf_counter() - began
        except TimeoutError:
            raise Broken(f"{executions} executions did not end within {limit:g} s") from None


async def _flight(client: AsyncClient, shape: Shape, executions: int) -> None:
    left = iter(range(executions))

    async def fly() -> None:
        for _ in left:
            await _execute(client, shape)

    await asyncio.gather(*[fly() for _ in range(IN_FLIGHT)])


async def _saved(client: AsyncClient, shape: Shape) -> Shape:
    await client.save(shape.document(NODE), publish=True)
    return shape


async def _execute(client: AsyncClient, shape: Shape) -> None:
    """Once, as a program does it; anything but a success is raised by the client itself."""
    execution = await client.start(shape.name)
    await execution.result()
