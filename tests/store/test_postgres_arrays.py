"""What is sent as a column arrives as that column, with any values."""

from typing import Any

import asyncpg
import pytest

from ropewalk.store.errors import StoreDefect
from ropewalk.store.postgres.arrays import sent, written

PLAIN = ["e1", "e2", "ü 漢 🪢"]
NASTY = [
    "",
    " ",
    "NULL",
    "null",
    "{}",
    '{"a": "b\\n"}',
    '"',
    '""',
    "\\",
    '\\"',
    '","',
    'a","b',
    "a,b",
    "\n\t\r",
    "'",
    "$1",
]
LARGEST = 2**63 - 1


async def returned(database: str, kind: str, column: list[Any]) -> list[Any]:
    """The column as the database has it, beside one that has a value in every row."""
    text = f"select x.value from unnest({sent(kind, 1)}, {sent('int8', 2)}) as x(value, row) order by x.row"
    connection = await asyncpg.connect(database)
    try:
        rows = await connection.fetch(text, written(kind, column), written("int8", range(len(column))))
        return [row["value"] for row in rows]
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("text", PLAIN),
        ("text", NASTY),
        *[("text", [each]) for each in NASTY],
        ("text", [None, *PLAIN]),
        ("text", [*NASTY, None]),
        ("text", [None, None]),
        ("int8", [0, -1, LARGEST, -LARGEST - 1]),
        ("int8", [None, 7, None]),
        ("int8", [None]),
        ("bytea", [b"", b"\0\\x{}", None]),
        ("bytea", [None, None]),
    ],
)
async def test_a_column_arrives_as_it_was_sent(database: str, kind: str, column: list[Any]):
    assert await returned(database, kind, column) == column


async def test_a_truth_value_is_a_number(database: str):
    assert await returned(database, "int8", [True, False]) == [1, 0]


@pytest.mark.parametrize(
    ("kind", "column"), [("text", ["a", 1]), ("text", [b"a"]), ("int8", ["1"]), ("int8", [None, 1.5])]
)
def test_what_does_not_fit_a_column_is_said_before_it_is_sent(kind: str, column: list[Any]):
    with pytest.raises(StoreDefect, match=f"a column of {kind} has something else in it"):
        written(kind, column)
