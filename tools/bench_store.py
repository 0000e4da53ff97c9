"""What a commit of the embedded store costs, as JSON lines: on the calling thread and on the writer's, by rows.

Variants take turns within every round, and each figure is the median of the rounds: a disk has its moods. `loop_lag` is
how long a commit keeps the event loop from anything else.
"""

import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Final

from uuid_utils import uuid7

from ropewalk.store.access import Batch
from ropewalk.store.rows import LogEntry, RunEntry
from ropewalk.store.sqlite import SqliteStore

ROUNDS: Final = 5
SECONDS: Final = 0.4
SIZES: Final = (1, 16, 64, 100, 400)
ENTRY: Final = b"x" * 300


class Figures:
    """What one variant has shown so far."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.p50: list[float] = []
        self.p99: list[float] = []
        self.lag: list[float] = []
        self.commits = 0


def batch_of(rows: int) -> Batch:
    """Log entries and ended runs, half each: what an engine writes most."""
    executions = [str(uuid7()) for _ in range((rows + 1) // 2)]
    entries = [LogEntry(execution, 1, ENTRY) for execution in executions]
    runs = [run_of(execution) for execution in executions[: rows // 2]]
    return [("insert_log", entries), ("upsert_run", runs)]


def run_of(execution: str) -> RunEntry:
    return RunEntry(str(uuid7()), execution, "a", None, 1, "SUCCESS", "local", None, 1, 2, None, None)


async def measure(store: SqliteStore, rows: int, figures: Figures) -> None:
    """One round: as many commits as fit, one after another, beside a loop that is watched."""
    lags: list[float] = []
    watcher = asyncio.create_task(watch(lags))
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while (began := time.perf_counter()) < end:
        batch = batch_of(rows)
        made = time.perf_counter()
        await store.write(batch)
        times.append(time.perf_counter() - made)
        end += made - began
        await asyncio.sleep(0)
    watcher.cancel()
    figures.commits += len(times)
    figures.rates.append(len(times) / sum(times))
    figures.p50.append(statistics.median(times) * 1000)
    figures.p99.append(sorted(times)[len(times) * 99 // 100] * 1000)
    figures.lag.append(sorted(lags)[len(lags) * 99 // 100] * 1000)


async def watch(lags: list[float]) -> None:
    """Notes how much later than asked the loop comes round."""
    while True:
        asked = time.perf_counter()
        await asyncio.sleep(0.001)
        lags.append(time.perf_counter() - asked - 0.001)


async def main() -> None:
    variants = {(place, rows): Figures() for rows in SIZES for place in ("inline", "thread")}
    with tempfile.TemporaryDirectory(dir=os.environ.get("ROPEWALK_BENCH_DIR")) as folder:
        store = await SqliteStore.open(os.path.join(folder, "bench.db"))
        for _ in range(ROUNDS):
            for (place, rows), figures in variants.items():
                store.inline_rows = rows if place == "inline" else 0
                await measure(store, rows, figures)
        await store.close()
    for (place, rows), figures in variants.items():
        for line in lines(f"commit_{rows}_{place}", rows, figures):
            print(json.dumps(line))


def lines(workload: str, rows: int, figures: Figures) -> Iterator[dict[str, object]]:
    rate = statistics.median(figures.rates)
    for metric, value, unit in (
        ("commits_per_s", rate, "1/s"),
        ("rows_per_s", rate * rows, "1/s"),
        ("latency_ms_p50", statistics.median(figures.p50), "ms"),
        ("latency_ms_p99", statistics.median(figures.p99), "ms"),
        ("loop_lag_ms_p99", statistics.median(figures.lag), "ms"),
    ):
        yield {"workload": workload, "metric": metric, "value": round(value, 3), "unit": unit, "n": figures.commits}


if __name__ == "__main__":
    asyncio.run(main())
