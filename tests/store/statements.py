"""Rows for any statement a batch may be made of."""

from typing import Any

from ropewalk.store.bulk import bulk, primary_keys
from ropewalk.store.rows import ROWS

INSERTS = [name for name in ROWS if name.startswith(("insert", "upsert"))]
CHANGES = [name for name in ROWS if name not in INSERTS]


def is_for_what_is_there(name: str) -> bool:
    """Whether the statement has something to say about rows that are there already."""
    return not name.startswith("insert") or name in ("insert_queue", "insert_event_wait", "insert_blob")


def as_in_a_burst(name: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows with what tells none of them from another made the same."""
    first, alike = rows[0], bulk(name).alike
    return [tuple(first[at] if at in alike else value for at, value in enumerate(row)) for row in rows]


class Samples:
    """Rows for any statement: every third value that may be null is."""

    def __init__(self, kinds: list[tuple[str, str, str]], nullable: list[tuple[str, str]]) -> None:
        self._kinds = {(table, column): kind for table, column, kind in kinds}
        self._nullable = set(nullable)

    def rows(self, name: str, count: int, turn: int) -> list[tuple[Any, ...]]:
        table = bulk(name).table
        return [tuple(self._value(table, column, n, turn) for column in ROWS[name]) for n in range(count)]

    def _value(self, table: str, column: str, n: int, turn: int) -> Any:
        is_key = column in primary_keys()[table] or column in ("run", "id", "execution")
        if column == "resolution":
            return "PENDING" if turn == 0 else "DISCARDED"
        if not is_key and (table, column) in self._nullable and n % 3 == turn % 3:
            return None
        match self._kinds.get((table, column), "text"):
            case "bigint":
                return n if is_key else n * 10 + turn
            case "bytea":
                return bytes([n % 256, turn, 0])
            case _:
                return f"{column}{n}" if is_key else f"{column}{n}-{turn} ü"
