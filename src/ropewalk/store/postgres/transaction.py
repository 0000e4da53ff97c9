"""Several statements as one, on a connection of the pool."""

from collections.abc import Sequence

from ropewalk.store.access import Row, Value
from ropewalk.store.postgres.connection import Connection, statements
from ropewalk.store.postgres.faults import at_the_door
from ropewalk.store.texts import normal, normal_rows


class PostgresTransaction:
    """One transaction, between `async with store.transaction()` and its end."""

    def __init__(self, connection: Connection, worker: str, place: str) -> None:
        self.worker = worker
        self._connection: Connection | None = connection
        self._place = place
        self._statements = statements()

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        """Every row the statement gives, what was written before in this transaction included."""
        connection = self._opened()
        with at_the_door(self._place):
            return [tuple(row) for row in await connection.fetch(self._statements[name], *normal(arguments))]

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        """The first row the statement gives, if any."""
        rows = await self.fetch(name, *arguments)
        return rows[0] if rows else None

    async def execute(self, name: str, *arguments: Value) -> int:
        """Carries the statement out; how many rows it touched."""
        connection = self._opened()
        with at_the_door(self._place):
            status: str = await connection.execute(self._statements[name], *normal(arguments))
        return int(status.rpartition(" ")[2])

    async def execute_many(self, name: str, rows: Sequence[Sequence[Value]]) -> None:
        """Carries the statement out once per row."""
        connection = self._opened()
        with at_the_door(self._place):
            await connection.executemany(self._statements[name], normal_rows(rows))

    def end(self) -> None:
        """Nothing more may be done with it."""
        self._connection = None

    def _opened(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("the transaction is over")
        return self._connection
