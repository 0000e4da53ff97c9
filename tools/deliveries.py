"""Five thousand deliveries to a webhook, a fifth of them repeated, some forged, while the server is killed twice.

python -m tools.deliveries [--count 5000] [--kills 2] [--seed 1]     # exit 1 if a promise was broken
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.triggers.deliveries import campaign


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.deliveries")
    parser.add_argument("--count", type=int, default=5_000)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ropewalk-deliveries-") as folder:
        broken = asyncio.run(campaign(Path(folder), options.count, options.kills, options.seed))
    for each in broken[:20]:
        print(each)
    seconds = time.monotonic() - began
    print(f"{options.count:,} deliveries, {options.kills} kills: {len(broken)} promises broken ({seconds:.0f} s)")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
