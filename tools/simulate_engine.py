"""Simulated histories of the real engine in bulk, or one seed with its story.

python -m tools.simulate_engine --histories 2000       # exit 1 if any history breaks a promise
python -m tools.simulate_engine --seed 4711            # replay one of them
python -m tools.simulate_engine --bugs                 # how many histories each seeded bug survives
python -m tools.simulate_engine --fleet …              # the same with several workers on a shared store
"""

import argparse
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from msgspec import Struct

from tests.engines.simulation import Outcome, bugs, fleet_bugs, simulate
from tests.engines.simulation.fleet_history import simulate_fleet
from tests.simulator.hunt import Caught

MOST_SHOWN = 5
CHUNK = 20


class Kind(Struct, frozen=True):
    """What is simulated, and what is planted into it."""

    flag: str
    simulate: Callable[[int], Outcome]
    bugs: tuple[Any, ...]
    hunt: Callable[[Any], Caught | None]
    most_histories: int


ALONE = Kind("", simulate, bugs.BUGS, bugs.hunt, bugs.MOST_HISTORIES)
FLEET = Kind("--fleet ", simulate_fleet, fleet_bugs.BUGS, fleet_bugs.hunt_fleet, fleet_bugs.MOST_HISTORIES)


def outcomes(kind: Kind, first: int, histories: int, jobs: int) -> Iterator[Outcome]:
    """What every seed gave, in order, by so many processes."""
    with ProcessPoolExecutor(jobs, initializer=_be_quiet) as pool:
        yield from pool.map(kind.simulate, range(first, first + histories), chunksize=CHUNK)


def campaign(kind: Kind, first: int, histories: int, jobs: int) -> int:
    """Simulate and say what happened; 1 if a promise was broken."""
    began = time.monotonic()
    sometimes: Counter[str] = Counter()
    broken: list[Outcome] = []
    for outcome in outcomes(kind, first, histories, jobs):
        sometimes += outcome.sometimes
        broken += [outcome] if outcome.violations else []
    _print_figure("histories", histories, "histories", histories)
    _print_figure("violated", len(broken), "histories", histories)
    _print_figure("rate", round(histories / (time.monotonic() - began), 1), "histories/s", histories)
    for what, times in sorted(sometimes.items()):
        _print_figure(f"sometimes: {what}", times, "times", histories)
    for outcome in broken[:MOST_SHOWN]:
        _print_failure(kind, outcome)
    return 1 if broken else 0


def _print_figure(metric: str, value: float, unit: str, n: int) -> None:
    print(json.dumps({"workload": "simulate_engine", "metric": metric, "value": value, "unit": unit, "n": n}))


def _print_failure(kind: Kind, outcome: Outcome) -> None:
    replaying = f"python -m tools.simulate_engine {kind.flag}--seed {outcome.seed}"
    print(f"\nseed {outcome.seed} breaks a promise; replay it with: {replaying}", file=sys.stderr)
    for violation in outcome.violations[:MOST_SHOWN]:
        print(f"  {violation}", file=sys.stderr)


def replay(kind: Kind, seed: int) -> int:
    """Tell the story of one seed."""
    outcome = kind.simulate(seed)
    for line in outcome.trace:
        print(line)
    for violation in outcome.violations:
        print(f"VIOLATION {violation}")
    print(f"seed {seed}: {len(outcome.violations)} violations")
    return 1 if outcome.violations else 0


def survivals(kind: Kind) -> int:
    """How many histories each seeded bug took to be caught; 1 if one was not."""
    missed = 0
    for bug in kind.bugs:
        caught = kind.hunt(bug)
        missed += caught is None
        survived = kind.most_histories if caught is None else caught.histories
        _print_figure(f"{'MISSED' if caught is None else 'caught'}: {bug.name}", survived, "histories", survived)
    return 1 if missed else 0


def _be_quiet() -> None:
    """The engine's complaints about its store are what is simulated, and no news; those about itself are collected."""
    engine = logging.getLogger("ropewalk")
    engine.propagate = False
    engine.addHandler(logging.NullHandler())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.simulate_engine", description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=2_000, help="how many seeds to simulate")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=2, help="processes to share the work")
    parser.add_argument("--seed", type=int, help="replay this one, with its story")
    parser.add_argument("--fleet", action="store_true", help="several workers on a shared store")
    parser.add_argument("--bugs", action="store_true", help="plant every seeded bug and see it caught")
    options = parser.parse_args()
    _be_quiet()
    kind = FLEET if options.fleet else ALONE
    if options.seed is not None:
        return replay(kind, options.seed)
    return survivals(kind) if options.bugs else campaign(kind, options.first_seed, options.histories, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
