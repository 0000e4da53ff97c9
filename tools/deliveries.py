"""Five thousand deliveries to a webhook, a fifth of them repeated, some forged, while the server is killed twice.

python -m tools.deliveries [--count 5000] [--kills 2] [--seed 1]     # exit 1 if a promise was broken
python -m tools.deliveries --rates [--count 2000]                    # deliveries a second beside plain starts
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.triggers.deliveries import campaign, rates

ROUNDS = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.deliveries")
    parser.add_argument("--count", type=int)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rates", action="store_true", help="measure, and kill nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ropewalk-deliveries-") as folder:
        if options.rates:
            return measure(Path(folder), options.count or 2_000)
        return hold(Path(folder), options.count or 5_000, options.kills, options.seed)


def hold(folder: Path, count: int, kills: int, seed: int) -> int:
    began = time.monotonic()
    broken = asyncio.run(campaign(folder, count, kills, seed))
    for each in broken[:20]:
        print(each)
    print(f"{count:,} deliveries, {kills} kills: {len(broken)} promises broken ({time.monotonic() - began:.0f} s)")
    return int(bool(broken))


def measure(folder: Path, count: int) -> int:
    found = asyncio.run(rates(folder, count, ROUNDS))
    ratio = statistics.median(hooks / starts for starts, hooks in found)
    for metric, value in (
        ("starts_per_s", statistics.median(starts for starts, _ in found)),
        ("deliveries_per_s", statistics.median(hooks for _, hooks in found)),
        ("ratio", ratio),
    ):
        print(json.dumps({"workload": "webhook", "metric": metric, "value": round(value, 2), "n": count}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
