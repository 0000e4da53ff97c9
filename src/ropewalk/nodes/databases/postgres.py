"""PostgreSQL, by asyncpg: parameters are bound by the server's own types."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import asyncpg
import msgspec

from ropewalk.core.duration import SECOND, parse_duration
from ropewalk.nodes.comparing import identity
from ropewalk.nodes.databases.columns import BYTES, as_bytes, from_base64, json_text, plain, told_apart
from ropewalk.nodes.databases.connection import LEAVES_NO_TRACE, Find, Insertion, Row, Terms, named, on_conflict
from ropewalk.nodes.databases.framing import FramedLoop
from ropewalk.nodes.databases.server import Server
from ropewalk.nodes.failure import NodeFailure, shortened
from ropewalk.nodes.moments import moment_of
from ropewalk.nodes.sql_text import Statement, Values

CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 2.0
LONGEST_REASON = 500
TIMED_OUT = "57014"
NO_TLS = "rejected SSL upgrade"
# Connections, what a transaction met of another one, what the server lacks for now, and its stops.
GOES_BY = ("08", "40", "53", "58", "57P", "55P03")


async def connect(server: Server, find: Find) -> "PostgresConnection":
    """A connection to one of the vetted addresses of the server."""
    addresses = await find(server.host, server.port)
    loop = FramedLoop(asyncio.get_running_loop(), lambda protocol: isinstance(protocol, asyncpg.protocol.Protocol))
    async with _classified(server.place, loop):
        opened = await asyncpg.connect(
            loop=loop,
            host=[str(address) for address in addresses],
            port=server.port,
            user=server.user,
            password=server.password,
            database=server.database,
            ssl=server.tls if server.tls is not None else False,
            timeout=CONNECT_SECONDS,
            statement_cache_size=0,
            server_settings={"application_name": "ropewalk"},
        )
    return PostgresConnection(opened, server.place, loop)


class PostgresRows:
    """The rows of a portal."""

    def __init__(self, connection: "PostgresConnection", attributes: Sequence[Any], cursor: Any) -> None:
        self._connection = connection
        self._cursor = cursor
        self._has_json = [at for at, each in enumerate(attributes) if each.type.name in ("json", "jsonb")]
        self._has_json_lists = [at for at, each in enumerate(attributes) if each.type.name in ("json[]", "jsonb[]")]
        self.columns = told_apart([each.name for each in attributes])
        self.affected: int | None = None

    async def fetch(self, most: int) -> list[Row]:
        if self._cursor is None:
            return []
        async with self._connection.classified():
            return [self._plain(row) for row in await self._cursor.fetch(most)]

    def _plain(self, row: Sequence[Any]) -> Row:
        values = list(row)
        for at in self._has_json:
            values[at] = None if values[at] is None else msgspec.json.decode(values[at])
        for at in self._has_json_lists:
            values[at] = values[at] and [None if each is None else msgspec.json.decode(each) for each in values[at]]
        return [plain(value) for value in values]


class PostgresConnection:
    """A connection to a PostgreSQL server."""

    def __init__(self, opened: Any, place: str, loop: FramedLoop) -> None:
        self._opened = opened
        self._loop = loop
        self._place = place
        self.is_sound = True

    @asynccontextmanager
    async def classified(self) -> AsyncIterator[None]:
        try:
            async with _classified(self._place, self._loop):
                yield
        except asyncio.CancelledError:
            # The driver cancels the statement at the server.
            self.is_sound = False
            raise
        except NodeFailure:
            self.is_sound = self.is_sound and not self._opened.is_closed()
            raise

    async def begin(self, terms: Terms) -> None:
        mode = " read only" if terms.is_read_only else ""
        limit = f"set local statement_timeout = {int(terms.seconds * 1000)}"
        async with self.classified():
            await self._opened.execute(f"begin{mode}; {limit}")

    async def execute(self, statement: Statement, values: Values) -> PostgresRows:
        given = statement.bound(values)
        self.is_sound = self.is_sound and statement.verb in LEAVES_NO_TRACE
        async with self.classified():
            prepared = await self._opened.prepare(statement.numbered("$"))
            kinds = [each.name for each in prepared.get_parameters()]
            arguments = [_argument(kind, *each) for kind, each in zip(kinds, given.items(), strict=True)]
            attributes = prepared.get_attributes()
            if attributes:
                return PostgresRows(self, attributes, await prepared.cursor(*arguments))
            await prepared.fetch(*arguments)
            rows = PostgresRows(self, (), None)
            rows.affected = _affected(prepared.get_statusmsg())
            return rows

    async def insert(self, insertion: Insertion, rows: Sequence[Row]) -> int:
        objects = [dict(zip(insertion.columns, map(_for_json, row), strict=True)) for row in _last(insertion, rows)]
        async with self.classified():
            status = await self._opened.execute(_insert_text(insertion), json_text(objects))
        return _affected(status) or 0

    async def commit(self) -> None:
        async with self.classified():
            await self._opened.execute("commit")

    async def rollback(self) -> None:
        async with self.classified():
            await self._opened.execute("rollback")

    async def close(self) -> None:
        try:
            await self._opened.close(timeout=CLOSE_SECONDS)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._opened.terminate()


@asynccontextmanager
async def _classified(place: str, loop: FramedLoop) -> AsyncIterator[None]:
    try:
        yield
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        if loop.refusal is not None:
            raise NodeFailure.permanent(f"{place} {loop.refusal}") from error
        raise _failure(place, error) from error
    except (ValueError, TypeError, OverflowError) as error:
        raise NodeFailure.permanent(f"with.parameters: {_brief(error)}") from error


def _failure(place: str, error: Exception) -> NodeFailure:
    if not isinstance(error, asyncpg.PostgresError):
        is_untrusted = isinstance(error, ssl.SSLError) or NO_TLS in str(error)
        return (NodeFailure.permanent if is_untrusted else NodeFailure.transient)(f"{place}: {_brief(error)}")
    code = error.sqlstate or ""
    told = f"{place}: {_brief(error)} ({code})"
    if code == TIMED_OUT:
        return NodeFailure.timeout(told)
    return NodeFailure.transient(told) if code.startswith(GOES_BY) else NodeFailure.permanent(told)


def _brief(error: Exception) -> str:
    return shortened(str(error) or type(error).__name__, LONGEST_REASON)


def _affected(status: str | None) -> int | None:
    """How many rows a status like `UPDATE 3` or `INSERT 0 3` tells."""
    last = (status or "").rpartition(" ")[2]
    return int(last) if last.isdecimal() else None


def _insert_text(insertion: Insertion) -> str:
    """All rows are one JSON text, which the server turns into rows of the table by its own types."""
    table, columns = named(insertion)
    text = f"insert into {table} ({columns}) select {columns} from json_populate_recordset(null::{table}, $1::json)"
    return text + on_conflict(insertion)


def _last(insertion: Insertion, rows: Sequence[Row]) -> Iterable[Row]:
    """The last row of each key: one statement of PostgreSQL writes no row twice."""
    if not (insertion.keys and insertion.update):
        return rows
    places = [insertion.columns.index(name) for name in insertion.keys]
    return {identity([row[at] for at in places]): row for row in rows}.values()


def _for_json(value: Any) -> Any:
    data = as_bytes(value)
    return value if data is None else f"\\x{data.hex()}"


def _argument(kind: str, holder: int | str, value: Any) -> Any:
    try:
        return _converted(kind, value)
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise NodeFailure.permanent(f"with.parameters.{holder}: {error}") from error


def _converted(kind: str, value: Any) -> Any:
    """A JSON value as the driver takes one for a parameter of this type."""
    if value is None:
        return None
    if kind.endswith("[]"):
        if not isinstance(value, list):
            raise ValueError("must be a list")
        return [_converted(kind.removesuffix("[]"), each) for each in value]
    convert = _CONVERSIONS.get(kind)
    return value if convert is None else convert(value)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a whole number")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("must be a whole number")
    return int(value)


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a number")
    return float(value)


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a number")
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise ValueError("must be a number") from None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _bytes(value: Any) -> bytes:
    return from_base64(value[BYTES] if isinstance(value, dict) and list(value) == [BYTES] else value)


def _date(value: Any) -> date:
    return date.fromisoformat(_a_text(value))


def _time(value: Any) -> time:
    return time.fromisoformat(_a_text(value))


def _a_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    return value


def _without_zone(value: Any) -> datetime:
    return moment_of(value).replace(tzinfo=None)


def _length(value: Any) -> timedelta:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return timedelta(seconds=value)
    return timedelta(microseconds=parse_duration(value, SECOND))


def _names_of(convert: Callable[[Any], Any], *names: str) -> Mapping[str, Callable[[Any], Any]]:
    return dict.fromkeys(names, convert)


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    **_names_of(_integer, "int2", "int4", "int8", "oid"),
    **_names_of(_real, "float4", "float8"),
    **_names_of(_text, "text", "varchar", "bpchar", "name", "char", "xml"),
    **_names_of(json_text, "json", "jsonb"),
    **_names_of(_time, "time", "timetz"),
    "numeric": _decimal,
    "bytea": _bytes,
    "date": _date,
    "timestamp": _without_zone,
    "timestamptz": lambda value: moment_of(value).astimezone(UTC),
    "interval": _length,
}
