"""A background process that goes on with a store: in a session of its own, with a log beside the database."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

from ropewalk.cli.backend.project import Project
from ropewalk.core.errors import Unavailable
from ropewalk.store import private_files
from ropewalk.store.sqlite import owner_info

_TRIES: Final = 1200
_PAUSE: Final = 0.05
_TAIL: Final = 2000


async def spawn(project: Project) -> int:
    """Starts the process and waits until it owns the store, or has done its work already; its pid."""
    log = f"{project.db}.log"
    private_files.tighten(log)
    command = [sys.executable, "-m", "ropewalk", "resume", "--background", *project.arguments]
    pid = os.posix_spawn(
        sys.executable,
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        # A session of its own: neither Ctrl-C nor the end of the terminal reaches it.
        setsid=True,
    )
    for _ in range(_TRIES):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _require_success(status, log)
            return pid
        owner = owner_info(project.db)
        if owner is not None and owner.pid == pid:
            return pid
        await asyncio.sleep(_PAUSE)
    raise Unavailable(f"the background process {pid} does not get hold of {project.db}: see {log}")


def _require_success(status: int, log: str) -> None:
    if os.waitstatus_to_exitcode(status) in (0, 1, 3):
        return  # it ended, and so did the executions, one way or another
    tail = Path(log).read_text(encoding="utf-8", errors="replace")[-_TAIL:]
    raise Unavailable(f"the background process failed: see {log}\n{tail}")
