"""Simulated histories of fleets, a batch on every run; `tools.simulate_engine --fleet` does the thousands."""

from collections import Counter

import pytest

from tests.engines.simulation import fleet, people, runners, shared
from tests.engines.simulation.fleet_bugs import BUGS, MOST_HISTORIES, SHOWN_BY, SqlBug, hunt_fleet
from tests.engines.simulation.fleet_history import simulate_fleet
from tests.simulator.bugs import Bug

HISTORIES = 150
BATCH = 15
IMPATIENT = 30
RUN_OUTSIDE = 30
TELLING = 20
SLOW = 0.6
"""How long a question, and its answer, is under way to a store with much to do (s)."""
SOMETIMES = (
    "killed", "stopped", "stale write refused", "answer lost", "commit refused", "death after a commit",
    "stopped for 25 s", "blocked for 25 s", "cut off for 25 s", "start once", "start many", "rerun", "pause", "cancel",
    "asked another", "run elsewhere", "taken over",
)  # fmt: skip


@pytest.mark.parametrize("first", range(0, HISTORIES, BATCH))
def test_no_history_of_a_fleet_breaks_a_promise(first: int):
    outcomes = [simulate_fleet(seed) for seed in range(first, first + BATCH)]

    assert [(outcome.seed, outcome.violations) for outcome in outcomes if outcome.violations] == []


@pytest.mark.parametrize("seed", [2, 4, 8, 10, 22, 23, 34, 176, 327, 820])
def test_a_store_that_takes_its_time_keeps_nobody_from_taking_over(seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shared, "LATENCIES", (SLOW,))

    assert simulate_fleet(seed).violations == []


@pytest.mark.parametrize("seed", [1031, 1213, 2653])
def test_what_is_taken_while_a_worker_comes_back_as_another_is_taken_by_one_that_is_there(
    seed: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shared, "LATENCIES", (SLOW,))

    assert simulate_fleet(seed).violations == []


@pytest.mark.parametrize("seed", [45, 587, 1026])
def test_what_is_told_to_a_child_that_takes_its_time_to_come_is_not_lost(seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shared, "LATENCIES", (SLOW,))

    assert simulate_fleet(seed).violations == []


@pytest.mark.parametrize("seed", [3602])
def test_a_parent_that_was_looked_up_for_a_child_that_is_gone_is_let_go(seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shared, "LATENCIES", (SLOW,))

    assert simulate_fleet(seed).violations == []


@pytest.mark.parametrize("latencies", [shared.LATENCIES, (SLOW / 2,)])
@pytest.mark.parametrize("first", range(0, IMPATIENT, BATCH))
def test_whoever_goes_away_before_the_answer_leaves_nobody_stuck(
    first: int, latencies: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(people, "IMPATIENCE", 0.4)
    monkeypatch.setattr(shared, "LATENCIES", latencies)
    outcomes = [simulate_fleet(seed) for seed in range(first, first + BATCH)]

    assert [(outcome.seed, outcome.violations) for outcome in outcomes if outcome.violations] == []
    assert sum(outcome.sometimes["gone away"] for outcome in outcomes) > BATCH


@pytest.mark.parametrize("impatience", [0, 0.4])
@pytest.mark.parametrize("first", range(0, RUN_OUTSIDE, BATCH))
def test_no_history_with_runners_outside_breaks_a_promise(
    first: int, impatience: float, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(runners, "COUNT", 6)
    monkeypatch.setattr(people, "IMPATIENCE", impatience)
    outcomes = [simulate_fleet(seed) for seed in range(first, first + BATCH)]

    assert [(outcome.seed, outcome.violations) for outcome in outcomes if outcome.violations] == []
    assert sum(outcome.sometimes["report of a runner taken"] for outcome in outcomes) > BATCH / 2
    assert sum(outcome.sometimes["report of a runner refused"] for outcome in outcomes) > BATCH / 2


@pytest.mark.parametrize("first", [30, 45])
def test_what_is_removed_while_others_are_at_it_leaves_nobody_waiting(first: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fleet, "FLEET_VERBS", people.SWEEPING_VERBS)
    outcomes = [simulate_fleet(seed) for seed in range(first, first + BATCH)]

    assert [(outcome.seed, outcome.violations) for outcome in outcomes if outcome.violations] == []
    assert sum(outcome.sometimes["sweep"] for outcome in outcomes) > BATCH


@pytest.mark.parametrize("seed", [3, 29])
def test_a_seed_tells_the_same_history_of_a_fleet_every_time(seed: int):
    first, second = (simulate_fleet(seed) for _ in range(2))

    assert first.trace
    assert first == second


def test_what_can_happen_to_a_fleet_happens():
    happened: Counter[str] = Counter()
    for seed in range(TELLING):
        happened += simulate_fleet(seed).sometimes

    assert [what for what in SOMETIMES if not happened[what]] == []


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_seeded_into_a_fleet_is_caught(bug: Bug | SqlBug):
    caught = hunt_fleet(bug, first=SHOWN_BY.get(bug.name, 0))

    assert caught is not None, f"{bug.name} survived {MOST_HISTORIES} histories"
