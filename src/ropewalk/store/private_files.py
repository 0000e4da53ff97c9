"""Files that only their owner may read: made so from the first byte, under any umask, or closed when found open."""

import contextlib
import logging
import os
import stat
from typing import Final

FILE: Final = 0o600
FOLDER: Final = 0o700
OTHERS: Final = 0o077

_log = logging.getLogger("ropewalk.store")


def create(path: str) -> bool:
    """Makes an empty file for its owner alone; false if there is one."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE)
    except FileExistsError:
        return False
    try:
        # A umask may take away from the owner too.
        os.fchmod(descriptor, FILE)
    finally:
        os.close(descriptor)
    return True


def write(path: str, text: bytes) -> None:
    """Makes a file for its owner alone, with this text, whole or not at all; FileExistsError if there is one."""
    draft = f"{path}.{os.getpid()}.draft"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(draft)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, FILE)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            os.fchmod(descriptor, FILE)
            file.write(text)
            os.fsync(descriptor)
        # Unlike a rename, a link never takes the place of a file that another process made meanwhile.
        os.link(draft, path)
    finally:
        os.unlink(draft)


def is_open_to_others(path: str) -> bool:
    """Whether users other than the owner may do anything with what is there."""
    try:
        return bool(stat.S_IMODE(os.stat(path).st_mode) & OTHERS)
    except FileNotFoundError:
        return False


def tighten(*paths: str) -> None:
    """Takes the rights of all other users away from those of these that exist, and logs each that had to be changed."""
    for path in paths:
        if not is_open_to_others(path):
            continue
        try:
            os.chmod(path, FOLDER if os.path.isdir(path) else FILE)
        except FileNotFoundError:
            continue
        except OSError as error:
            _log.warning("other users may read %s, and this user cannot change that (%s)", path, error.strerror)
        else:
            _log.warning("other users could read %s; from now on only its owner can", path)
