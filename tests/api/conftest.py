"""The API on a real engine and an embedded store, or one of each kind, spoken to as clients speak to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.house import House, opened
from tests.api.stories import Town, town_on


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A server's app on a store of its own, with a root key."""
    async with opened(str(tmp_path / "ropewalk.db")) as house:
        yield house


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """The same, with the world outside in the test's hands."""
    async with town_on(str(tmp_path / "ropewalk.db")) as town:
        yield town


@pytest.fixture(params=["file", "server"])
def each_db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store of each kind: every test that takes this one runs on both."""
    return str(tmp_path / "ropewalk.db") if request.param == "file" else request.getfixturevalue("database")


@pytest.fixture
async def each_town(each_db: str) -> AsyncIterator[Town]:
    """A town on a store of each kind."""
    async with town_on(each_db) as town:
        yield town
