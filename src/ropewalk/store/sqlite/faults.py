"""What SQLite and the file system report, in our words; asked once, at the door."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ropewalk.core.errors import Conflict, RopewalkError
from ropewalk.store.errors import NotADatabase, StoreBusy, StoreDefect, StoreFull, StoreUnavailable
from ropewalk.store.sqlite.inspection import damaged

_TAKEN: Final = (
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY,
)
_UNSURE: Final = (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC)
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def translated(error: sqlite3.Error, path: str, *, is_ours: bool = False) -> RopewalkError:
    """What to raise instead of what the driver said; `is_ours` of a database that was one of ours before."""
    code = _code(error)
    if code in _TAKEN:
        return Conflict(str(error))
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return _full(path)
        case sqlite3.SQLITE_NOTADB if not is_ours:
            return NotADatabase(f"{path} is not an SQLite database: choose another path")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return damaged(path, str(error))
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(f"another program keeps {path} locked: close it there, then try again")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StoreUnavailable(_not_allowed(path, str(error)))
        case sqlite3.SQLITE_IOERR:
            return StoreUnavailable(
                f"the disk failed under {path} ({error.sqlite_errorname}): see to the disk, then try again"
            )
        case _:
            return StoreDefect(str(error))


def _code(error: sqlite3.Error) -> int:
    # Absent where the module itself objects, not the library.
    return getattr(error, "sqlite_errorcode", 0) or 0


def is_unsure(error: sqlite3.Error) -> bool:
    """Whether it is unknown what is on the disk now: after a failed sync only recovery at the next opening tells."""
    return _code(error) in _UNSURE


def is_stale(error: sqlite3.Error) -> bool:
    """Whether the fence of a commit has refused it; no other trigger of ours refuses anything."""
    return _code(error) == sqlite3.SQLITE_CONSTRAINT_TRIGGER


def translated_os_error(error: OSError, path: str) -> RopewalkError:
    """What to raise instead of what the file system said."""
    if error.errno in _NO_ROOM:
        return _full(path)
    return StoreUnavailable(_not_allowed(path, os.strerror(error.errno) if error.errno else str(error)))


def _full(path: str) -> StoreFull:
    return StoreFull(f"there is no room left for {path}: make some on its disk, then try again")


def _not_allowed(path: str, reason: str) -> str:
    return (
        f"{path} cannot be opened or written ({reason}): its directory must exist, and directory and file must be "
        "writable by this user"
    )


@contextmanager
def at_the_door(path: str, on_trouble: Callable[[RopewalkError], None] | None = None) -> Iterator[None]:
    """What the driver or the file system raises inside leaves as one of our errors.

    Of a database that is known to be one of ours, `on_trouble` is told first.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _told(translated(error, path, is_ours=on_trouble is not None), on_trouble) from error
    except OSError as error:
        raise _told(translated_os_error(error, path), on_trouble) from error


def _told(trouble: RopewalkError, to: Callable[[RopewalkError], None] | None) -> RopewalkError:
    if to is not None:
        to(trouble)
    return trouble
