"""A real server on loopback, and both clients of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ropewalk.client import AsyncClient
from tests.client.servers import Served, served


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(str(tmp_path / "ropewalk.db")) as server:
        yield server


@pytest.fixture
async def client(server: Served) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(server.url, server.token) as client:
        yield client
