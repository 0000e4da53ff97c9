"""SQLite: a file of the workspace, in a thread of its own; it reaches no other file and loads no code."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ropewalk.nodes.databases.columns import as_text, plain, told_apart
from ropewalk.nodes.databases.connection import Insertion, Row, Terms, named, on_conflict
from ropewalk.nodes.failure import NodeFailure, shortened
from ropewalk.nodes.sql_text import Statement, Values

BUSY_SECONDS = 10.0
LONGEST_REASON = 500
LARGEST_VALUE = 64 * 1024 * 1024
GOES_BY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR))
# What only tells of the schema.
PRAGMAS = frozenset(("table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list"))

T = TypeVar("T")


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    is_forbidden = (
        # `vacuum into` attaches the file that it writes.
        action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
        or (action == sqlite3.SQLITE_PRAGMA and (first or "").lower() not in PRAGMAS)
        or (action == sqlite3.SQLITE_FUNCTION and (second or "").lower() == "load_extension")
    )
    return sqlite3.SQLITE_DENY if is_forbidden else sqlite3.SQLITE_OK


async def connect(path: str, name: str) -> "SqliteConnection":
    """A connection to the file, which must exist."""
    connection = SqliteConnection(f"the database {name}")
    try:
        await connection.open(path)
    except BaseException:
        await connection.close()
        raise
    return connection


class SqliteRows:
    """The rows of a cursor."""

    def __init__(self, connection: "SqliteConnection", cursor: sqlite3.Cursor) -> None:
        self._connection = connection
        self._cursor = cursor
        self.columns = told_apart([each[0] for each in cursor.description or ()])
        self.affected = None if self.columns else max(cursor.rowcount, 0)

    async def fetch(self, most: int) -> list[Row]:
        if not self.columns:
            return []
        rows = await self._connection.call(lambda: self._cursor.fetchmany(most))
        return [[plain(value) for value in row] for row in rows]


class SqliteConnection:
    """A connection to a file, used by one thread."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._thread = ThreadPoolExecutor(1, "ropewalk-sqlite")
        self._opened: sqlite3.Connection | None = None
        self.is_sound = True

    async def open(self, path: str) -> None:
        def work() -> sqlite3.Connection:
            uri = f"file:{path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?mode=rw"
            opened = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
            opened.execute("pragma foreign_keys = on")
            opened.execute("pragma trusted_schema = off")
            opened.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            opened.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
            return opened

        self._opened = await self.call(work)

    async def call(self, work: Callable[[], T]) -> T:
        """What the work gives, done by the thread; a call that is cancelled interrupts it."""
        async with self._classified():
            done = asyncio.get_running_loop().run_in_executor(self._thread, work)
            try:
                return await asyncio.shield(done)
            except asyncio.CancelledError:
                self.is_sound = False
                if self._opened is not None:
                    self._opened.interrupt()
                await asyncio.wait([done])
                raise

    @asynccontextmanager
    async def _classified(self) -> AsyncIterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _failure(self._place, error) from error
        except OverflowError as error:
            raise NodeFailure.permanent(
                "with.parameters: a number is larger than SQLite keeps; give it as text"
            ) from error

    async def begin(self, terms: Terms) -> None:
        def work() -> None:
            self._do(f"pragma query_only = {int(terms.is_read_only)}")
            # A writer takes its turn at once: one that reads first cannot wait for another writer later.
            self._do("begin" if terms.is_read_only else "begin immediate")
            assert self._opened is not None
            self._opened.set_authorizer(_authorize)

        await self.call(work)

    def _do(self, text: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        assert self._opened is not None
        return self._opened.execute(text, values)

    async def execute(self, statement: Statement, values: Values) -> SqliteRows:
        given = [as_text(value) for value in statement.bound(values).values()]
        return SqliteRows(self, await self.call(lambda: self._do(statement.numbered("?"), given)))

    async def insert(self, insertion: Insertion, rows: Sequence[Row]) -> int:
        text = _insert_text(insertion)
        given = [[as_text(value) for value in row] for row in rows]

        def work() -> int:
            assert self._opened is not None
            return self._opened.executemany(text, given).rowcount

        return max(await self.call(work), 0)

    async def commit(self) -> None:
        await self.call(lambda: self._do("commit"))

    async def rollback(self) -> None:
        await self.call(lambda: self._do("rollback"))

    async def close(self) -> None:
        if self._opened is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._opened.close)
        self._thread.shutdown(wait=False)


def _failure(place: str, error: sqlite3.Error) -> NodeFailure:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    told = f"{place}: {shortened(str(error), LONGEST_REASON)}"
    if code == sqlite3.SQLITE_INTERRUPT:
        return NodeFailure.timeout(told)
    return NodeFailure.transient(told) if code in GOES_BY else NodeFailure.permanent(told)


def _insert_text(insertion: Insertion) -> str:
    table, columns = named(insertion)
    places = ", ".join("?" for _ in insertion.columns)
    return f"insert into {table} ({columns}) values ({places}){on_conflict(insertion)}"
