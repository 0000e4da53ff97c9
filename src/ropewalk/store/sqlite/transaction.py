"""Several statements as one, on the connection that writes."""

from collections.abc import Awaitable, Callable, Sequence

from ropewalk.store.access import Row, Value
from ropewalk.store.sqlite.writer import Writer

Rows = Sequence[Sequence[Value]]


class SqliteTransaction:
    """One transaction, between `async with store.transaction()` and its end."""

    def __init__(self, writer: Writer, execute_many: Callable[[str, Rows], Awaitable[None]]) -> None:
        """`execute_many` writes many rows where they do not hold up the loop."""
        self.worker = writer.worker
        self._writer: Writer | None = writer
        self._execute_many = execute_many

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        """Every row the statement gives, what was written before in this transaction included."""
        return self._opened().execute(name, arguments).fetchall()

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        """The first row the statement gives, if any."""
        rows = await self.fetch(name, *arguments)
        return rows[0] if rows else None

    async def execute(self, name: str, *arguments: Value) -> int:
        """Carries the statement out; how many rows it touched."""
        return self._opened().execute(name, arguments).rowcount

    async def execute_many(self, name: str, rows: Rows) -> None:
        """Carries the statement out once per row."""
        self._opened()
        await self._execute_many(name, rows)

    def end(self) -> None:
        """Nothing more may be done with it."""
        self._writer = None

    def _opened(self) -> Writer:
        if self._writer is None:
            raise RuntimeError("the transaction is over")
        return self._writer
