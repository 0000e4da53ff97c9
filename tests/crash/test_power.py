"""A machine that loses its power at any moment has lost nothing that it had told the world outside."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.blackout import Life, found_wrong, live
from tests.crash.driver import Nursery, nursery
from tests.crash.ledgers import Place
from tests.crash.power import Call

BLACKOUTS = 12


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    return live(tmp_path_factory.mktemp("power"), seed=7, clients=6, seconds=4.0)


@pytest.fixture(scope="module")
def home() -> Iterator[Nursery]:
    with nursery() as opened:
        yield opened


@pytest.mark.parametrize("seed", range(BLACKOUTS))
async def test_a_blackout_at_any_moment_loses_nothing_that_was_told(
    life: Life, home: Nursery, tmp_path: Path, seed: int
):
    chance = random.Random(seed)
    after = Place(str(tmp_path / "after"))
    life.until(life.moment(chance)).leave(Path(after.folder), chance)

    assert await found_wrong(home, after) == []


@pytest.mark.parametrize("name", ["ropewalk.db-wal", "ropewalk.db.blobs", "life"])
async def test_what_is_not_synced_is_noticed(life: Life, home: Nursery, tmp_path: Path, name: str):
    def is_heard(call: Call) -> bool:
        return call.name not in ("fsync", "fdatasync") or not call.is_on(name)

    after = Place(str(tmp_path / "after"))
    life.until(len(life.calls), is_heard).leave(Path(after.folder), random.Random(1), luck=0.0)

    assert await found_wrong(home, after) != []
