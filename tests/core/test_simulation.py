"""Simulated histories: a batch on every run of the tests; `python -m tools.simulate` does the thousands."""

import pytest

from ropewalk.core.definition import parse_definition
from tests.simulator import simulate
from tests.simulator.workflows import NODE_TYPES, PLANS_SHARED_BY, workflows_of

HISTORIES = 1_000
BATCH = 250


@pytest.mark.parametrize("first", range(0, HISTORIES, BATCH))
def test_no_simulated_history_breaks_a_promise(first: int):
    outcomes = [simulate(seed) for seed in range(first, first + BATCH)]

    assert [(outcome.seed, outcome.violations) for outcome in outcomes if outcome.violations] == []


def test_a_seed_tells_the_same_story_every_time():
    first, second = (simulate(11, is_traced=True) for _ in range(2))

    assert first.trace
    assert first == second


def test_a_story_is_the_same_whether_it_is_told_or_not():
    told, silent = simulate(12, is_traced=True), simulate(12)

    assert (told.events, told.sometimes) == (silent.events, silent.sometimes)


def test_simulated_workflows_are_valid_definitions():
    worlds = [workflows_of(seed) for seed in range(0, 200 * PLANS_SHARED_BY, PLANS_SHARED_BY)]

    for plan in [plan for world in worlds for plan in (*world.tops, *world.children)]:
        assert parse_definition(plan.definition.document, NODE_TYPES).nodes
