"""Which files a store is made of, and whether they are still at their paths.

A process that has a database open goes on writing to the file it opened, also when another is at the path by now:
after a restore under a living process its commits would be in a file that no other process opens. And nothing in a
log (`-wal`) says which database it belongs to: SQLite would apply it to any database that lies beside it.
"""

import logging
import os
from contextlib import suppress
from typing import Final, Self

from msgspec import Struct

from ropewalk.store.errors import StoreDamaged

HEADER_OF_LOG: Final = 32
TOGETHER: Final = 10.0
"""So much later (s) than its log a database may have changed: by the end of a checkpoint, and nothing else of ours."""

_log = logging.getLogger("ropewalk.store")

Number = tuple[int, int]
"""What tells a file from all others of a machine: its device, and its number there."""


class Files(Struct, frozen=True):
    """A database and its log, each by its number."""

    database: Number
    log: Number

    @classmethod
    def at(cls, path: str) -> Self | None:
        """Those at this path; None if one is missing."""
        try:
            database, log = os.stat(path), os.stat(f"{os.path.realpath(path)}-wal")
        except (FileNotFoundError, NotADirectoryError):
            return None
        return cls((database.st_dev, database.st_ino), (log.st_dev, log.st_ino))


def are_at(path: str, log_path: str, files: Files) -> bool:
    """Whether these files are at their paths; asked with every commit, so nothing is made for it."""
    try:
        database, log = os.stat(path), os.stat(log_path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # what is wrong there, the next write says
    return (
        database.st_ino == files.database[1]
        and log.st_ino == files.log[1]
        and database.st_dev == files.database[0]
        and log.st_dev == files.log[0]
    )


def has_log(path: str) -> bool:
    """Whether there is a log with something in it: the last owner did not close the database."""
    try:
        return os.stat(f"{path}-wal").st_size > HEADER_OF_LOG
    except FileNotFoundError:
        return False


def require_own_log(path: str, left: Files | None) -> None:
    """Sees to it that the log at this path, if there is one, is not that of another database.

    `left` are the files of the last owner, if it did not close them. Its log beside another database is put aside. One
    that is older than the database by more than a checkpoint takes is refused, since either may be the wrong one.
    """
    if not has_log(path):
        return
    database, log = os.stat(path), os.stat(f"{path}-wal")
    is_of_last_owner = left is not None and left.log == (log.st_dev, log.st_ino)
    if left is not None and is_of_last_owner and left.database != (database.st_dev, database.st_ino):
        _put_aside(path, log.st_ino)
    elif database.st_ctime - log.st_ctime > TOGETHER:
        raise StoreDamaged(
            f"{path} was put there or changed {database.st_ctime - log.st_ctime:,.0f} s after its log {path}-wal was "
            f"last written, so the log may belong to another database, and nothing was opened. If {path} was restored "
            f"from a backup, move {path}-wal and {path}-shm away; if both belong together, `touch {path}-wal`; then "
            "start again"
        )


def _put_aside(path: str, number: int) -> None:
    aside = f"{path}-wal.{number}"
    os.rename(f"{path}-wal", aside)
    # It is an index of that log; a reader of the database before may still have it open.
    with suppress(FileNotFoundError):
        os.unlink(f"{path}-shm")
    _log.warning(
        "%s was replaced while a process had it open, and %s-wal belongs to the database that was there before: it is "
        "kept as %s. To open that database with all that was in it, put this file beside it, under its name and `-wal`",
        path, path, aside,
    )  # fmt: skip
