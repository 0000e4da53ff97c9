"""Functions that take more than their share, in a process of their own."""

import mmap
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

from ropewalk.nodes.function import node

WAIT = "import signal; signal.pause()"


def hog(mib: int) -> int:
    """Takes so much memory at once."""
    return len(bytearray(mib * 2**20))


def map_memory(mib: int) -> int:
    """Takes so much memory that is shared with no other process, but could be."""
    return len(mmap.mmap(-1, mib * 2**20))


def burn(seconds: float) -> float:
    """Uses a processor for so long."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return seconds


def hold_up(note: str) -> bool:
    """Tells its number, and then lets no other thread of its process run."""
    with open(note, "w") as written:
        written.write(str(os.getpid()))
    return re.match("(a+)+$", "a" * 64 + "b") is None


def open_files(count: int) -> int:
    return len([os.open(os.devnull, os.O_RDONLY) for _ in range(count)])


def die(number: int) -> None:
    os.kill(os.getpid(), number)


def end(code: int) -> None:
    os._exit(code)


def die_once(marker: str) -> str:
    """Dies the first time only."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "alive"
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


def leave_children(note: str) -> None:
    """Starts a child, one in a session of its own and one whose parent is gone, tells their numbers, and hangs."""
    plain = subprocess.Popen([sys.executable, "-c", WAIT])
    apart = subprocess.Popen([sys.executable, "-c", WAIT], start_new_session=True)
    orphan = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {WAIT!r}], stdout=-3); print(p.pid)"
    told = subprocess.run([sys.executable, "-c", orphan], stdout=subprocess.PIPE, start_new_session=True, check=True)
    with open(note, "w") as written:
        written.write(f"{plain.pid} {apart.pid} {int(told.stdout)}")
    signal.pause()


@node(placement="process", limits={"memory": "64MiB", "cpuSeconds": 5})
def fragile(mib: int) -> Any:
    """Takes so much memory at once."""
    return hog(mib)
