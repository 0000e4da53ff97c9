"""Another process that owns a store: `python -m tests.control.processes PATH`. It leaves when its input ends."""

import asyncio
import sys

from ropewalk.wiring import Settings, open_service


async def own(path: str) -> None:
    async with open_service(Settings(db=path)) as service:
        print(service.store.path, flush=True)  # noqa: T201 -- the way to the test
        await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(own(sys.argv[1]))
