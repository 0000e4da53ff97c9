"""A disk that fails for a while: every write or sync of the server's is refused by the system, and then works again."""

import asyncio
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.crash.ledgers import Place
from tests.crash.power import TRACER, NoTracer
from tests.crash.verdict import judge
from tests.faults.figures import Figure, Outcome
from tests.faults.ground import checked, ground

CALLS: Final = {"EIO": "fdatasync,fsync,pwrite64", "ENOSPC": "pwrite64,ftruncate,fallocate"}
"""What fails: a broken disk syncs nothing, a full one takes no more bytes."""
LASTS: Final = 1.0
BETWEEN: Final = 1.0


async def failing_disk(folder: Path, error: str, rounds: int) -> Outcome:
    """The disk fails so often under load: nothing accepted is lost, and the server answers 503 meanwhile."""
    place = Place(str(folder))
    recoveries: list[float] = []
    async with ground(folder, place.database) as field:
        field.load(await field.save())
        for _ in range(rounds):
            await asyncio.sleep(BETWEEN)
            async with failing(field.server.pid, error):
                await asyncio.sleep(LASTS)
            healed = time.monotonic()
            if await field.server.ended(0.1) is not None:
                await field.server.start()
            recoveries.append(await field.serves(healed))
        await field.rest()
        hung = await field.quiet()
        violations = [*field.unexpected(), *(f"{each} hangs" for each in hung)]
        statuses = field.statuses
    verdict = await judge(place)
    violations += [*verdict.violations, *await checked(place.database, folder)]
    figures = [
        Figure("accepted_starts", verdict.accepted, "executions", rounds),
        Figure("refused_starts", statuses[503], "requests", rounds),
        Figure("effects_repeated", verdict.repeated, "effects", verdict.effects),
        Figure("serving_again_max", round(max(recoveries), 2), "s", rounds),
    ]
    return Outcome(error.lower(), figures, violations)


@asynccontextmanager
async def failing(pid: int, error: str) -> AsyncIterator[None]:
    """Within the block the system refuses what the process asks of its disk."""
    tracer = shutil.which(TRACER)
    if tracer is None:
        raise NoTracer("the faults of a disk need strace: apt-get install strace")
    calls = CALLS[error]
    injected = await asyncio.create_subprocess_exec(
        tracer, "-f", "-p", str(pid), "-e", f"trace={calls}", "-e", f"inject={calls}:error={error}",
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert injected.stderr is not None
    attached = await asyncio.wait_for(injected.stderr.readline(), 10)
    assert b"attached" in attached, attached
    drained = asyncio.create_task(injected.stderr.read())
    try:
        yield
    finally:
        injected.send_signal(signal.SIGINT)
        await injected.wait()
        await drained
