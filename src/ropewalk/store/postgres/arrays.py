"""Columns, and what all rows share, as PostgreSQL reads them.

The driver looks at every value of an array several times before it sends it, which costs a commit more than anything
else it does here. So numbers and texts go as one text each, in PostgreSQL's own notation for arrays; bytes, which would
double in size, go as the driver sends them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ropewalk.store.access import Value
from ropewalk.store.errors import StoreDefect

BYTES: Final = "bytea"
NOTHING: Final = "{}"
"""Shorter than its neighbours, a column is filled up with nulls where they are unnested side by side."""


def sent(kind: str, place: int) -> str:
    """The array of this kind that a statement is sent as its parameter in this place."""
    return f"${place}::{kind}[]" if kind == BYTES else f"${place}::text::{kind}[]"


def written(kind: str, column: Sequence[Any]) -> str | Sequence[Any]:
    """The column as that parameter."""
    if kind == BYTES:
        return column
    if column[0] is None and column.count(None) == len(column):
        return NOTHING
    with _of(kind):
        return f"{{{_texts(column) if kind == 'text' else _numbers(column)}}}"


def sent_once(kind: str, place: int) -> str:
    """The value of this kind that a statement is sent as its parameter in this place."""
    return f"${place}::text::{kind}"


def written_once(kind: str, value: Value) -> str | None:
    """The value as that parameter. Of bytes there is none."""
    with _of(kind):
        return None if value is None else str.__str__(value) if kind == "text" else int.__repr__(value)


@contextmanager
def _of(kind: str) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError, AttributeError) as error:
        raise StoreDefect(f"a column of {kind} has something else in it: {error}") from error


def _numbers(column: Sequence[Any]) -> str:
    # Of a truth value this gives the number.
    if column.count(column[0]) == len(column):
        return ",".join([int.__repr__(column[0])] * len(column))
    if None not in column:
        return ",".join(map(int.__repr__, column))
    return ",".join("NULL" if each is None else int.__repr__(each) for each in column)


def _texts(column: Sequence[Any]) -> str:
    if None not in column:
        joined = '","'.join(column)
        if "\\" not in joined and joined.count('"') == 2 * (len(column) - 1):
            return f'"{joined}"'
    return ",".join("NULL" if each is None else _quoted(each) for each in column)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
