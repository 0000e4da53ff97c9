"""How the file is opened: for its one writer, or for reading only."""

import os
import sqlite3
from contextlib import suppress
from functools import cache
from typing import Final
from urllib.parse import quote

from ropewalk.core.errors import NotFound
from ropewalk.store import private_files
from ropewalk.store.errors import IncompatibleStore, NotADatabase, StoreUnavailable
from ropewalk.store.migrations import Migration, known_migrations, pending, require_all
from ropewalk.store.queries import rendered
from ropewalk.store.sqlite.files import Files, has_log, require_own_log
from ropewalk.store.sqlite.inspection import AFTER_A_CRASH, AT_A_START, require_whole
from ropewalk.store.sqlite.ownership import is_owned_here

FLOOR: Final = (3, 37, 0)
BUSY_TIMEOUT_MS: Final = 1000
_MAGIC: Final = b"SQLite format 3\0"

# One writer, in one process: there is no other transaction to lock rows against.
_MARKERS: Final = {
    "skip_locked": "",
    "for_update": "",
    "for_key_share": "",
    "each_of_the_list": "select value from json_each($1)",
    # A session that had a transaction open here is gone together with the process.
    "hang_up": "select 1 where $1 is null",
}

_SHARED: Final = (
    f"pragma busy_timeout = {BUSY_TIMEOUT_MS}",
    "pragma cache_size = -32000",
    # Off: under mmap a failing disk is a SIGBUS instead of an error.
    "pragma mmap_size = 0",
    "pragma temp_store = memory",
)
_WRITER: Final = (
    "pragma journal_mode = wal",
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    # A checkpoint is part of the commit that reaches it: 4 MiB takes about 10 ms here, 16 MiB took 25.
    "pragma wal_autocheckpoint = 1000",
    # What a burst has blown up is cut back to this at the next reset.
    "pragma journal_size_limit = 67108864",
)
_UNSYNCED: Final = "pragma synchronous = off"


@cache
def statements() -> dict[str, str]:
    """Every statement in SQLite's words. `?1` binds by number from a tuple: the cheapest way in."""
    return rendered(_MARKERS, "?")


def library_version() -> tuple[str, bool]:
    """The version of SQLite this Python has, and whether it is new enough."""
    return sqlite3.sqlite_version, sqlite3.sqlite_version_info >= FLOOR


def check_path(path: str, *, create: bool) -> None:
    """Refuses what is no database before anything is touched."""
    if sqlite3.sqlite_version_info < FLOOR:
        needed = ".".join(map(str, FLOOR))
        raise IncompatibleStore(f"SQLite {needed} or newer is needed, this Python has {sqlite3.sqlite_version}")
    if path == ":memory:":
        raise StoreUnavailable("a store needs a file: its readers have connections of their own; name a path")
    if os.path.isdir(path):
        raise NotADatabase(f"{path} is a directory: name a file in it")
    if not create and not os.path.exists(path):
        raise NotFound(f"there is no store at {path}")
    # Closing a file releases the locks of every connection that this process has to it.
    if not is_owned_here(path):
        with suppress(FileNotFoundError), open(path, "rb") as file:
            _check_header(path, file.read(len(_MAGIC)))


def _check_header(path: str, head: bytes) -> None:
    if head and head != _MAGIC:
        raise NotADatabase(f"{path} is not an SQLite database: choose another path")


def connect_writer(path: str, now: int, left: Files | None = None, *, is_synced: bool = True) -> sqlite3.Connection:
    """The one connection that writes, to a database that seems whole and is brought up to date.

    `left` are the files of the last owner, if it did not close them. One that is not synced does not survive the loss
    of power.
    """
    file = os.path.realpath(path)
    require_own_log(file, left)
    has_crashed = left is not None or has_log(file)
    # The library gives the files beside the database the rights of the database.
    private_files.create(file)
    private_files.tighten(file, f"{file}-wal", f"{file}-shm", f"{file}-journal")
    connection = _connect(path, "rw")
    try:
        _check_is_ours(connection, path)
        for pragma in (*_SHARED, *_WRITER, *(() if is_synced else (_UNSYNCED,))):
            connection.execute(pragma)
        require_whole(connection, path, AFTER_A_CRASH if has_crashed else AT_A_START)
        _migrate(connection, path, now)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: str) -> sqlite3.Connection:
    """A connection that cannot write, to a database of exactly our schema."""
    connection = _connect(path, "ro")
    try:
        for pragma in (*_SHARED, "pragma query_only = on"):
            connection.execute(pragma)
        _check_is_ours(connection, path)
        require_all(_applied(connection), known_migrations(), path)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: str, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(os.path.realpath(path))}?mode={mode}"
    # Never used by two threads at once: the task that has the store's turn has the connection.
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, cached_statements=512)


def _check_is_ours(connection: sqlite3.Connection, path: str) -> None:
    tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
    if tables and "migration" not in tables:
        raise NotADatabase(f"{path} is an SQLite database, but not one of Ropewalk: choose another path")


def _applied(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    tables = connection.execute("select count(*) from sqlite_master where name = 'migration'").fetchone()
    return connection.execute(statements()["applied_migrations"]).fetchall() if tables[0] else []


def _migrate(connection: sqlite3.Connection, path: str, now: int) -> None:
    for step in pending(_applied(connection), known_migrations(), path):
        _take_step(connection, step, now)


def _by_key(statement: str) -> str:
    """A table is kept in the order of its key, and not a second time under numbers of its own: fewer pages a commit."""
    return f"{statement} without rowid" if statement.startswith("create table") else statement


def _take_step(connection: sqlite3.Connection, step: Migration, now: int) -> None:
    connection.execute("begin immediate")
    try:
        connection.execute(statements()["create_migration"])
        for statement in step.statements:
            connection.execute(_by_key(statement))
        connection.execute(statements()["insert_migration"], (step.number, step.name, step.checksum, now))
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
