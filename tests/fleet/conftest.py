"""One nursery for all tests of a process, and a fleet without members for each."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.fleet.fleet import Fleet, Nursery, fleet, nursery
from tests.fleet.ledgers import Place


@pytest.fixture(scope="session")
def home() -> Iterator[Nursery]:
    with nursery() as opened:
        yield opened


@pytest.fixture
async def crew(home: Nursery, database: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    """A fleet without members yet, and its client."""
    async with fleet(home, database, Place(str(tmp_path))) as opened:
        yield opened
