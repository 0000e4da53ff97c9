"""MySQL and MariaDB, by aiomysql (extra `mysql`).

The protocol that the driver speaks has no parameters: a value stands in the text of the statement. It stands there as a
number or as hexadecimal digits of its bytes alone, which no mode and no character set of a server reads differently.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiomysql
import msgspec
from pymysql.constants import CLIENT, FIELD_TYPE
from pymysql.err import MySQLError

from ropewalk.nodes.databases.columns import as_text, plain, told_apart
from ropewalk.nodes.databases.connection import LEAVES_NO_TRACE, Find, Insertion, Row, Terms
from ropewalk.nodes.databases.server import Server
from ropewalk.nodes.failure import NodeFailure, shortened
from ropewalk.nodes.sql_text import Statement, Values, quoted

CONNECT_SECONDS = 10.0
KILL_SECONDS = 5.0
LONGEST_REASON = 500
HEADER = 4
LARGEST_PIECE = 0xFFFFFF
MOST_PIECES = 4
# Too many connections, a stop, lock waits, deadlocks, a connection that was killed or lost, and what clusters say.
GOES_BY = frozenset((1040, 1047, 1053, 1077, 1079, 1129, 1203, 1205, 1213, 1226, 1927, 2003, 2006, 2013, 2014, 2055))
TIMED_OUT = frozenset((1317, 1969, 3024))

_log = logging.getLogger("ropewalk.node")


class _Connection(aiomysql.Connection):  # type: ignore[misc]  # the library has no types
    """Never speaks in clear where TLS is asked for, and never hands a password to a server in clear."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.client_flag &= ~CLIENT.MULTI_STATEMENTS
        self._pieces = 0

    async def _read_bytes(self, num_bytes: int) -> bytes:
        # A packet of this very length goes on in the next one.
        self._pieces = self._pieces + 1 if num_bytes == LARGEST_PIECE else self._pieces if num_bytes == HEADER else 0
        if self._pieces > MOST_PIECES:
            self.close()
            raise NodeFailure.permanent(f"the database server sends a row of more than {MOST_PIECES * 16} MiB")
        data: bytes = await super()._read_bytes(num_bytes)
        return data

    async def _request_authentication(self) -> None:
        if self._ssl_context and not self.server_capabilities & CLIENT.SSL:
            raise NodeFailure.permanent("the database server offers no TLS, which the credential asks for")
        if not self._ssl_context and self._server_auth_plugin == "mysql_clear_password":
            raise NodeFailure.permanent("the database server asks for the password in clear, without TLS")
        await super()._request_authentication()

    async def _process_auth(self, plugin_name: bytes, auth_packet: Any) -> Any:
        if plugin_name == b"mysql_clear_password" and not self._secure:
            raise NodeFailure.permanent("the database server asks for the password in clear, without TLS")
        return await super()._process_auth(plugin_name, auth_packet)


class _Cursor(aiomysql.SSCursor):  # type: ignore[misc]  # the library has no types
    """Reads rows as they are asked for."""

    async def _show_warnings(self, conn: Any) -> None:
        """Warnings of the server are no failures, and asking for them would take the place of the rows."""


async def connect(server: Server, find: Find) -> "MysqlConnection":
    """A connection to the first of the vetted addresses of the server that answers."""
    failed: NodeFailure | None = None
    for address in await find(server.host, server.port):
        try:
            return MysqlConnection(await _open(server, str(address)), server, str(address))
        except NodeFailure as failure:
            failed = failure
    assert failed is not None
    raise failed


async def _open(server: Server, address: str) -> Any:
    connection = _Connection(
        host=address,
        port=server.port,
        user=server.user,
        password=server.password,
        db=server.database,
        ssl=server.tls,
        charset="utf8mb4",
        autocommit=True,
        init_command="set time_zone = '+00:00'",
        program_name="ropewalk",
    )
    try:
        async with _classified(server.place), asyncio.timeout(CONNECT_SECONDS):
            await connection._connect()
    except BaseException:
        connection.close()
        raise
    return connection


class MysqlRows:
    """The rows that the server is about to send."""

    def __init__(self, connection: "MysqlConnection", cursor: Any) -> None:
        self._connection = connection
        self._cursor = cursor
        described = cursor.description or ()
        self._has_json = [at for at, each in enumerate(described) if each[1] == FIELD_TYPE.JSON]
        self.columns = told_apart([each[0] for each in described])
        self.affected: int | None = None if described else cursor.rowcount

    async def fetch(self, most: int) -> list[Row]:
        if not self.columns:
            return []
        async with self._connection.classified():
            return [self._plain(row) for row in await self._cursor.fetchmany(most)]

    def _plain(self, row: Sequence[Any]) -> Row:
        values = list(row)
        for at in self._has_json:
            values[at] = None if values[at] is None else msgspec.json.decode(values[at])
        return [plain(value) for value in values]


class MysqlConnection:
    """A connection to a MySQL server."""

    def __init__(self, opened: Any, server: Server, address: str) -> None:
        self._opened = opened
        self._server = server
        self._address = address
        self._cursor: Any = None
        self.is_sound = True

    @asynccontextmanager
    async def classified(self) -> AsyncIterator[None]:
        try:
            async with _classified(self._server.place):
                yield
        except asyncio.CancelledError:
            self.is_sound = False
            await self._kill()
            raise
        except NodeFailure:
            self.is_sound = self.is_sound and not self._opened.closed
            raise

    async def begin(self, terms: Terms) -> None:
        # The server itself ends a result that is longer than wanted: its end must be read before the commit.
        await self._tell(f"set sql_select_limit = {terms.rows}" if terms.rows else "set sql_select_limit = default")
        await self._tell(f"start transaction{' read only' if terms.is_read_only else ''}")

    async def _tell(self, text: str) -> int:
        async with self.classified():
            affected: int = await self._opened.query(text)
            return affected

    async def execute(self, statement: Statement, values: Values) -> MysqlRows:
        given = {holder: _literal(value) for holder, value in statement.bound(values).items()}
        self.is_sound = self.is_sound and statement.verb in LEAVES_NO_TRACE
        await self._read_to_the_end()
        async with self.classified():
            self._cursor = await self._opened.cursor(_Cursor)
            await self._cursor.execute(statement.joined([given[holder] for holder in statement.holders]))
            return MysqlRows(self, self._cursor)

    async def insert(self, insertion: Insertion, rows: Sequence[Row]) -> int:
        await self._read_to_the_end()
        return await self._tell(_insert_text(insertion, rows))

    async def _read_to_the_end(self) -> None:
        if self._cursor is not None:
            cursor, self._cursor = self._cursor, None
            async with self.classified():
                await cursor.close()

    async def commit(self) -> None:
        await self._read_to_the_end()
        await self._tell("commit")

    async def rollback(self) -> None:
        await self._read_to_the_end()
        await self._tell("rollback")

    async def close(self) -> None:
        self._opened.close()

    async def _kill(self) -> None:
        """Ends what the server still does for this connection, by another one; the server may be gone as well."""
        try:
            async with asyncio.timeout(KILL_SECONDS):
                other = await _open(self._server, self._address)
                try:
                    await other.query(f"kill {self._opened.thread_id()}")
                finally:
                    other.close()
        except (NodeFailure, MySQLError, OSError) as error:
            _log.warning("%s: a statement was given up and may go on: %s", self._server.place, error)


@asynccontextmanager
async def _classified(place: str) -> AsyncIterator[None]:
    try:
        yield
    except MySQLError as error:
        raise _failure(place, error) from error
    except TimeoutError as error:
        raise NodeFailure.transient(f"{place} does not answer") from error
    except OSError as error:
        raise NodeFailure.transient(f"{place}: {shortened(str(error), LONGEST_REASON)}") from error
    except (ValueError, TypeError, AttributeError, IndexError, AssertionError) as error:
        # How the driver meets a server that speaks no MySQL, or nonsense.
        raise NodeFailure.transient(f"{place} answers what is no MySQL: {type(error).__name__}") from error


def _failure(place: str, error: MySQLError) -> NodeFailure:
    if isinstance(error.__cause__, ssl.SSLError):
        return NodeFailure.permanent(f"{place}: {error.__cause__}")
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    reason = shortened(str(error.args[-1] if error.args else type(error).__name__), LONGEST_REASON)
    told = f"{place}: {reason} ({code})"
    if code in TIMED_OUT:
        return NodeFailure.timeout(told)
    return NodeFailure.transient(told) if code in GOES_BY or not code else NodeFailure.permanent(told)


def _literal(value: Any) -> str:
    """The value in the text of a statement: digits, or hexadecimal ones."""
    match as_text(value):
        case None:
            return "null"
        case bool() as flag:
            return "true" if flag else "false"
        case int() | float() as number:
            return repr(number)
        case bytes() as data:
            return f"x'{data.hex()}'"
        case text:
            return f"_utf8mb4 x'{str(text).encode().hex()}'"


def _insert_text(insertion: Insertion, rows: Sequence[Row]) -> str:
    table = ".".join(quoted(part, "`") for part in insertion.table)
    columns = [quoted(name, "`") for name in insertion.columns]
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    text = f"insert into {table} ({', '.join(columns)}) values {values}"
    if not insertion.is_upsert:
        return text
    written = [quoted(name, "`") for name in insertion.update]
    # Not `insert ignore`, which takes values that do not fit as well.
    changes = [f"{name} = values({name})" for name in written] or [f"{columns[0]} = {table}.{columns[0]}"]
    return f"{text} on duplicate key update {', '.join(changes)}"
