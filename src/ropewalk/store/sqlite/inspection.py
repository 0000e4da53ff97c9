"""Whether a database is damaged, as far as a few moments tell."""

import sqlite3
from threading import Timer
from typing import Final

from ropewalk.store.errors import StoreDamaged

AT_A_START: Final = 0.1
AFTER_A_CRASH: Final = 2.0
"""How long (s) a database is looked through when it is opened, page by page; a large one is not seen whole."""


def require_whole(connection: sqlite3.Connection, path: str, seconds: float) -> None:
    """Refuses a database in which damage is found within this time."""
    # From a thread: while SQLite looks through one table, it calls no handler for its progress.
    patience = Timer(seconds, connection.interrupt)
    patience.start()
    try:
        (found,) = connection.execute("pragma quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
    else:
        if found != "ok":
            raise damaged(path, found.replace("\n", " "))
    finally:
        patience.cancel()
        # It must not interrupt what comes next.
        patience.join()


def damaged(path: str, what: str) -> StoreDamaged:
    """What to raise for a database in which this was found."""
    return StoreDamaged(f"{path} is damaged ({what}): stop what works on it, and restore it from a backup")
