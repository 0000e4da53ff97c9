"""A store that another process owns, and one that this process does."""

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ropewalk.control.client import RemoteService
from ropewalk.service import Service
from ropewalk.store.sqlite import owner_info
from ropewalk.wiring import Settings, open_service

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where sockets are: their paths must be short, and killed processes leave them behind."""
    with tempfile.TemporaryDirectory(prefix="rw-", dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield folder


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "ropewalk.db")


@pytest.fixture
def owner(path: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that owns the store."""
    command = [sys.executable, "-m", "tests.control.processes", path]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
        process.kill()


def socket_of(path: str) -> str:
    owner = owner_info(path)
    assert owner is not None
    assert owner.socket is not None
    return owner.socket


@pytest.fixture
async def remote(owner: subprocess.Popen[str], path: str) -> RemoteService:
    """The other process, as far as one can speak to it."""
    return await RemoteService.connect(socket_of(path))


@pytest.fixture
async def service(path: str) -> AsyncIterator[Service]:
    """A store of this process."""
    async with open_service(Settings(db=path)) as service:
        yield service


@pytest.fixture
async def service_elsewhere(tmp_path: Path) -> AsyncIterator[Service]:
    """Another store of this process."""
    async with open_service(Settings(db=str(tmp_path / "elsewhere.db"))) as service:
        yield service
