"""Where the control socket of a store is: in a directory that only its user can enter, under a short name."""

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from typing import Final

from ropewalk.core.errors import Unavailable

LONGEST: Final = 100
"""What fits into a `sockaddr_un` everywhere: Linux takes 107 bytes, others 103."""


def socket_path(database: str, environment: Mapping[str, str] = os.environ) -> str:
    """The path of a store's socket; its directory exists, is ours, and is closed to everyone else."""
    name = hashlib.sha256(os.path.realpath(database).encode()).hexdigest()[:20] + ".sock"
    for directory in _directories(environment):
        path = os.path.join(directory, name)
        if len(os.fsencode(path)) <= LONGEST and _is_private(directory):
            return path
    raise Unavailable("there is no private directory for a control socket: set XDG_RUNTIME_DIR to one")


def _directories(environment: Mapping[str, str]) -> Iterator[str]:
    runtime = environment.get("XDG_RUNTIME_DIR")
    if runtime:
        yield os.path.join(runtime, "ropewalk")
    for parent in (tempfile.gettempdir(), "/tmp"):
        yield os.path.join(parent, f"ropewalk-{os.geteuid()}")


def _is_private(directory: str) -> bool:
    """Makes the directory if it is missing; whether it is one of ours that nobody else can enter."""
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        found = os.lstat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
