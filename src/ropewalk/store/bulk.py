"""Statements for many rows, derived from those for one.

Each statement of a batch is a plain one, for one row. In its form for many rows every parameter is a column of wherever
the rows come from, which each dialect has its own words for; so is what must hold for any of them to be written.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from msgspec import Struct

from ropewalk.store.errors import StoreDefect
from ropewalk.store.migrations import known_migrations
from ropewalk.store.queries import statements

_INSERT: Final = re.compile(r"insert into (\w+) \(([^)]*)\)\s+values \((.*?)\)\s*(on conflict.*)?", re.DOTALL)
_UPDATE: Final = re.compile(r"update (\w+)\s+(set .*?)\s+where (.*)", re.DOTALL)
_DELETE: Final = re.compile(r"delete from (\w+)\s+where (.*)", re.DOTALL)
_PARAMETER: Final = re.compile(r"\$(\d+)")
_EQUALS: Final = re.compile(r"\b(\w+) = \$(\d+)")
_EQUALS_ONLY: Final = re.compile(r"\w+ = \$\d+(\s+and \w+ = \$\d+)*")
_EXPECTED: Final = re.compile(r"select 1\s+from (\w+)\s+where (\w+ = \$\d+(?:\s+and \w+ = \$\d+)*)")
_TABLE: Final = re.compile(r"create table (\w+) \((.*)\)", re.DOTALL)
_KEY: Final = re.compile(r"(\w+) \w+ primary key|primary key \(([^)]*)\)")
_BYTES: Final = re.compile(r"(\w+) bytea")
_OWN: Final = re.compile(r"id|execution|run|node|item|seq|entry|data|object|trace_id|at|not_before|\w+_at")
"""Columns that tell one row from another of its kind: what it is about, what it holds, and when."""

Form = tuple[str, tuple[int, ...]]
"""The name of a statement, and which of its parameters are the same in every row."""
FEW: Final = 64
"""So many rows at least are worth a statement of their own, in which what they share is said once."""


class Bulk(Struct, frozen=True):
    """A statement for many rows: `{rows}` is where they come from, `{passed}` what must hold.

    `width` is how many parameters there are, `key` are those that name the row; none, where it is any number of rows of
    the table that go. `alike` are those in which the rows of a burst do not differ; `bytes_at` is the one that takes
    bytes, if any does.
    """

    table: str
    width: int
    key: tuple[int, ...]
    text: str
    alike: tuple[int, ...] = ()
    bytes_at: int | None = None

    @property
    def is_condition(self) -> bool:
        """Whether it writes nothing, and finds a row only where one is missing that must be there."""
        return self.text.startswith("select")

    @property
    def is_update(self) -> bool:
        return self.text.startswith("update")

    def written(self, rows: str, passed: str) -> str:
        """The statement with a dialect's words in it."""
        return self.text.format(rows=rows, passed=passed)


@cache
def bulk(name: str) -> Bulk:
    """The form for many rows of the statement of this name."""
    text = statements().get(name, "")
    for pattern, form in ((_INSERT, _insert), (_UPDATE, _update), (_DELETE, _delete), (_EXPECTED, _expected)):
        if found := pattern.fullmatch(text):
            return form(found, len(set(_PARAMETER.findall(text))))
    raise StoreDefect(f"{name} cannot be part of a batch: it is no plain insert, update or delete")


def _insert(found: re.Match[str], width: int) -> Bulk:
    table, columns, values, conflict = found.groups()
    placed = dict(zip(re.split(r",\s*", columns), re.split(r",\s*", values), strict=True))
    key = tuple(int(placed[column][1:]) - 1 for column in primary_keys()[table])
    head = f"insert into {table} ({columns}) select {_from_rows(values)} from {{rows}} where {{passed}}"
    kept_as_bytes = [int(placed[column][1:]) - 1 for column in _columns_of_bytes()[table] if column in placed]
    alike = _alike([(column, value[1:]) for column, value in placed.items() if value[0] == "$"], width)
    return Bulk(table, width, key, f"{head} {conflict}" if conflict else head, alike, *kept_as_bytes)


def _update(found: re.Match[str], width: int) -> Bulk:
    table, changes, condition = found.groups()
    if not (key := _named_by(table, condition)):
        raise StoreDefect(f"an update of {table} cannot be part of a batch unless it names its row")
    text = f"update {table} {_from_rows(changes)} from {{rows}} where {_from_rows(condition)} and {{passed}}"
    return Bulk(table, width, key, text, _alike(_EQUALS.findall(changes), width))


def _delete(found: re.Match[str], width: int) -> Bulk:
    table, condition = found.groups()
    if not _EQUALS_ONLY.fullmatch(condition):
        raise StoreDefect(f"a delete from {table} cannot be part of a batch unless it says what its rows are equal to")
    columns, values = zip(*_EQUALS.findall(condition), strict=True)
    wanted = ", ".join(f"x.p{number}" for number in values)
    text = f"delete from {table} where ({', '.join(columns)}) in (select {wanted} from {{rows}}) and {{passed}}"
    return Bulk(table, width, _named_by(table, condition), text)


def _expected(found: re.Match[str], width: int) -> Bulk:
    """Named by a table of its own: it may be together with what changes the same row."""
    table, condition = found.groups()
    text = f"select 1 from {{rows}} where not exists (select 1 from {table} where {_from_rows(condition)})"
    return Bulk(f"expected {table}", width, _named_by(table, condition), text)


def _alike(placed: Sequence[tuple[str, str]], width: int) -> tuple[int, ...]:
    """The parameters of columns that are no row's own; none, if that would leave less of a row than two.

    Those of bytes are never among them: on a file they go their own way, and the others of their row with them.
    """
    alike = tuple(sorted({int(number) - 1 for column, number in placed if not _OWN.fullmatch(column)}))
    return alike if width - len(alike) > 1 else ()


def _from_rows(text: str) -> str:
    return _PARAMETER.sub(lambda number: f"x.p{number[1]}", text)


def _named_by(table: str, condition: str) -> tuple[int, ...]:
    equal = {column: int(number) - 1 for column, number in _EQUALS.findall(condition)}
    key = tuple(equal[column] for column in primary_keys()[table] if column in equal)
    return key if len(key) == len(primary_keys()[table]) else ()


def shared(form: Bulk, columns: Sequence[Sequence[Any]]) -> tuple[int, ...]:
    """The parameters to say once: all those in which rows may be alike, if all of these rows are, else none.

    So there are two forms of a statement and no more, and no mixture is a new one that has to be prepared first.
    """
    count = len(columns[0])
    is_worth_it = count >= FEW and all(columns[at].count(columns[at][0]) == count for at in form.alike)
    return form.alike if is_worth_it else ()


@cache
def primary_keys() -> Mapping[str, tuple[str, ...]]:
    """The columns that name a row, by table."""
    return {table: _key(columns) for table, columns in _tables()}


def _key(columns: str) -> tuple[str, ...]:
    found = _KEY.search(columns)
    assert found, "every table has a key"
    return (found[1],) if found[1] else tuple(re.split(r",\s*", found[2]))


@cache
def _columns_of_bytes() -> Mapping[str, list[str]]:
    return {table: _BYTES.findall(columns) for table, columns in _tables()}


@cache
def _tables() -> list[tuple[str, str]]:
    texts = (text for step in known_migrations() for text in step.statements)
    return [(found[1], found[2]) for found in map(_TABLE.fullmatch, texts) if found]
