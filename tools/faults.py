"""Faults other than a killed process: disks that fail, stores that are replaced, slow names, worst documents.

python -m tools.faults                       # everything, in full size; exit 1 if a promise was broken
python -m tools.faults --small               # the sizes of CI
python -m tools.faults --only eio,replaced   # some of it
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.faults.disk import failing_disk
from tests.faults.figures import Outcome
from tests.faults.replaced import replaced_file
from tests.faults.slow_names import silent_names
from tests.faults.travel import time_travel
from tests.faults.wake_ups import wake_ups
from tests.faults.weight import heavy_executions
from tests.faults.worst_documents import worst_documents

MOST_SHOWN: Final = 20
Experiment = Callable[[Path, bool], Outcome]

EXPERIMENTS: Final[dict[str, Experiment]] = {
    "eio": lambda folder, is_small: asyncio.run(failing_disk(folder, "EIO", 2 if is_small else 15)),
    "full": lambda folder, is_small: asyncio.run(failing_disk(folder, "ENOSPC", 2 if is_small else 15)),
    "travel": lambda folder, is_small: time_travel(folder, 1 if is_small else 5),
    "names": lambda folder, is_small: asyncio.run(silent_names(folder, 20 if is_small else 200)),
    "worst": lambda folder, is_small: worst_documents(folder, 2.0 if is_small else 5.0, 3 if is_small else None),
    "wakes": lambda _, is_small: wake_ups(500 if is_small else 10_000),
    "weight": lambda folder, is_small: heavy_executions(folder, *((30, 20) if is_small else (3_000, 2_000))),
    "replaced": lambda folder, _: asyncio.run(replaced_file(folder)),
}


def shown(outcome: Outcome, seconds: float) -> None:
    """The figures as JSON lines, and what was broken for a person."""
    for each in outcome.figures:
        line = {"workload": f"faults-{outcome.experiment}", "metric": each.metric, "value": each.value}
        print(json.dumps(line | {"unit": each.unit, "n": each.n}), flush=True)
    verdict = "held" if not outcome.violations else f"{len(outcome.violations)} promises broken"
    missed = f", {len(outcome.late)} bars missed" if outcome.late else ""
    print(f"{outcome.experiment}: {verdict}{missed} ({seconds:.0f} s)", file=sys.stderr, flush=True)
    for told in [*outcome.violations[:MOST_SHOWN], *outcome.late]:
        print(f"  {told}", file=sys.stderr)


def campaign(names: list[str], *, is_small: bool) -> int:
    """1 if a promise was broken or a bar missed; then what the experiments left is kept."""
    folder = Path(tempfile.mkdtemp(prefix="ropewalk-faults-"))
    broken = late = 0
    for name in names:
        began = time.monotonic()
        print(f"{name} …", file=sys.stderr, flush=True)
        outcome = EXPERIMENTS[name](folder / name, is_small)
        shown(outcome, time.monotonic() - began)
        broken, late = broken + len(outcome.violations), late + len(outcome.late)
    if broken or late:
        told = f"{broken} promises broken, {late} bars missed"
        print(f"\n{told}; what was left is kept: {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--only", help=f"some of {', '.join(EXPERIMENTS)}, with commas between them")
    parser.add_argument("--small", action="store_true", help="the sizes of CI")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(EXPERIMENTS)
    if unknown := [name for name in names if name not in EXPERIMENTS]:
        parser.error(f"there is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}")
    return campaign(names, is_small=options.small)


if __name__ == "__main__":
    sys.exit(main())
