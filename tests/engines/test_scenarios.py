"""Every engine does what every engine must, and leaves the same logs: native on both stores, and logs in a dict."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.engines.in_memory import InMemoryWorld
from tests.engines.normal_form import normal_forms
from tests.engines.scenarios import SCENARIOS, Scenario, failures, graphs, limits, maps, rate_limits
from tests.engines.worlds import World, at_most, judged

MadeWorld = Callable[[Path, str], World]
ENGINES: Final[dict[str, MadeWorld]] = {
    "native on a file": lambda folder, _: World(str(folder / "native.db")),
    "native on a shared store": lambda _, database: World(database),
    "logs in memory": lambda folder, _: InMemoryWorld(str(folder / "mirror.db")),
}
PACED: Final = {
    graphs.now_uuid_and_random_are_drawn_once_for_a_node_and_for_each_item: "the moment and the chance of it",
    limits.a_sibling_that_waits_keeps_the_key_over_a_restart: "which of the two begins first",
    limits.the_retry_of_a_child_goes_on_after_a_restart: "what of the child the crash meets",
    rate_limits.a_call_keeps_the_limit_that_its_node_names_and_those_of_its_host: "whether its turn has come already",
    rate_limits.calls_to_a_host_begin_no_faster_than_its_rate_limit: "whether the next turn has come already",
    maps.fifty_of_two_thousand_items_fail_and_are_mended_in_bulk: "how many are requeued before the first is mended",
    failures.those_whom_a_breaker_holds_probe_it_one_after_another_until_it_closes: "which of them probes it first",
}
"""The scenarios that hold however fast an engine is, and whose logs tell how fast it was; and of what."""


def test_every_scenario_asserts_something_by_itself():
    """Those that run them below only lend them a world: one without an assert would hold whatever happens."""
    asserting = re.compile(r"^ +(assert|with pytest\.raises)\b", re.MULTILINE)

    assert [each.__name__ for each in SCENARIOS if not asserting.search(inspect.getsource(each))] == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_a_scenario_holds_on_every_engine_and_leaves_the_same_logs(
    tmp_path: Path, database: str, scenario: Scenario
):
    first, *others = [await logs_of(scenario, engine, tmp_path, database) for engine in ENGINES]

    if scenario not in PACED:
        assert others == [first] * len(others)


async def logs_of(scenario: Scenario, engine: str, folder: Path, database: str) -> list[str]:
    """What the scenario leaves on this engine."""
    try:
        async with judged(ENGINES[engine](folder, database)) as world:
            await at_most(40, scenario(world))
            return await normal_forms(world.service.store)
    except BaseException as error:
        error.add_note(f"on the engine: {engine}")
        raise
