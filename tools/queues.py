"""Messages of a JetStream stream, some of them twice, while the servers at both ends are killed; then a count.

python -m tools.queues --messages 5000 --kills 2   # exit 1 unless each message started exactly one execution
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.triggers.queue_campaign import campaign

MOST_SHOWN = 20


def main() -> int:
    """Run the campaign and say what happened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--kills", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ropewalk-queues-") as folder:
        began = time.monotonic()
        counted = asyncio.run(campaign(Path(folder), asked.messages, asked.kills, is_broker_killed=True))
    print(f"{asked.messages:,} messages, {counted.published:,} published, {counted.deliveries:,} deliveries, "
          f"{counted.kills} kills of the server and one of NATS, {time.monotonic() - began:.0f} s")  # fmt: skip
    for number, executions in list(counted.wrong.items())[:MOST_SHOWN]:
        print(f"message {number} started {executions} executions")
    print("one execution each, none lost" if not counted.wrong else f"{len(counted.wrong)} messages are wrong")
    return 1 if counted.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
