"""Bulk work against real servers: breakers that let it go through, and rate limits that several workers keep."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from ropewalk.core.breaker import BreakerState
from ropewalk.core.duration import SECOND
from ropewalk.core.events import ItemSucceeded, RunFailed, RunWaiting
from ropewalk.core.rate_limit import RateLimit
from ropewalk.core.waits import BreakerWait, RateLimitWait
from ropewalk.engines.settings import WorkerSettings
from ropewalk.service import Service
from ropewalk.store import breakers
from ropewalk.store.workers import listed
from ropewalk.wiring import Settings, open_service
from tests.faults.figures import Figure, Outcome
from tests.rates import shop as shops
from tests.rates.shop import Shop

LIMIT = 10
HERE = ("127.0.0.1",)
WORKERS = 3
SLACK = 0.0
"""How much sooner than in a second one request more than the limit may come (s)."""


def many(shop: Shop, count: int, **fields: Any) -> dict[str, Any]:
    """A map of so many GETs."""
    node = {"id": "get", "type": "http.request", "with": {"url": f"{shop.url}/{{{{ item }}}}"}}
    retry = {"maxAttempts": 5, "delay": "1s", "jitter": 0}
    return {"name": "many", "nodes": [{**node, "forEach": "{{ input }}", "retry": retry, **fields}]}


async def run(service: Service, document: dict[str, Any], value: Any = None) -> str:
    return await service.start(await service.save(document), value)


async def mostly_well(db: str, count: int) -> Outcome:
    """A server that fails 1 % of the requests: no breaker holds a run, and retries mend every failure."""
    async with shops.opened(lambda n: n % 100 == 7) as shop, open_service(Settings(db=db, allow_hosts=HERE)) as service:
        execution = await run(service, many(shop, count), list(range(count)))
        ended = await service.ended(execution)
        events = [event async for _, event in service.follow(execution)]
    held = [event for event in events if isinstance(event, RunWaiting)]
    mended = sum(isinstance(event, RunFailed) for event in events)
    broken = [f"{len(held)} runs were held"] if held else []
    results = [event.output["status"] for event in events if isinstance(event, ItemSucceeded)]
    if ended.state != "SUCCESS" or results != [200] * count:
        broken.append(f"it ended {ended.state}, with other results than {count} times 200")
    if mended != sum(n % 100 == 7 for n in range(len(shop.arrivals))):
        broken.append(f"{mended} failures were recorded, of {len(shop.arrivals)} requests")
    figures = [Figure("held_by_a_breaker", len(held), "runs", count), Figure("mended", mended, "failures", count)]
    return Outcome("mostly-well", figures, broken)


async def all_down(db: str, count: int) -> Outcome:
    """A server that fails every request: its breaker opens within 20 calls."""
    async with shops.opened(lambda _: True) as shop, open_service(Settings(db=db, allow_hosts=HERE)) as service:
        execution = await run(service, many(shop, count), list(range(count)))
        async for _, event in service.follow(execution):
            if isinstance(event, RunWaiting) and isinstance(event.wait, BreakerWait):
                break
        calls = len(shop.arrivals)
        await service.engine.settled()
        known = await breakers.get(service.store, "default", f"http.request {shop.url}")
        await service.cancel(execution)
        await service.ended(execution)
    broken = [f"it opened after {calls} calls"] if calls > 20 else []
    broken += [f"it is {known.state}"] if known.state is not BreakerState.OPEN else []
    seen = Figure("failed_when_it_opened", known.failure_count, "calls", known.call_count)
    return Outcome("all-down", [Figure("calls_until_open", calls, "calls", count), seen], broken)


# Rate limits


@asynccontextmanager
async def workers(db: str, folder: Path, port: int, count: int) -> AsyncIterator[list[Process]]:
    """So many processes of `ropewalk worker` whose configuration names one limit, of the host."""
    file = folder / "ropewalk.yaml"
    limit = {"limit": LIMIT, "per": "1s", "hosts": [f"127.0.0.1:{port}"]}
    file.write_text(json.dumps({"db": db, "allowHosts": HERE, "rateLimits": {"shop": limit}}), encoding="utf-8")
    found = [await _worker(file) for _ in range(count)]
    try:
        yield found
    finally:
        for each in found:
            if each.returncode is None:
                each.send_signal(signal.SIGTERM)
        await asyncio.gather(*(each.wait() for each in found))


async def _worker(file: Path) -> Process:
    command = (sys.executable, "-m", "ropewalk", "worker", "--config", str(file), "--drain", "1")
    return await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL)


async def are_there(service: Service, count: int) -> None:
    """Wait until so many workers take executions."""
    async with asyncio.timeout(60):
        while sum(each.slots > 0 for each in await listed(service.store)) < count:
            await asyncio.sleep(0.05)


async def limited(db: str, folder: Path, seconds: int, *, kills: bool = False, slack: float = SLACK) -> Outcome:
    """Ten requests a second to one host by three workers, of which one is killed half-way if wanted."""
    calls = LIMIT * seconds
    settings = Settings(
        db=db,
        allow_hosts=HERE,
        worker=WorkerSettings(claims=False, hands=0, executions=0, rate_limits={"shop": RateLimit(LIMIT, SECOND)}),
    )
    folder.mkdir(parents=True, exist_ok=True)
    async with shops.opened(lambda _: False) as shop, open_service(settings) as service:
        version = await service.save({**many(shop, 1), "name": "one"})
        each = [[n] for n in range(calls)]
        async with workers(db, folder, shop.port, WORKERS) as crew:
            await are_there(service, WORKERS)
            ids = [await service.start(version, value) for value in each]
            if kills:
                await asyncio.sleep(seconds / 2)
                crew[0].kill()
            ended = Counter([str((await service.ended(execution)).state) for execution in ids])
        slots = sorted([slot for execution in ids for slot in await _slots(service, execution)])
    return judged(shop.arrivals, slots, ended, calls, slack, kills=kills)


async def _slots(service: Service, execution: str) -> list[int]:
    """The slots that its attempts were parked for, used or missed."""
    events = [event async for _, event in service.follow(execution)]
    waits = [event.wait for event in events if isinstance(event, RunWaiting)]
    return [wait.slot for wait in waits if isinstance(wait, RateLimitWait) and wait.slot is not None]


def judged(arrivals: list[float], slots: list[int], ended: Counter[str], calls: int, slack: float, *,
           kills: bool) -> Outcome:  # fmt: skip
    """The slots as the logs have them, and the rate that the server saw."""
    arrivals = sorted(arrivals)
    spans = [later - earlier for earlier, later in zip(arrivals, arrivals[LIMIT:], strict=False)]
    took = arrivals[-1] - arrivals[0]
    most = max(sum(at <= other < at + 1 for other in arrivals[i : i + 3 * LIMIT]) for i, at in enumerate(arrivals))
    broken = [f"{LIMIT + 1} requests came within {min(spans):.3f} s"] if min(spans) < 1 - slack else []
    closest = min((later - earlier for earlier, later in pairwise(slots)), default=SECOND)
    if closest < SECOND // LIMIT:
        broken.append(f"two slots were {closest} µs apart")
    if ended != Counter({"SUCCESS": calls}):
        broken.append(f"the executions ended {dict(ended)}")
    late = [] if kills or took <= 1.1 * calls / LIMIT + 2 else [f"{calls} calls took {took:.1f} s"]
    figures = [
        Figure("requests", len(arrivals), "requests", calls),
        Figure("closest_slots", closest / SECOND, "s", len(slots)),
        Figure("requests_per_s", (len(arrivals) - 1) / took, "1/s", calls),
        Figure("most_in_any_second", most, "requests", calls),
        Figure("shortest_time_of_eleven", min(spans), "s", len(spans)),
    ]
    return Outcome("limited-with-a-kill" if kills else "limited", figures, broken, late)
