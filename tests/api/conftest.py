"""The API on a real engine and an embedded store, spoken to as clients speak to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.house import House, opened


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A server's app on a store of its own, with a root key."""
    async with opened(str(tmp_path / "ropewalk.db")) as house:
        yield house
