"""What a command that only looks asks for: the server, who is alive on it, and the values too large for the log."""

from contextlib import AbstractAsyncContextManager
from typing import Final

from msgspec import Struct

from ropewalk.store.access import Row, Transaction, Value
from ropewalk.store.errors import StoreUnavailable
from ropewalk.store.migrations import known_migrations
from ropewalk.store.postgres.blobs import PostgresBlobs
from ropewalk.store.postgres.connection import parsed
from ropewalk.store.postgres.heartbeat import HELD, lock_key
from ropewalk.store.postgres.migrating import DATABASE_TIME
from ropewalk.store.postgres.reader import PostgresReader

_SERVER: Final = """
select current_setting('server_version'), cast(current_setting('server_version_num') as bigint), pg_is_in_recovery(),
       current_setting('fsync') = 'on', cast(current_setting('max_connections') as bigint),
       cast(current_setting('superuser_reserved_connections') as bigint)
       + cast(coalesce(current_setting('reserved_connections', true), '0') as bigint),
       (select count(*) from pg_stat_activity where backend_type = 'client backend'),
       coalesce(has_schema_privilege(current_schema(), 'create'), false)
"""
_DENIED: Final = """
select c.relname || ': ' || string_agg(lower(r.wanted), ', ' order by r.wanted)
  from pg_class as c
 cross join unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) as r(wanted)
 where c.relkind = 'r' and c.relnamespace = (select oid from pg_namespace where nspname = current_schema())
   and not has_table_privilege(c.oid, r.wanted)
 group by c.relname
 order by c.relname
"""
_TABLE: Final = "select 1 from pg_class where oid = to_regclass('migration')"


class Server(Struct, frozen=True):
    """How a server is, and what it lets this user do; `denied` names each table and the rights on it that lack."""

    place: str
    denied: tuple[str, ...]
    steps_taken: int
    steps_known: int
    version: str
    version_number: int
    is_standby: bool
    has_fsync: bool
    most_connections: int
    reserved_connections: int
    connections: int
    may_create: bool


async def look_at(reader: PostgresReader) -> Server:
    """The server as it is now, with any content of the database."""
    [about] = await reader.ask(_SERVER)
    denied = [row[0] for row in await reader.ask(_DENIED)]
    # A user that may only read sees how far it is all the same.
    is_hidden = any(each.startswith("migration: ") and "select" in each for each in denied)
    is_ours = bool(await reader.ask(_TABLE)) and not is_hidden
    taken = len(await reader.fetch("applied_migrations")) if is_ours else 0
    return Server(reader.path, tuple(denied), taken, len(known_migrations()), *about)


async def any_reader(url: str, *, pooled: bool = False) -> PostgresReader:
    """A reader of any database, also one without our tables."""
    reader = PostgresReader(parsed(url, is_pooled=pooled))
    try:
        await reader.connect()
    except BaseException:
        await reader.close()
        raise
    return reader


async def database_time(reader: PostgresReader) -> int:
    """The database's time (µs)."""
    [[now]] = await reader.ask(f"select {DATABASE_TIME}")
    return int(now)


async def vanished(reader: PostgresReader) -> list[str]:
    """The workers whose session the database has seen end, though they never said that they leave."""
    watched = [worker for (worker,) in await reader.fetch("watched_workers")]
    held = {key for (key,) in await reader.ask(HELD)}
    return [worker for worker in watched if lock_key(worker) not in held]


class _ReadOnly:
    def __init__(self, reader: PostgresReader) -> None:
        self._reader = reader

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        return await self._reader.fetch_one(name, *arguments)

    async def keep(self, name: str, *arguments: Value) -> None:
        raise self._refusal()

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        raise self._refusal()

    def now(self) -> int:
        raise self._refusal()

    def _refusal(self) -> StoreUnavailable:
        return StoreUnavailable(f"{self._reader.path} is open for reading only")


def blobs_of(reader: PostgresReader) -> PostgresBlobs:
    """The large values, to be read."""
    return PostgresBlobs(_ReadOnly(reader))
