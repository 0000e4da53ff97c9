"""Simulated histories in bulk, or one seed with its story.

python -m tools.simulate --histories 50000             # exit 1 if any history breaks a promise
python -m tools.simulate --seed 4711                   # replay one of them, step by step
python -m tools.simulate --bugs                        # how many histories each seeded bug survives
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from msgspec import Struct

from tests.simulator import simulate
from tests.simulator.bugs import BUGS
from tests.simulator.hunt import MOST_HISTORIES, hunt

BATCH = 500
MOST_SHOWN = 5


class Batch(Struct):
    """What a run of neighbouring seeds gave."""

    count: int
    events: int
    sometimes: Counter[str]
    failures: list[tuple[int, list[str]]]


def run_batch(first: int, count: int) -> Batch:
    """Simulate `count` seeds from `first` on."""
    batch = Batch(count, 0, Counter(), [])
    for seed in range(first, first + count):
        outcome = simulate(seed)
        batch.events += outcome.events
        batch.sometimes += outcome.sometimes
        if outcome.violations:
            batch.failures.append((seed, outcome.violations))
    return batch


def run_all(first: int, histories: int, jobs: int) -> Iterator[Batch]:
    """Every batch, in order, by so many processes."""
    starts = range(first, first + histories, BATCH)
    counts = [min(BATCH, first + histories - start) for start in starts]
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_batch, starts, counts)


def campaign(first: int, histories: int, jobs: int) -> int:
    """Simulate, show progress, and say what happened; 1 if a promise was broken."""
    began = time.monotonic()
    total = Batch(0, 0, Counter(), [])
    for batch in run_all(first, histories, jobs):
        total.count += batch.count
        total.events += batch.events
        total.sometimes += batch.sometimes
        total.failures += batch.failures
        _show_progress(total, histories)
    _print_summary(total, time.monotonic() - began)
    for seed, violations in total.failures[:MOST_SHOWN]:
        _print_failure(seed, violations)
    return 1 if total.failures else 0


def _show_progress(total: Batch, histories: int) -> None:
    if sys.stderr.isatty() or total.count % 10_000 == 0:
        print(f"{total.count} of {histories} histories, {len(total.failures)} violated", file=sys.stderr, flush=True)


def _print_summary(total: Batch, seconds: float) -> None:
    _print_figure("histories", total.count, "histories", total.count)
    _print_figure("violated", len(total.failures), "histories", total.count)
    _print_figure("rate", round(total.count / seconds, 1), "histories/s", total.count)
    _print_figure("events", total.events, "events", total.count)
    for what, times in sorted(total.sometimes.items()):
        _print_figure(f"sometimes: {what}", times, "times", total.count)


def _print_figure(metric: str, value: float, unit: str, n: int) -> None:
    print(json.dumps({"workload": "simulate", "metric": metric, "value": value, "unit": unit, "n": n}))


def _print_failure(seed: int, violations: list[str]) -> None:
    print(f"\nseed {seed} breaks a promise; replay it with: python -m tools.simulate --seed {seed}", file=sys.stderr)
    for violation in violations[:MOST_SHOWN]:
        print(f"  {violation}", file=sys.stderr)


def replay(seed: int) -> int:
    """Tell the story of one seed."""
    outcome = simulate(seed, is_traced=True)
    for line in outcome.trace:
        print(line)
    for violation in outcome.violations:
        print(f"VIOLATION {violation}")
    print(f"seed {seed}: {outcome.events} events, {len(outcome.violations)} violations")
    return 1 if outcome.violations else 0


def survivals() -> int:
    """How many histories each seeded bug took to be caught; 1 if one was not."""
    missed = 0
    for bug in BUGS:
        caught = hunt(bug)
        missed += caught is None
        survived = MOST_HISTORIES if caught is None else caught.histories
        _print_figure(f"{'MISSED' if caught is None else 'caught'}: {bug.name}", survived, "histories", survived)
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.simulate", description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=50_000, help="how many seeds to simulate")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=2, help="processes to share the work")
    parser.add_argument("--seed", type=int, help="replay this one, with its story")
    parser.add_argument("--bugs", action="store_true", help="plant every seeded bug and see it caught")
    options = parser.parse_args()
    if options.seed is not None:
        return replay(options.seed)
    return survivals() if options.bugs else campaign(options.first_seed, options.histories, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
