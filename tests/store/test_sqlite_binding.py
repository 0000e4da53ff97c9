"""Nulls that all rows of a batch share are no parameters; what is written is the same."""

import pytest

from ropewalk.store.sqlite import SqliteStore
from ropewalk.store.sqlite.binding import bound
from tests.store.samples import ask, tell

TEXT = "insert into four (a, b, c, d) values (?1, ?2, ?3, ?4)"


@pytest.mark.parametrize(
    ("rows", "text", "given"),
    [
        ([(1, None, "x", None), (2, None, "y", None)], "values (?1, null, ?2, null)", [(1, "x"), (2, "y")]),
        ([(1, None, "x", None), (2, 0, "y", None)], "values (?1, ?2, ?3, null)", [(1, None, "x"), (2, 0, "y")]),
        ([(1, None, None, ""), (2, None, 0, None)], "values (?1, null, ?2, ?3)", [(1, None, ""), (2, 0, None)]),
        ([(1, 2, 3, 4), (None, None, None, None)], "values (?1, ?2, ?3, ?4)", [(1, 2, 3, 4), (None,) * 4]),
        ([(None, None, None, 4)], "values (?1, ?2, ?3, ?4)", [(None, None, None, 4)]),
        ([(None,) * 4], "values (?1, ?2, ?3, ?4)", [(None,) * 4]),
        ([], "values (?1, ?2, ?3, ?4)", []),
    ],
)
def test_what_is_null_in_every_row_becomes_a_literal(rows, text, given):
    statement, left = bound(TEXT, rows)

    assert statement.removeprefix("insert into four (a, b, c, d) ") == text
    assert list(left) == given


def test_a_parameter_used_twice_is_null_twice():
    statement, left = bound("update four set a = ?2, b = ?3, c = ?1 where d = ?3 and a is ?2", [(1, None, 3)])

    assert statement == "update four set a = null, b = ?2, c = ?1 where d = ?2 and a is null"
    assert list(left) == [(1, 3)]


@pytest.mark.parametrize("size", [2, 500])
async def test_rows_are_stored_as_they_were_given(sqlite_store: SqliteStore, path: str, size: int):
    tell(path, "create table four (a, b, c, d)")
    sqlite_store._statements = {**sqlite_store._statements, "insert_four": TEXT}
    rows = [(number, None, "x" if number % 2 else None, None) for number in range(size)]

    await sqlite_store.write([("insert_four", rows)])

    assert ask(path, "select a, b, c, d from four order by a") == rows
