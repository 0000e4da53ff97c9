"""A process to be killed: it executes a chain of naps, and says on its output when each thing happens.

Given an execution, it takes up what another process left instead of starting anew. Times are of the monotonic clock,
which all processes of a machine share.
"""

import asyncio
import sys
import time

import uvloop

from ropewalk.bench.native import finished
from ropewalk.bench.shapes import chain
from ropewalk.nodes.function import FunctionNode
from ropewalk.wiring import Settings, node_types, open_service

NAP_TYPE = "bench.nap"
NAP_SECONDS = 0.05


async def nap() -> None:
    say(time.monotonic(), "nap")
    await asyncio.sleep(NAP_SECONDS)


def say(at: float, *words: str) -> None:
    sys.stdout.write(f"{' '.join(words)} {at}\n")
    sys.stdout.flush()


async def execute(db: str, length: int, execution: str | None) -> None:
    types = node_types([FunctionNode(nap, name=NAP_TYPE)])
    async with open_service(Settings(db=db), types=types) as service:
        if execution is None:
            version = await service.save(chain(length).document(NAP_TYPE))
            requested = time.monotonic()
            execution = await service.start(version)
            say(requested, "requested", execution)
        await finished(service, execution)
        say(time.monotonic(), "ended")


if __name__ == "__main__":
    db, length, *execution = sys.argv[1:]
    uvloop.run(execute(db, int(length), execution[0] if execution else None))
