"""Whether history costs anything: W1 and the claim with a million finished executions in the store, against none.

python -m tools.million                                    # PostgreSQL, a million; bar: 1.2 × of the empty store
python -m tools.million --store both --size 100000
python -m tools.million --db postgres://user@host/database # in schemas of its own there

Prints JSON lines, then how the database carries out the statements that must not get slower.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack

from ropewalk.bench import native, stores
from ropewalk.bench.claimer import claims
from ropewalk.bench.contenders import NATIVE
from ropewalk.bench.figures import percentile
from ropewalk.bench.floor import open_store
from ropewalk.bench.rounds import timed
from ropewalk.bench.shapes import single
from ropewalk.bench.stores import POSTGRES, STORES, Stores
from ropewalk.bench.waiting import open_to_all
from tools import million_plans, million_rows

BAR = 1.2
ROUNDS = 7
EXECUTIONS = 100
CLAIMS = 60
WORKSPACES = 8
PATIENCE = 120.0
PLACES = ("empty", "full")
Medians = dict[str, list[float]]


def measure(kind: Stores, size: int) -> bool:
    """Fill one store, measure both, print all; whether the bar is reached."""
    with kind.fresh() as empty, kind.fresh() as full:
        began = time.perf_counter()
        asyncio.run(million_rows.make(full, size))
        show(kind, "made_in", time.perf_counter() - began, "s", size)
        places = dict(zip(PLACES, (empty, full), strict=True))
        latencies = asyncio.run(executed(places))
        claimed = asyncio.run(contended(places))
        ratios = [*ratio(kind, "w1_ms_p50", latencies, size), *ratio(kind, "claim_ms_p50", claimed, size)]
        for line in asyncio.run(million_plans.shown(full)):
            print(line)
    return max(ratios) <= BAR


async def executed(places: dict[str, str]) -> Medians:
    """Rounds of one-node executions, in turn on either store."""
    medians: Medians = {name: [] for name in places}
    async with AsyncExitStack() as stack:
        engines = {
            name: await (await stack.enter_async_context(native.opened(db)))(single()) for name, db in places.items()
        }
        for execute in engines.values():
            await timed(execute, EXECUTIONS, PATIENCE)
        for _ in range(ROUNDS):
            for name, execute in engines.items():
                times = await timed(execute, EXECUTIONS, PATIENCE)
                medians[name].append(statistics.median(times) * 1000)
    return medians


async def contended(places: dict[str, str]) -> Medians:
    """Rounds of claims, in turn on either store."""
    medians: Medians = {name: [] for name in places}
    opened = {name: await open_store(db) for name, db in places.items()}
    try:
        for store in opened.values():
            for place in range(WORKSPACES):
                await open_to_all(store, f"tenant-{place}", (ROUNDS + 1) * CLAIMS // WORKSPACES + 1)
            await claims(store, CLAIMS)
        for _ in range(ROUNDS):
            for name, store in opened.items():
                medians[name].append(percentile(sorted(await claims(store, CLAIMS)), 50))
    finally:
        for store in opened.values():
            await store.close()
    return medians


def ratio(kind: Stores, metric: str, medians: Medians, size: int) -> Iterator[float]:
    empty, full = (statistics.median(medians[name]) for name in PLACES)
    show(kind, f"{metric}_empty", empty, "ms", 0)
    show(kind, f"{metric}_full", full, "ms", size)
    show(kind, f"{metric}_ratio", full / empty, f"× (at most {BAR})", size)
    yield full / empty


def show(kind: Stores, metric: str, value: float, unit: str, n: int) -> None:
    line = {"workload": "million", "metric": metric, "value": round(value, 3), "unit": unit, "n": n}
    print(json.dumps(line | {"store": kind.name, "engine": NATIVE}, ensure_ascii=False), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.million", description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=[*STORES, "both"], default=POSTGRES)
    parser.add_argument("--size", type=int, default=1_000_000, help="how many finished executions")
    parser.add_argument("--db", help="a PostgreSQL to use; without it one is started")
    parser.add_argument("--dir", default=".", help="on whose disk to measure")
    options = parser.parse_args()
    is_reached = True
    for name in STORES if options.store == "both" else (options.store,):
        with stores.opened(name, options.dir, options.db) as kind:
            is_reached &= measure(kind, options.size)
    return 0 if is_reached else 1


if __name__ == "__main__":
    sys.exit(main())
