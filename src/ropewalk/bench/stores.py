"""On what is measured: as many empty stores as wanted, each gone after its use."""

import asyncio
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from ropewalk.bench.contenders import Broken
from ropewalk.bench.server import running

SQLITE: Final = "sqlite"
POSTGRES: Final = "postgres"
STORES: Final = (SQLITE, POSTGRES)
PREFIX: Final = "ropewalk-bench-"
_SECONDS: Final = 60.0
_MAKE_LOG_FILES: Final = """
do $$ begin
    for made in 1..48 loop
        perform pg_logical_emit_message(false, '', ''), pg_switch_wal();
    end loop;
end $$"""
"""What a server that has been at work has at hand, and uses again and again. A new file of its log, of 16 MB, takes
some 20 ms in the middle of a measurement: every other burst of executions would meet one."""


class Stores(Protocol):
    """One kind of store; `name` is what the figures call it."""

    @property
    def name(self) -> str:
        """One of STORES."""

    def fresh(self) -> AbstractContextManager[str]:
        """The address of an empty store, gone at the end."""


class Files:
    """Embedded stores, each in a folder of its own."""

    name: Final = SQLITE

    def __init__(self, folder: str) -> None:
        self._folder = folder

    @contextmanager
    def fresh(self) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=self._folder) as place:
            yield os.path.join(place, "bench.db")


class Schemas:
    """Shared stores, each in a schema of its own: what else is in the database is left alone."""

    name: Final = POSTGRES

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def fresh(self) -> Iterator[str]:
        schema = f"ropewalk_bench_{secrets.token_hex(4)}"
        asyncio.run(_carry_out(self._url, f"create schema {schema}"))
        try:
            yield in_schema(self._url, schema)
        finally:
            asyncio.run(_carry_out(self._url, f"drop schema {schema} cascade"))


def in_schema(url: str, schema: str) -> str:
    """The same database, where tables without a schema are those of this one."""
    parts = urlsplit(url)
    query = urlencode({**dict(parse_qsl(parts.query)), "search_path": schema})
    return urlunsplit(parts._replace(query=query))


async def _carry_out(url: str, statement: str) -> None:
    try:
        connection = await asyncpg.connect(url, timeout=_SECONDS)
        try:
            await connection.execute(statement, timeout=_SECONDS)
        finally:
            await connection.close()
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise Broken(f"the database cannot {' '.join(statement.split()[:2])}: {error}") from error


@contextmanager
def opened(name: str, folder: str, db: str | None) -> Iterator[Stores]:
    """Stores of this name: in the database that is named, else on a server of our own."""
    if name == SQLITE:
        yield Files(folder)
    elif db is not None:
        yield Schemas(db)
    else:
        with running(folder) as url:
            asyncio.run(_carry_out(url, _MAKE_LOG_FILES))
            asyncio.run(_carry_out(url, "checkpoint"))
            yield Schemas(url)
