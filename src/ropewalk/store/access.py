"""What every dialect offers the nouns: reading by the name of a statement, and writing inside a transaction."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

Value: TypeAlias = str | int | bytes | None
Row: TypeAlias = tuple[Any, ...]
Batch: TypeAlias = Sequence[tuple[str, Sequence[Sequence[Value]]]]
"""What one commit writes: the name of each statement and its rows, in the order they are carried out."""


class Reader(Protocol):
    """Someone who can ask."""

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        """Every row the statement gives."""

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        """The first row the statement gives, if any."""


class Transaction(Reader, Protocol):
    """Someone who can also write; everything counts together, or nothing does."""

    async def execute(self, name: str, *arguments: Value) -> int:
        """Carries the statement out; how many rows it touched."""

    async def execute_many(self, name: str, rows: Sequence[Sequence[Value]]) -> None:
        """Carries the statement out once per row."""
