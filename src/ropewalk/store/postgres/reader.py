"""Reading the shared store, by a worker beside its writing, or by a process that only reads."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Self

import asyncpg

from ropewalk.store.access import Row, Value
from ropewalk.store.errors import StoreUnavailable
from ropewalk.store.postgres.connection import (
    CONNECT_SECONDS,
    READING,
    Address,
    Connection,
    begun,
    bounded,
    parsed,
    statements,
    undone,
)
from ropewalk.store.postgres.faults import DRIVER_ERRORS, at_the_door, is_lost
from ropewalk.store.postgres.migrating import require_current
from ropewalk.store.postgres.together import KINDS, Together
from ropewalk.store.texts import normal

CONNECTIONS: Final = 4
ACQUIRE_SECONDS: Final = 10.0
RELEASE_SECONDS: Final = 2.0
SCAN_SECONDS: Final = 300
_SCANNING: Final = (
    "begin read only; set local enable_hashjoin = on; set local enable_mergejoin = on; "
    f"set local statement_timeout = '{SCAN_SECONDS}s'"
)


class Pool:
    """A few connections of one kind, made when they are needed."""

    def __init__(self, address: Address, settings: dict[str, str], name: str, most: int = CONNECTIONS, *,
                 is_bounded: bool = False) -> None:  # fmt: skip
        self.address = address
        self.settings = settings
        self._name = name
        self._most = most
        self._is_bounded = is_bounded and not address.is_pooled
        self._pool: Any = None
        self._is_closed = False

    async def open(self) -> None:
        """Makes the first connection, so that a wrong address is said now."""
        self._pool = await asyncpg.create_pool(
            self.address.url,
            # None that it must have: the driver would look for it in vain, and loudly, while the server is away.
            min_size=0,
            max_size=self._most,
            timeout=CONNECT_SECONDS,
            reset=undone,
            init=bounded if self._is_bounded else None,
            **self._options(self._name),
        )
        async with self.address.new_enough():
            connection = await self._pool.acquire()
        try:
            self.address.require_version(connection)
        finally:
            await self._pool.release(connection)

    async def rename(self, name: str) -> None:
        """The connections are told from those of others by this name from now on."""
        self._name = name
        self._pool.set_connect_args(self.address.url, timeout=CONNECT_SECONDS, **self._options(name))
        await self._pool.expire_connections()

    def _options(self, name: str) -> dict[str, Any]:
        return self.address.options(self.settings, name)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """One of the connections, for the caller to ask `at_the_door`: what else goes on meanwhile is not ours."""
        if self._is_closed:
            raise StoreUnavailable(f"{self.address.place} was closed: open it again")
        with at_the_door(self.address.place):
            connection = await self._acquired()
        try:
            yield connection
        finally:
            # A connection that cannot be put in order is thrown away by its pool. The caller need not hear of that: its
            # question was answered or not, and a cancelled caller is to stop.
            with suppress(*DRIVER_ERRORS):
                await self._pool.release(connection, timeout=RELEASE_SECONDS)

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[Connection]:
        """The same for statements alone: what goes wrong leaves as one of our errors, and a pooler does no harm."""
        async with self.connection() as connection:
            with at_the_door(self.address.place):
                async with self.address.whole(connection, self.settings, self._name):
                    yield connection

    async def _acquired(self) -> Connection:
        try:
            return await self._pool.acquire(timeout=ACQUIRE_SECONDS)
        except TimeoutError as error:
            raise StoreUnavailable(
                f"{self.address.place}: none of our {self._most} connections was free or could be made "
                f"in {ACQUIRE_SECONDS:g} s; try again"
            ) from error

    async def close(self) -> None:
        """Hangs up; what is under way may take a moment to end. Twice is once."""
        self._is_closed = True
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            await asyncio.wait_for(pool.close(), 5)
        except DRIVER_ERRORS:
            pool.terminate()


class PostgresReader:
    """Reads what is committed; cannot write."""

    def __init__(self, address: Address, most: int = CONNECTIONS) -> None:
        """Not connected yet; use `open`."""
        self.path = address.place
        self._pool = Pool(address, READING, "ropewalk reader", most)
        self._statements = statements()
        self._together = Together(self.ask)

    @classmethod
    async def open(cls, url: str, *, pooled: bool = False) -> Self:
        """A reader of the store at this address, beside any workers."""
        address = parsed(url, is_pooled=pooled)
        reader = cls(address)
        try:
            await reader.connect()
            await reader.check_schema()
        except BaseException:
            await reader.close()
            raise
        return reader

    async def connect(self) -> None:
        """Makes the first connection."""
        with at_the_door(self.path):
            await self._pool.open()

    async def check_schema(self) -> None:
        """Refuses a database that is not of exactly our schema."""
        async with self._pool.asking() as connection:
            await require_current(connection, self.path)

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        """Every row the statement gives, of what is committed."""
        if name in KINDS:
            return await self._together.rows(name, normal(arguments))
        return await self.ask(self._statements[name], *normal(arguments))

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        """The first row the statement gives, if any."""
        rows = await self.fetch(name, *arguments)
        return rows[0] if rows else None

    async def scan(self, name: str, *arguments: Value) -> list[Row]:
        """Like `fetch`, for what takes its time."""
        async with self._pool.connection() as connection:
            try:
                with at_the_door(self.path):
                    await begun(connection, _SCANNING)
                    text = self._statements[name]
                    rows = await connection.fetch(text, *normal(arguments), timeout=SCAN_SECONDS + 10)
                return [tuple(row) for row in rows]
            finally:
                await undone(connection)

    async def ask(self, text: str, *arguments: Any) -> list[Row]:
        """What PostgreSQL answers; asked a second time if the first connection turns out to be dead."""
        try:
            return await self._ask(text, *arguments)
        except StoreUnavailable as error:
            if error.__cause__ is None or not is_lost(error.__cause__):
                raise
        return await self._ask(text, *arguments)

    async def _ask(self, text: str, *arguments: Any) -> list[Row]:
        async with self._pool.asking() as connection:
            return [tuple(row) for row in await connection.fetch(text, *arguments)]

    async def close(self) -> None:
        """Ends the reading. Twice is once."""
        await self._pool.close()
