"""A worker in a process of its own: executes what it finds in the queue, and what it is told to start itself.

`execute N` on its input has it request N diamonds at once; it says `done` when all have ended. When its input is closed
it says how much memory it took, and leaves.
"""

import asyncio
import sys
from functools import partial

import uvloop

from ropewalk.bench.child import at_once, peak_rss_mb
from ropewalk.bench.native import execute, serving
from ropewalk.bench.processes import say
from ropewalk.bench.shapes import diamond
from ropewalk.engines.process import settle_in
from ropewalk.wiring import Settings


async def live(db: str) -> None:
    async with serving(Settings(db=db)) as service:
        say("ready")
        while line := await asyncio.to_thread(sys.stdin.readline):
            version = await service.save(diamond().document())
            await at_once(partial(execute, service, version), int(line.split()[1]))
            say("done")
    say("peak", peak_rss_mb())


if __name__ == "__main__":
    settle_in()
    uvloop.run(live(sys.argv[1]))
