"""Simulated histories of the real engine, a batch on every run; `tools.simulate_engine` does the thousands."""

import pytest

from tests.engines.simulation import simulate
from tests.engines.simulation.bugs import BUGS, MOST_HISTORIES, hunt
from tests.simulator.bugs import Bug

HISTORIES = 150
BATCH = 15


@pytest.mark.parametrize("first", range(0, HISTORIES, BATCH))
def test_no_history_of_the_engine_breaks_a_promise(first: int):
    outcomes = [simulate(seed) for seed in range(first, first + BATCH)]

    assert [(outcome.seed, outcome.violations) for outcome in outcomes if outcome.violations] == []


@pytest.mark.parametrize("seed", [7, 65])
def test_a_seed_tells_the_same_history_of_the_engine_every_time(seed: int):
    first, second = (simulate(seed) for _ in range(2))

    assert first.trace
    assert first == second


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_seeded_into_the_engine_is_caught(bug: Bug):
    caught = hunt(bug)

    assert caught is not None, f"{bug.name} survived {MOST_HISTORIES} histories"
