"""An embedded engine that is watched."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ropewalk.service import Service
from ropewalk.telemetry.metrics import Metrics
from ropewalk.wiring import Settings, open_service


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(Settings(db=str(tmp_path / "ropewalk.db"))) as service:
        yield service


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()
