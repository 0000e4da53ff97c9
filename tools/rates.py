"""Bulk work against servers that fail a little, or always, and a rate limit that three workers keep for a minute.

python -m tools.rates                       # everything, in full size; exit 1 if a promise was broken
python -m tools.rates --small               # the sizes of CI
python -m tools.rates --only limited,kill   # some of it
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from tests.faults.figures import Outcome
from tests.postgres import PostgresServer
from tests.rates.campaign import all_down, limited, mostly_well

Experiment = Callable[[str, Path, bool], Awaitable[Outcome]]
"""Told the URL of a database, a folder, and whether it is to be small."""

EXPERIMENTS: Final[dict[str, Experiment]] = {
    "well": lambda _, folder, is_small: mostly_well(str(folder / "well.db"), 300 if is_small else 2_000),
    "well-shared": lambda url, _, is_small: mostly_well(url, 300 if is_small else 2_000),
    "down": lambda _, folder, is_small: all_down(str(folder / "down.db"), 100 if is_small else 2_000),
    "down-shared": lambda url, _, is_small: all_down(url, 100 if is_small else 2_000),
    "limited": lambda url, folder, is_small: limited(url, folder, 3 if is_small else 60),
    "kill": lambda url, folder, is_small: limited(url, folder, 6 if is_small else 60, kills=True),
}


async def carried_out(server: PostgresServer, name: str, folder: Path, *, is_small: bool) -> bool:
    """Whether a promise was broken or a bar missed."""
    url, began = await server.lend(), time.monotonic()
    outcome = await EXPERIMENTS[name](url, folder, is_small)
    await server.take_back(url)
    for each in outcome.figures:
        line = {"workload": f"rates-{name}", "metric": each.metric, "value": round(each.value, 3)}
        print(json.dumps(line | {"unit": each.unit, "n": each.n}), flush=True)
    told = [*outcome.violations, *outcome.late]
    print(f"{name}: {'; '.join(told) or 'held'} ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    return bool(told)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.rates")
    parser.add_argument("--small", action="store_true", help="the sizes of CI")
    parser.add_argument("--only", help=f"some of {', '.join(EXPERIMENTS)}")
    options = parser.parse_args()
    names = list(EXPERIMENTS) if options.only is None else options.only.split(",")
    if unknown := [name for name in names if name not in EXPERIMENTS]:
        parser.error(f"there is no experiment {unknown[0]!r}")
    server, has_broken = PostgresServer(fsync="on"), False
    try:
        with tempfile.TemporaryDirectory(prefix="ropewalk-rates-") as folder:
            for name in names:
                has_broken |= asyncio.run(carried_out(server, name, Path(folder), is_small=options.small))
    finally:
        server.remove()
    return int(has_broken)


if __name__ == "__main__":
    sys.exit(main())
