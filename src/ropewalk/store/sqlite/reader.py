"""Reading a store: by its owner beside its writing, or by another process."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from ropewalk.core.errors import RopewalkError
from ropewalk.store.access import Row, Value
from ropewalk.store.errors import StoreUnavailable
from ropewalk.store.sqlite.connection import check_path, connect_reader, statements
from ropewalk.store.sqlite.faults import at_the_door
from ropewalk.store.texts import normal


class SqliteReader:
    """Reads what is committed; never waits for the writer and never makes it wait."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._statements = statements()
        self._near: sqlite3.Connection | None = connect_reader(path)
        self._far: sqlite3.Connection | None = None
        self._thread: ThreadPoolExecutor | None = None
        self.on_trouble: Callable[[RopewalkError], None] = lambda error: None

    @classmethod
    async def open(cls, path: str) -> Self:
        """A reader of the store at `path`, beside any owner."""
        with at_the_door(path):
            check_path(path, create=False)
            return cls(path)

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        """Every row the statement gives, read on the spot: for what an index finds at once."""
        with at_the_door(self.path, self.on_trouble):
            return self._opened().execute(self._statements[name], normal(arguments)).fetchall()

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        """The first row the statement gives, if any."""
        rows = await self.fetch(name, *arguments)
        return rows[0] if rows else None

    async def scan(self, name: str, *arguments: Value) -> list[Row]:
        """Like `fetch`, for what takes its time: in a thread, on a connection of its own."""
        self._opened()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="ropewalk-scan")
        loop = asyncio.get_running_loop()
        with at_the_door(self.path, self.on_trouble):
            return await loop.run_in_executor(self._thread, self._scan, name, arguments)

    def _scan(self, name: str, arguments: tuple[Value, ...]) -> list[Row]:
        if self._far is None:
            self._far = connect_reader(self.path)
        return self._far.execute(self._statements[name], normal(arguments)).fetchall()

    def _opened(self) -> sqlite3.Connection:
        if self._near is None:
            raise StoreUnavailable(f"{self.path} was closed: open it again")
        return self._near

    async def close(self) -> None:
        """Ends the reading; a scan under way ends first. Twice is once."""
        near, self._near = self._near, None
        if self._thread is not None:
            await asyncio.to_thread(self._thread.shutdown)
        for connection in (near, self._far):
            if connection is not None:
                connection.close()
