"""What tests of every ring may need."""

from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres import PostgresServer

# A slow machine is no reason to fail: no test asserts how long something takes.
settings.register_profile("ropewalk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ropewalk")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of this process, started by the first that wants it. In haste, so not durable."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[str]:
    """The URL of a database with our schema and nothing in it."""
    url = await postgres.lend()
    yield url
    await postgres.take_back(url)
