"""A process that executes many diamonds at once and says how fast it was and how much memory it took."""

import asyncio
import resource
import sys
import time
from pathlib import Path

import msgspec
import uvloop

from ropewalk.bench.contenders import PYTHON, Execute, opened
from ropewalk.bench.shapes import diamond
from ropewalk.engines.process import settle_in

_STATUS = Path("/proc/self/status")


async def at_once(execute: Execute, executions: int) -> float:
    """Request all of them together; the seconds until the last result."""
    began = time.perf_counter()
    await asyncio.gather(*[execute() for _ in range(executions)])
    return time.perf_counter() - began


def peak_rss_mb() -> float:
    """The most memory this process has held."""
    # Not `ru_maxrss` where it can be helped: Linux lets a child inherit the peak of the process that started it.
    if _STATUS.exists():
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


async def measure(contender: str, db: str, executions: int) -> dict[str, float]:
    """One round, after a warm-up of a fifth of it."""
    shape = diamond()
    async with opened(contender, db) as prepare:
        execute = await prepare(shape)
        await at_once(execute, max(1, executions // 5))
        rate = executions / await at_once(execute, executions)
    return {"executions_per_s": rate, "nodes_per_s": rate * shape.size, "peak_rss_mb": peak_rss_mb()}


if __name__ == "__main__":
    contender, db, executions = sys.argv[1:]
    # As a worker's process does; the floor has the same. What a program sets for itself, `ropewalk.open` has to do.
    if contender != PYTHON:
        settle_in()
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(measure(contender, db, int(executions)))))
