"""Webhooks under kill -9 in small; `python -m tools.deliveries` sends five thousand."""

from pathlib import Path

from tests.triggers.deliveries import campaign


async def test_every_good_delivery_starts_one_execution_though_the_server_is_killed_twice(tmp_path: Path):
    assert await campaign(tmp_path, count=300, kills=2) == []
