"""Where the control socket of a store is: in a directory that only its user can enter, under a short name."""

import errno
import hashlib
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from ropewalk.core.errors import Unavailable

LONGEST: Final = 100
"""What fits into a `sockaddr_un` everywhere: Linux takes 107 bytes, other systems 103."""

ABANDONED: Final = 3600
MOST_SWEPT: Final = 100


def socket_path(database: str, environment: Mapping[str, str] = os.environ, now: float | None = None) -> str:
    """The path of a store's socket; its directory exists, is this user's, and is closed to other users."""
    now = time.time() if now is None else now
    name = hashlib.sha256(os.path.realpath(database).encode()).hexdigest()[:20] + ".sock"
    for directory in _directories(environment):
        path = os.path.join(directory, name)
        if len(os.fsencode(path)) <= LONGEST and _is_private(directory):
            _sweep(directory, now)
            return path
    raise Unavailable("there is no private directory for a control socket: set XDG_RUNTIME_DIR to one")


def _directories(environment: Mapping[str, str]) -> Iterator[str]:
    runtime = environment.get("XDG_RUNTIME_DIR")
    if runtime:
        yield os.path.join(runtime, "ropewalk")
    for parent in (tempfile.gettempdir(), "/tmp"):
        yield os.path.join(parent, f"ropewalk-{os.geteuid()}")


def _is_private(directory: str) -> bool:
    """Makes the directory if it is missing; whether this user owns it and no other user can enter it."""
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        found = os.lstat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _sweep(directory: str, now: float) -> None:
    """Removes the sockets of killed owners; a young socket is left, since its owner may be about to listen."""
    with os.scandir(directory) as entries:
        old = [entry.path for entry in entries if now - entry.stat(follow_symlinks=False).st_mtime > ABANDONED]
    for path in old[:MOST_SWEPT]:
        if path.endswith(".sock") and not _is_listened_on(path):
            with suppress(FileNotFoundError):
                os.unlink(path)


def _is_listened_on(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.setblocking(False)
        return caller.connect_ex(path) != errno.ECONNREFUSED
