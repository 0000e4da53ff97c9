"""The worker processes of a server that executes nothing itself: started, replaced when they die, gone when it goes.

Each holds the reading end of a pipe; when the server ends, also by a kill, the pipe ends too, and the worker drains.
One that does not come to an end of its own is ended by the kernel.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ropewalk.cli.backend.project import Project
from ropewalk.cli.processes.watching import LEAVE
from ropewalk.cli.views.progress import View

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
LONG_LIFE: Final = 60.0
"""One that has lived so long (s) did not die of its beginning: the pauses begin anew."""
GRACE: Final = 5.0
"""How much longer than the drain a worker may take (s) before it is killed, which is as safe as a crash."""


@asynccontextmanager
async def running_workers(project: Project, size: int, view: View) -> AsyncIterator[None]:
    """So many workers on the same store, for as long as the block lasts."""
    keeping = [asyncio.ensure_future(_keep_alive(project, view)) for _ in range(size)]
    try:
        yield
    finally:
        for each in keeping:
            each.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)


async def _keep_alive(project: Project, view: View) -> None:
    """One worker after the other; the pause between them grows while they die young."""
    loop, pause = asyncio.get_running_loop(), FIRST_PAUSE
    while True:
        began = loop.time()
        try:
            told = await _live(project)
        except OSError as error:  # no room for another process, or the program is being replaced
            told = f"cannot be started ({error})"
        if loop.time() - began > LONG_LIFE:
            pause = FIRST_PAUSE
        view.say(f"a worker process {told}; the next one starts in {pause:g} s")
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def _live(project: Project) -> str:
    """The whole life of one worker, and how it ended; if this is cancelled, it is told to drain."""
    patience = project.settings.worker.drain_seconds + GRACE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ropewalk.cli.processes.worker_processes",
        *_command(project),
        # The address may have a password in it, and every user of the machine may read a command line.
        env={**os.environ, "ROPEWALK_DB": project.db},
        stdin=asyncio.subprocess.PIPE,
        # Ctrl-C is for the server, which tells the others.
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(str(patience).encode())
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        await _dismiss(process, patience)
        raise
    return f"{process.pid} {_ended(code)}"


def _ended(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


async def _dismiss(process: asyncio.subprocess.Process, patience: float) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), patience)
    except TimeoutError:
        process.kill()
        await process.wait()


def _command(project: Project) -> list[str]:
    file = [] if project.file is None else ["--config", project.file]
    modules = [part for module in project.nodes for part in ("--nodes", module)]
    # One port cannot be each worker's; the server has a port that tells of its health.
    return ["worker", *file, *modules, "--health-port", "0", *(["--json"] if project.is_json else [])]


def _heed_the_pipe() -> None:
    """Drain when the server that started this process is gone; it has said how long that may take (s)."""

    def wait() -> None:
        patience = b""
        # Past Python's own buffer: a thread that waits in it when the interpreter ends is a fatal error.
        while part := os.read(sys.stdin.fileno(), 1024):
            patience += part
        if patience:
            # By the kernel: a node that keeps the loop busy keeps everything else of this process waiting.
            signal.setitimer(signal.ITIMER_REAL, float(patience))
        # No SIGTERM: service managers send one to every process of a unit, and a second one would not drain.
        os.kill(os.getpid(), LEAVE)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    from ropewalk.cli.main import main

    _heed_the_pipe()
    main()
