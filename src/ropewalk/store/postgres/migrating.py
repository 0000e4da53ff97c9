"""The schema's steps on PostgreSQL: the same files, one worker at a time, and what only this database wants."""

import re
from typing import Final

from ropewalk.store.errors import NotADatabase
from ropewalk.store.migrations import Migration, known_migrations, pending, require_all
from ropewalk.store.postgres.connection import Connection, statements

DATABASE_TIME: Final = "cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)"

# Another process that is taking steps is waited for.
_LOCK: Final = 0x726F7065_77616C6B
_TEXT: Final = re.compile(r"\btext\b")

_TABLES: Final = (
    "select relname from pg_class where relkind = 'r' "
    "and relnamespace = (select oid from pg_namespace where nspname = current_schema())"
)

# Rows of these change or go all the time: room on the page keeps changes off the indexes, and sweeping early keeps the
# tables as small as what is in them.
_HOT: Final = {"live": 50, "queue": 70, "inbox": 90, "worker": 20, "event_wait": 90, "breaker": 50,
               "breaker_call": 50, "rate_limit": 50}  # fmt: skip
# The row of an execution changes once, at its end, and is a little longer then. With room for that on its page no index
# has to know; the price is a table of twice the pages.
_ENDING: Final = "alter table execution set (fillfactor = 45)"
# History may be long, and a step may have to look at all of it (s).
_LONGEST_STEP: Final = 3600.0
_SWEEPING: Final = (
    "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0, "
    "autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 500"
)


async def migrate(connection: Connection, place: str) -> None:
    """Brings the database up to date, if it is one of ours or empty."""
    if not pending(await _applied(connection, place), known_migrations(), place):
        return
    async with connection.transaction():
        await connection.execute(f"set local statement_timeout = '{_LONGEST_STEP:g}s'")
        await connection.execute("select pg_advisory_xact_lock($1)", _LOCK, timeout=_LONGEST_STEP)
        for step in pending(await _applied(connection, place), known_migrations(), place):
            await _take_step(connection, step)
        await _tune(connection)


async def require_current(connection: Connection, place: str) -> None:
    """Refuses a database, or the schema of it that is spoken to, that is not of exactly our schema."""
    require_all(await _applied(connection, place), known_migrations(), await _schema_of(connection, place))


async def _schema_of(connection: Connection, place: str) -> str:
    """The place with the one of its schemas that tables are made in."""
    schema = await connection.fetchval("select current_schema()")
    return place if schema is None else f"{place}, schema {schema}"


async def _applied(connection: Connection, place: str) -> list[tuple[int, str]]:
    names = [row[0] for row in await connection.fetch(_TABLES)]
    if "migration" in names:
        return [tuple(row) for row in await connection.fetch(statements()["applied_migrations"])]
    if "workflow" in names or "execution" in names:
        raise NotADatabase(f"{place} has tables, but not those of Ropewalk: choose another database or schema")
    return []


async def _take_step(connection: Connection, step: Migration) -> None:
    await connection.execute(statements()["create_migration"])
    for statement in step.statements:
        await connection.execute(with_byte_order(statement), timeout=_LONGEST_STEP)
    now = await connection.fetchval(f"select {DATABASE_TIME}")
    await connection.execute(statements()["insert_migration"], step.number, step.name, step.checksum, now)


def with_byte_order(statement: str) -> str:
    """The same step with text that compares by its bytes, also in a database created with another order."""
    if not statement.startswith(("create table", "alter table")):
        return statement
    return _TEXT.sub('text collate "C"', statement)


async def _tune(connection: Connection) -> None:
    for table, fill in _HOT.items():
        await connection.execute(f"alter table {table} set (fillfactor = {fill}, {_SWEEPING})")
    await connection.execute(_ENDING)
    # Compressing what is a hash away from being sent on is lost time.
    await connection.execute("alter table blob_content alter column data set storage external")
