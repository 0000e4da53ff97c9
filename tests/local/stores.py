"""An engine on either store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import ropewalk
from ropewalk import LocalEngine


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store is."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/jobs.db"
    return str(request.getfixturevalue("database"))


@pytest.fixture
async def engine(address: str) -> AsyncIterator[LocalEngine]:
    async with ropewalk.open(address) as opened:
        yield opened
