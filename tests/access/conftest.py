"""An embedded store, the test's own, with a clock that can be moved."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ropewalk.store import workspaces
from ropewalk.store.sqlite import SqliteStore
from tests.access.clocks import Clocked


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Clocked]:
    opened = await SqliteStore.open(str(tmp_path / "ropewalk.db"))
    async with opened.transaction() as tx:
        await workspaces.ensure_default(tx, opened.now())
    yield Clocked(opened)
    await opened.close()
