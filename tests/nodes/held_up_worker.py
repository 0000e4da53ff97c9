"""A worker that waits for a function which holds up its process, whose number it writes where it is told."""

import asyncio
import sys

from ropewalk.nodes.processes import Processes

if __name__ == "__main__":
    asyncio.run(Processes(1).call("tests.nodes.isolated_samples:hold_up", {"note": sys.argv[1]}))
