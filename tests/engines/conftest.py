"""Worlds in real files, judged when the test is done with them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.engines.worlds import World, judged_world


@pytest.fixture
async def shared_world(database: str) -> AsyncIterator[World]:
    """The same on PostgreSQL."""
    async with judged_world(database) as world:
        yield world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with judged_world(str(tmp_path / "ropewalk.db")) as world:
        yield world


@pytest.fixture(params=["world", "shared_world"])
def place(request: pytest.FixtureRequest) -> World:
    """Every test that takes this one runs on both stores."""
    chosen: World = request.getfixturevalue(request.param)
    return chosen
