"""A long history in a moment: one real execution, copied by the database itself as often as wanted.

Every copy has all its rows, under an id of its own that is in the order of its time, as those of real ones are.
"""

import sqlite3
import sys
from collections.abc import Iterator
from typing import Any, Final

import asyncpg
from msgspec import Struct

from ropewalk.bench import native
from ropewalk.bench.shapes import single
from ropewalk.store.address import is_shared

AT_A_TIME: Final = 50_000
FIRST_MS: Final = 0x019000000000
"""When the first of them was accepted, long ago (ms)."""
APART_MS: Final = 40
COPIED: Final = ("execution", "log", "run", "audit")


class Dialect(Struct, frozen=True):
    """What the two databases say differently: a number as 12 hex digits, bytes as text and back."""

    hexed: str
    decoded: str
    encoded: str


SQLITE: Final = Dialect("printf('%012x', {})", "cast({} as text)", "cast({} as blob)")
POSTGRES: Final = Dialect("lpad(to_hex({}), 12, '0')", "convert_from({}, 'UTF8')", "convert_to({}, 'UTF8')")


async def make(db: str, size: int) -> None:
    """So many finished executions are in the store, and its statistics know."""
    async with native.opened(db) as prepare:
        await (await prepare(single()))()
    if is_shared(db):
        await _make_postgres(db, size)
    else:
        _make_sqlite(db, size)


async def _make_postgres(db: str, size: int) -> None:
    # Only here: what is made can be made again.
    connection = await asyncpg.connect(db, server_settings={"synchronous_commit": "off"})
    try:
        template = await connection.fetchval("select id from execution")
        columns = {table: await _postgres_columns(connection, table) for table in COPIED}
        for statement in copies(POSTGRES, columns, template, size):
            await connection.execute(statement)
        await connection.execute("vacuum analyze")
        if await connection.fetchval("select pg_has_role('pg_checkpoint', 'usage')"):
            # What is left to write of all this is not to be written while others are measured.
            await connection.execute("checkpoint")
    finally:
        await connection.close()


async def _postgres_columns(connection: Any, table: str) -> list[str]:
    asked = (
        "select attname from pg_attribute "
        "where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum"
    )
    return [row[0] for row in await connection.fetch(asked, table)]


def _make_sqlite(db: str, size: int) -> None:
    connection = sqlite3.connect(db, isolation_level=None)
    try:
        connection.execute("pragma synchronous = off")
        (template,) = connection.execute("select id from execution").fetchone()
        columns = {table: [row[1] for row in connection.execute(f"pragma table_info({table})")] for table in COPIED}
        for statement in copies(SQLITE, columns, template, size):
            connection.execute(statement)
        connection.execute("analyze")
    finally:
        connection.close()


def copies(dialect: Dialect, columns: dict[str, list[str]], template: str, size: int) -> Iterator[str]:
    """The statements that copy everything an execution has written, some of the copies at a time."""
    for table in columns:
        # Apart from the copies: to find them again among those, by a column without an index, would take for ever.
        yield f"create temporary table first_{table} as select * from {table} where {_whose(table)} = '{template}'"
    for first in range(1, size + 1, AT_A_TIME):
        numbers = range(first, min(first + AT_A_TIME, size + 1))
        for table, names in columns.items():
            yield _copy(dialect, table, names, template, numbers)
        print(f"{numbers[-1]:,} of {size:,} executions made", file=sys.stderr, flush=True)


def _whose(table: str) -> str:
    """The column that says whose row it is."""
    return {"execution": "id", "audit": "object"}.get(table, "execution")


def _copy(dialect: Dialect, table: str, names: list[str], template: str, numbers: range) -> str:
    return (
        f"with recursive numbers (n) as (select {numbers[0]} union all select n + 1 from numbers where n < "
        f"{numbers[-1]}), copies (copy) as (select {_id(dialect)} from numbers) "
        f"insert into {table} ({', '.join(names)}) "
        f"select {', '.join(_value(dialect, table, name, template) for name in names)} from copies, first_{table}"
    )


def _id(dialect: Dialect) -> str:
    """An id whose first half is its time, and whose other half looks like chance."""
    at = dialect.hexed.format(f"({FIRST_MS} + {APART_MS} * cast(n as bigint))")
    rest = dialect.hexed.format("(cast(n as bigint) * 2654435761 % 281474976710656)")
    return f"substr({at}, 1, 8) || '-' || substr({at}, 9, 4) || '-7000-8000-' || {rest}"


def _value(dialect: Dialect, table: str, name: str, template: str) -> str:
    if name == _whose(table):
        return "copy"
    if name == "id":
        # The first half is the copy's, the other tells the rows of one execution apart.
        return f"substr(copy, 1, 23) || substr(first_{table}.id, 24)"
    if (table, name) == ("execution", "trace_id"):
        return "replace(copy, '-', '')"
    if name == "entry":
        replaced = f"replace({dialect.decoded.format(f'first_{table}.entry')}, '{template}', copy)"
        return dialect.encoded.format(replaced)
    return f"first_{table}.{name}"
