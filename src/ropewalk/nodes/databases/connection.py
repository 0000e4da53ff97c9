"""One open connection to a user's database, and how a few of them serve all nodes of a credential."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from msgspec import Struct

from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.network import Address
from ropewalk.nodes.sql_text import Statement, Values, quoted

MOST_CONNECTIONS = 4
IDLE_SECONDS = 60.0
# After these the next borrower of the connection finds it as it was; others may set something for the whole session.
LEAVES_NO_TRACE = frozenset(("select", "insert", "update", "delete", "with", "replace", "values", "table", "merge"))

Row = Sequence[Any]
Find = Callable[[str, int], Awaitable[Sequence[Address]]]
"""Gives the addresses of a host, every one of them vetted."""


class Terms(Struct, frozen=True):
    """What a transaction may do, and how long each of its statements may take, as far as the server can be told so."""

    seconds: float
    rows: int | None = None
    """How many rows of a statement are read."""
    is_read_only: bool = False


class Insertion(Struct, frozen=True):
    """Rows for a table: its columns, and what is done with a row whose key is there already."""

    table: tuple[str, ...]
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    update: tuple[str, ...] = ()
    is_upsert: bool = False
    """Whether a row whose key is there is no error: the columns of `update` are written, or none if it names none."""


def named(insertion: Insertion) -> tuple[str, str]:
    """The table and the columns as most databases write them."""
    return ".".join(map(_quoted, insertion.table)), _listed(insertion.columns)


def on_conflict(insertion: Insertion) -> str:
    """What PostgreSQL and SQLite do with a row whose key is there."""
    if not insertion.is_upsert:
        return ""
    keys = f" ({_listed(insertion.keys)})" if insertion.keys else ""
    changes = ", ".join(f"{_quoted(name)} = excluded.{_quoted(name)}" for name in insertion.update)
    return f" on conflict{keys} do update set {changes}" if changes else f" on conflict{keys} do nothing"


def _quoted(name: str) -> str:
    return quoted(name, '"')


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_quoted, names))


class Rows(Protocol):
    """What a statement gives: rows as they are asked for, or how many it changed."""

    columns: list[str]
    affected: int | None

    async def fetch(self, most: int) -> list[Row]:
        """The next rows, as JSON; none at the end."""
        ...


class Connection(Protocol):
    """A connection; what it raises is a `NodeFailure` that says whether trying again can help.

    A call that is cancelled cancels its statement at the server.
    """

    is_sound: bool
    """Whether another node may go on with it."""

    async def begin(self, terms: Terms) -> None: ...

    async def execute(self, statement: Statement, values: Values) -> Rows:
        """Carry out a statement. Its rows are to be fetched before the next one."""
        ...

    async def insert(self, insertion: Insertion, rows: Sequence[Row]) -> int:
        """Insert these rows; how many the database says it changed."""
        ...

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...

    async def close(self) -> None: ...


class Pool:
    """The open connections to one database; at most a few, and none for long that no node uses."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], *, keeps: bool = True) -> None:
        self._connect = connect
        self._keeps = keeps
        self._turns = asyncio.Semaphore(MOST_CONNECTIONS)
        self._idle: list[tuple[Connection, float]] = []
        self._closing: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def transaction(self, terms: Terms) -> AsyncIterator[Connection]:
        """A connection in a transaction, which is committed at the end, or rolled back if anything was raised."""
        async with self._turns:
            connection = await self._begun(terms)
            try:
                yield connection
                await connection.commit()
            except BaseException:
                if connection.is_sound:
                    await connection.rollback()
                raise
            finally:
                await self._take_back(connection)

    async def _begun(self, terms: Terms) -> Connection:
        """A connection that has begun; one that lay idle may have been closed by its server meanwhile."""
        while self._idle:
            connection, _ = self._idle.pop()
            try:
                await connection.begin(terms)
                return connection
            except NodeFailure:
                await connection.close()
                if not self._idle:
                    break
        connection = await self._connect()
        try:
            await connection.begin(terms)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _take_back(self, connection: Connection) -> None:
        if not (connection.is_sound and self._keeps):
            await connection.close()
            return
        loop = asyncio.get_running_loop()
        self._idle.append((connection, loop.time() + IDLE_SECONDS))
        if self._closing is None:
            self._closing = loop.call_later(IDLE_SECONDS, self._close_idle)

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        now, self._closing = loop.time(), None
        for connection, _ in [each for each in self._idle if each[1] <= now]:
            task = loop.create_task(connection.close())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._idle = [each for each in self._idle if each[1] > now]
        if self._idle:
            self._closing = loop.call_at(self._idle[0][1], self._close_idle)

    async def close(self) -> None:
        """Closes what lies idle; what is lent is closed by its borrower."""
        if self._closing is not None:
            self._closing.cancel()
        idle, self._idle = self._idle, []
        await asyncio.gather(*(connection.close() for connection, _ in idle), *self._tasks, return_exceptions=True)
