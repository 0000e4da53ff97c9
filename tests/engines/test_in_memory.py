"""Every engine does what every engine must, and leaves the same logs: native on both stores, and logs in a dict."""

from pathlib import Path

import pytest

from tests.engines.in_memory import InMemoryWorld
from tests.engines.normal_form import normal_forms
from tests.engines.scenarios import SCENARIOS, Scenario
from tests.engines.worlds import World, at_most, judged


async def logs_of(scenario: Scenario, world: World) -> list[str]:
    """What the scenario leaves in this world."""
    async with judged(world):
        await at_most(40, scenario(world))
        return await normal_forms(world.service.store)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_a_scenario_leaves_the_same_logs_on_every_engine(tmp_path: Path, scenario: Scenario):
    native = await logs_of(scenario, World(str(tmp_path / "native.db")))
    in_memory = await logs_of(scenario, InMemoryWorld(str(tmp_path / "mirror.db")))

    assert in_memory == native
