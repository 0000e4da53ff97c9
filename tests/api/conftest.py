"""The API on a real engine and an embedded store, spoken to as clients speak to it."""

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
