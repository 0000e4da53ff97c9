"""How the database is reached: the address, and the settings of each kind of connection."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg
from msgspec import Struct

from ropewalk.store.errors import IncompatibleStore, StoreUnavailable
from ropewalk.store.postgres.faults import DRIVER_ERRORS
from ropewalk.store.queries import rendered

Connection: TypeAlias = Any
"""asyncpg has no types; nothing of it leaves this package."""

OLDEST: Final = 12
"""The first version with `as materialized` and with `plan_cache_mode`; nothing we ask for is younger."""

CONNECT_SECONDS: Final = 10.0
COMMAND_SECONDS: Final = 45.0
"""Longer than any statement may take: past it the server is not slow but silent."""

_HOST: Final = re.compile(r"(\[[^\]]*\]|[^:\]]*)(:\d+)?")
_UNREADABLE: Final = (
    "the address of the database cannot be read: it is like postgresql://user:password@host:5432/database, "
    "with special signs in name and password escaped as in %40"
)
_MARKERS: Final = {
    "skip_locked": "for update skip locked",
    "for_update": "for update",
    "for_key_share": "for key share",
    "each_of_the_list": "select jsonb_array_elements_text(cast($1 as jsonb))",
    # By the name of the session, of which the database keeps the first 63 bytes: one as long as that may be another's.
    # Behind a pooler it is that of the transaction, and gone with it.
    "hang_up": """
select pg_terminate_backend(session.pid)
  from worker
 inner join pg_stat_activity as session
         on session.application_name in ('ropewalk ' || worker.id || ' writer', 'ropewalk ' || worker.id || ' changes',
                                         'ropewalk ' || worker.id || ' heartbeat')
 where worker.heartbeat_at < $1 and session.datname = current_database() and session.xact_start is not null
   and length(session.application_name) < 63 and pg_has_role(session.usesysid, 'usage')""",
}

_SHARED: Final = {
    "synchronous_commit": "on",
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    # A worker that was stopped inside a transaction must not hold up the workers that take over from it.
    "idle_in_transaction_session_timeout": "5s",
    "jit": "off",
}
# Nearly everything is asked of an index, for a few rows: never mind what the planner makes of tables that are empty now
# and large in an hour. A plan for reading is made anew each time, since one kept from when a table was small is ruinous
# later; where something is changed only indexes are left to choose from, and to plan a claim takes as long as to do it.
_BY_INDEX: Final = {"enable_hashjoin": "off", "enable_mergejoin": "off"}
READING: Final = {
    **_SHARED,
    **_BY_INDEX,
    "default_transaction_read_only": "on",
    "plan_cache_mode": "force_custom_plan",
}
CHANGING: Final = {
    **_SHARED,
    **_BY_INDEX,
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
}
# Every row a batch changes is named by its key, so the plan can be kept, which saves planning a dozen statements with
# every commit.
WRITING: Final = {**_SHARED, **_BY_INDEX, "enable_seqscan": "off", "plan_cache_mode": "force_generic_plan"}
_BOUNDED: Final = (
    "select set_config('transaction_timeout', '10s', false) "
    "where cast(current_setting('server_version_num') as bigint) >= 170000"
)
BEATING: Final = {**_SHARED, "statement_timeout": "5s", "lock_timeout": "5s"}


@cache
def statements() -> dict[str, str]:
    """Every statement in PostgreSQL's words."""
    return rendered(_MARKERS, "$")


class Address(Struct, frozen=True):
    """Where the database is. `place` is for people and has no secret in it."""

    url: str
    place: str
    is_pooled: bool

    async def connect(self, settings: Mapping[str, str], name: str) -> Connection:
        """A connection with these settings; behind a pooler they are set by each transaction, see `beginning`."""
        async with self.new_enough():
            return await asyncpg.connect(self.url, timeout=CONNECT_SECONDS, **self.options(settings, name))

    @asynccontextmanager
    async def new_enough(self) -> AsyncIterator[None]:
        """Says which version a server has that refuses the connection for a setting it does not know: it is too old."""
        try:
            yield
        except asyncpg.UndefinedObjectError:
            connection = await asyncpg.connect(self.url, timeout=CONNECT_SECONDS)
            try:
                self.require_version(connection)
            finally:
                await closed(connection)
            raise

    def require_version(self, connection: Connection) -> None:
        """Refuses a server that is older than what we ask of it."""
        if connection.get_server_version().major < OLDEST:
            found = connection.get_settings().server_version.partition(" ")[0]
            raise IncompatibleStore(f"{self.place} is of PostgreSQL {found}, and {OLDEST} or newer is needed")

    def options(self, settings: Mapping[str, str], name: str) -> dict[str, Any]:
        """What asyncpg is to be told, for a connection or a pool of them."""
        if self.is_pooled:
            # The next transaction may be on another server connection, which knows nothing of the last one's.
            return {"command_timeout": COMMAND_SECONDS, "statement_cache_size": 0}
        return {
            "command_timeout": COMMAND_SECONDS,
            "statement_cache_size": 512,
            "server_settings": {**settings, "application_name": name[:63]},
        }

    def beginning(self, settings: Mapping[str, str], name: str) -> str:
        """The statements that open a transaction with these settings in force, under this name."""
        if not self.is_pooled:
            return "begin"
        # The driver sets jit for itself when it learns types, and would leave ours behind in the server's session.
        wanted = (f"set local {name} = '{value}'" for name, value in settings.items() if name != "jit")
        return "; ".join(["begin", f"set local application_name = '{name[:63]}'", *wanted])

    @asynccontextmanager
    async def whole(self, connection: Connection, settings: Mapping[str, str], name: str) -> AsyncIterator[None]:
        """What is asked inside goes to one server connection: behind a pooler that takes a transaction."""
        if not self.is_pooled:
            yield
            return
        try:
            await begun(connection, self.beginning(settings, name))
            yield
            await connection.execute("commit")
        finally:
            await undone(connection)


def parsed(url: str, *, is_pooled: bool) -> Address:
    """The address in a `postgresql://` URL."""
    try:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        hosts = parts.netloc.rpartition("@")[2] or query.get("host", ["the local server"])[0]
    except ValueError as error:
        raise StoreUnavailable(_UNREADABLE) from error
    if parts.scheme not in ("postgres", "postgresql"):
        raise StoreUnavailable(f"an address of PostgreSQL begins with postgresql://, this one with {parts.scheme!r}")
    # Told without repeating any of it: a password with an unescaped sign may be in the wrong part.
    if ("@" in url and "@" not in parts.netloc) or any(not _HOST.fullmatch(host) for host in hosts.split(",")):
        raise StoreUnavailable(_UNREADABLE)
    database = unquote(parts.path.lstrip("/")) or query.get("dbname", ["(the user's)"])[0]
    return Address(url, f"database {database} at {hosts}", is_pooled)


async def bounded(connection: Connection) -> None:
    """No transaction on it lasts for long, also when its client hangs.

    A worker stopped in the middle of a message keeps its locks, and neither a statement nor a session is idle then.
    PostgreSQL before 17 cannot tell; behind a pooler the session is not ours.
    """
    await connection.execute(_BOUNDED)


async def closed(connection: Connection | None) -> None:
    """Hangs up, politely if the server is there."""
    if connection is None or connection.is_closed():
        return
    try:
        await connection.close(timeout=2)
    except DRIVER_ERRORS:
        connection.terminate()


async def begun(connection: Connection, words: str) -> str:
    """Opens a transaction; a task interrupted meanwhile leaves none open, though the driver knows of none yet."""
    try:
        status: str = await connection.execute(words)
    except (asyncio.CancelledError, TimeoutError):
        await _rolled_back(connection)
        raise
    return status


async def undone(connection: Connection) -> None:
    """What is open on the connection is rolled back; a connection that cannot do that is thrown away."""
    try:
        if connection.is_closed() or not connection.is_in_transaction():
            return
    except asyncpg.InterfaceError:
        return  # its pool has found it dead, and has taken it back by itself
    await _rolled_back(connection)


async def _rolled_back(connection: Connection) -> None:
    try:
        await connection.execute("rollback", timeout=5)
    except DRIVER_ERRORS:
        _thrown_away(connection)
    except asyncio.CancelledError:
        _thrown_away(connection)
        raise


def _thrown_away(connection: Connection) -> None:
    """Hangs up without a word; its pool may have done so by itself, and then knows it no more."""
    with suppress(OSError, asyncpg.InterfaceError):
        connection.terminate()
