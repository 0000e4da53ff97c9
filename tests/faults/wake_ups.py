"""Very many parked executions that are due in the same second, on both stores."""

import asyncio
import tempfile

from ropewalk.bench import stores
from ropewalk.bench.stores import STORES
from tests.faults.figures import Figure, Outcome
from tools.wakes import BAR, measure


def wake_ups(size: int) -> Outcome:
    """So many waits that end together: all of them end well, and nearly all in time."""
    figures: list[Figure] = []
    violations: list[str] = []
    late: list[str] = []
    for name in STORES:
        # Where PostgreSQL, which does not run as root, may make its files.
        with stores.opened(name, tempfile.gettempdir(), None) as kind, kind.fresh() as db:
            woken = asyncio.run(measure(db, size))
        figures += [
            Figure(f"wait_p50_{name}", round(woken.waits.p50, 3), "s", size),
            Figure(f"wait_p99_{name}", round(woken.waits.p99, 3), "s", size),
        ]
        if woken.succeeded != size:
            violations.append(f"{size - woken.succeeded} of {size} executions on {name} did not end in success")
        if woken.waits.p99 > BAR:
            late.append(f"on {name} one wait in a hundred ended {woken.waits.p99:.1f} s late")
    return Outcome("wakes", figures, violations, late)
