"""What is due is told in time, though the machine has slept meanwhile."""

import pytest

from ropewalk.core.duration import HOUR
from ropewalk.core.events import ExecutionTimedOut, NodeFailed
from ropewalk.engines.native import hands, timers
from tests.engines.worlds import ONCE, World, at_most, flow, node


class Slumber:
    """Moves the store's clock on, and the loop's not: as if the machine had slept."""

    def __init__(self, world: World) -> None:
        self._store = world.service.store

    def __call__(self, microseconds: int) -> None:
        self._store._offset += microseconds


@pytest.fixture
def slumber(world: World, monkeypatch: pytest.MonkeyPatch) -> Slumber:
    for module in (hands, timers):
        monkeypatch.setattr(module, "LATEST", 0.01)
    return Slumber(world)


async def test_a_time_limit_that_passed_while_the_machine_slept_is_seen_when_it_wakes(world: World, slumber: Slumber):
    execution = await world.start(flow(node("a", "gate", timeout="1h", retry=ONCE)))
    await world.outside.gate().arrived()

    slumber(2 * HOUR)

    await at_most(20, world.ended(execution))
    assert [event.error.type for event in await world.events(execution, NodeFailed)] == ["TIMEOUT"]


async def test_an_execution_whose_time_ran_out_meanwhile_ends(world: World, slumber: Slumber):
    execution = await world.start(flow(node("a", "gate", timeout="9h"), timeout="1h"))
    await world.outside.gate().arrived()

    slumber(2 * HOUR)

    await at_most(20, world.ended(execution))
    assert len(await world.events(execution, ExecutionTimedOut)) == 1
