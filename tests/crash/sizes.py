"""Large things, each in a process of its own: `python -m tests.crash.sizes <what> <database> …` prints what it took.

A figure of memory is worth something only if nothing else is in the process that is measured.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ropewalk.core.definition import Limits
from ropewalk.core.duration import SECOND
from ropewalk.core.events import NodeSucceeded, RunWaiting
from ropewalk.core.waits import Timer
from ropewalk.engines.base import Ended, Version
from ropewalk.service import Service, reading
from ropewalk.wiring import Settings, open_service
from tests.store.samples import ROOT, ask

LIMITS: Final = Limits(nodes=1_000_000, edges=2_000_000)
BATCH: Final = 1_000
SAMPLE: Final = 100
PATIENCE: Final = 240.0
HOURS: Final = "6h"
SOON, SPREAD = 12.0, 4.0
"""The sample is due so many seconds after its start, the last of it so many later: long enough to be parked."""

NAP: Final = {
    "ropewalk": 1,
    "name": "nap",
    "nodes": [{"id": "nap", "type": "delay", "with": {"for": "{{ input }}"}}, {"id": "after", "type": "noop"}],
    "edges": [{"from": "nap", "to": "after"}],
}

Figures = dict[str, Any]


def fan_out(count: int) -> dict[str, Any]:
    """A node, so many behind it at once, and one that waits for them all."""
    middle = [f"n{number}" for number in range(count)]
    return {
        "ropewalk": 1,
        "name": "fan_out",
        "nodes": [{"id": name, "type": "noop"} for name in ("split", *middle, "join")],
        "edges": [edge for name in middle for edge in ({"from": "split", "to": name}, {"from": name, "to": "join"})],
    }


def chain(count: int) -> dict[str, Any]:
    """So many nodes, one behind the other."""
    return {
        "ropewalk": 1,
        "name": "chain",
        "nodes": [{"id": f"n{number}", "type": "noop"} for number in range(count)],
        "edges": [{"from": f"n{number - 1}", "to": f"n{number}"} for number in range(1, count)],
    }


def memory(what: str = "VmRSS") -> float:
    """The memory of this process in MiB: what it has now, or had at most (`VmHWM`)."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(f"{what}:"))
    return round(int(line.split()[1]) / 1024, 1)


async def execute(database: str, shape: str, count: str) -> Figures:
    """One execution of so many nodes, from start to end."""
    document = {"fan_out": fan_out, "chain": chain}[shape](int(count))
    async with open_service(Settings(db=database, limits=LIMITS)) as service:
        version = await service.save(document)
        began = time.perf_counter()
        execution = await service.start(version)
        ended = await service.ended(execution)
        seconds = time.perf_counter() - began
        runs = ask(database, "select count(*) from run where state = 'SUCCESS'")[0][0]
    return {"state": str(ended.state), "runs": runs, "seconds": round(seconds, 3), "rss_mib": memory("VmHWM")}


async def park(database: str, count: str) -> Figures:
    """So many executions that wait for hours, and a sample of others that are due soon."""
    async with open_service(Settings(db=database)) as service:
        version = await service.save(NAP)
        empty, began = memory(), time.perf_counter()
        for first in range(0, int(count), BATCH):
            await _start(service, version, [HOURS] * min(BATCH, int(count) - first))
        await _all_parked(service, int(count))
        seconds, full = time.perf_counter() - began, memory("VmHWM")
        sample = await _start(service, version, [SOON + SPREAD * each / SAMPLE for each in range(SAMPLE)])
        await _all_parked(service, int(count) + SAMPLE)
    return {"rss_empty_mib": empty, "rss_mib": full, "seconds": round(seconds, 3), "sample": sample}


async def _start(service: Service, version: Version, naps: list[Any]) -> list[str]:
    return await asyncio.gather(*(service.start(version, input=nap) for nap in naps))


async def _all_parked(service: Service, count: int) -> None:
    """Wait until every execution is a row and nothing else."""
    async with asyncio.timeout(60):
        while ask(service.store.path, "select count(*) from live where owner is null and wake_at > 0")[0][0] < count:
            await service.engine.settled()


async def wake(database: str, *sample: str) -> Figures:
    """Hold everything that is parked, and see the sample wake."""
    began = time.perf_counter()
    async with open_service(Settings(db=database)) as service:
        opened = time.perf_counter() - began
        ended = await asyncio.gather(*map(service.ended, sample))
        late = [await _lateness(service, each) for each in ended]
        parked = ask(database, "select count(*) from live where owner is null")[0][0]
    return {
        "parked": parked,
        "opened_in": round(opened, 3),
        "rss_mib": memory("VmHWM"),
        "woken": sum(each.state == "SUCCESS" for each in ended),
        "late_first": min(late),
        "late_p50": sorted(late)[len(late) // 2],
        "late_last": max(late),
    }


async def _lateness(service: Service, ended: Ended) -> float:
    """How many seconds after it was due the wait was over."""
    story = await reading.recorded(service.store, ended.execution)
    waiting = next(event for event in story.events if isinstance(event, RunWaiting))
    over = next(event for event in story.events if isinstance(event, NodeSucceeded))
    assert isinstance(waiting.wait, Timer)
    return round((over.at - waiting.wait.due) / SECOND, 4)


def measure(what: str, *arguments: object) -> Figures:
    """The figures of one task, from a process that has nothing else to do; it is killed if it takes far too long."""
    command = [sys.executable, "-m", "tests.crash.sizes", what, *map(str, arguments)]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=PATIENCE)
    figures: Figures = json.loads(answer.stdout)
    return figures


TASKS: Final[dict[str, Callable[..., Awaitable[Figures]]]] = {"execute": execute, "park": park, "wake": wake}


async def main(what: str, *arguments: str) -> None:
    figures = await TASKS[what](*arguments)
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
