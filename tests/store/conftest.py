"""A real store of each kind, the test's own."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from ropewalk.store import workspaces
from ropewalk.store.access import Store
from ropewalk.store.postgres import PostgresStore
from ropewalk.store.sqlite import SqliteStore
from tests.store.samples import NOON, ROOT

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ropewalk.db")


@pytest.fixture(params=["sqlite_store", "postgres_store"])
def store(request: pytest.FixtureRequest) -> Store:
    """Every test that takes this one runs on both."""
    chosen: Store = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
async def sqlite_store(path: str) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path)
    async with store.transaction() as tx:
        await workspaces.ensure_default(tx, NOON)
    yield store
    await store.close()


@pytest.fixture
async def postgres_store(database: str) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(database, worker="one", notify=False)
    async with store.transaction() as tx:
        await workspaces.ensure_default(tx, NOON)
    yield store
    await store.close()


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process of `processes.py`; none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(what: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.store.processes", what, *arguments]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield begin
    for process in started:
        with process:
            process.kill()
