"""A process to be killed: it executes a chain of naps, and says on its output when each thing happens.

Given an execution, it takes up what another process left instead of starting anew; told to be idle, it waits for what
others leave until its input is closed.
"""

import asyncio
import logging
import sys
import time

import uvloop

from ropewalk.bench.native import finished
from ropewalk.bench.processes import say
from ropewalk.bench.shapes import chain
from ropewalk.nodes.function import FunctionNode
from ropewalk.service import Service
from ropewalk.wiring import Settings, node_types, open_service

NAP_TYPE = "bench.nap"
NAP_SECONDS = 0.05
IDLE = "idle"


async def nap() -> None:
    say("nap", time.monotonic())
    await asyncio.sleep(NAP_SECONDS)


async def live(db: str, length: int, task: str | None) -> None:
    types = node_types([FunctionNode(nap, name=NAP_TYPE)])
    async with open_service(Settings(db=db), types=types) as service:
        if task == IDLE:
            say(IDLE)
            await asyncio.to_thread(sys.stdin.read)
        else:
            await finished(service, task or await start(service, length))
            say("ended", time.monotonic())


async def start(service: Service, length: int) -> str:
    version = await service.save(chain(length).document(NAP_TYPE))
    requested = time.monotonic()
    execution = await service.start(version)
    say("requested", execution, requested)
    return execution


if __name__ == "__main__":
    # That another worker is dead is what is wanted here, and nothing to warn of.
    logging.getLogger("ropewalk.engine").setLevel(logging.ERROR)
    db, length, *task = sys.argv[1:]
    uvloop.run(live(db, int(length), task[0] if task else None))
