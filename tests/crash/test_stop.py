"""A process that is asked to stop burns no attempt: its nodes finish, or are handed back and go on in the next one."""

import random
import signal
from pathlib import Path

import pytest

from tests.crash.driver import Campaign, Nursery, nursery
from tests.crash.ledgers import Place
from tests.crash.verdict import judge
from tests.crash.victim import Request, Task

STOPS = 6


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path))


def begin(home: Nursery, place: Place, drain_seconds: float) -> None:
    """An execution with two nodes under way, at the gate."""
    home.ask(Request(place=place, task=Task.GATE, drain_seconds=drain_seconds))
    heard = sorted(str(home.line(30)) for _ in range(3))
    assert heard == ["serving", "waiting", "waiting"]


def seen(place: Place) -> list[tuple[str, int]]:
    """What the outside world saw: nodes and attempts."""
    return sorted((effect.node, effect.attempt) for effect in place.effects.read())


async def test_a_stopping_process_lets_its_nodes_finish(place: Place):
    with nursery() as home:
        begin(home, place, drain_seconds=30)
        home.signal(signal.SIGTERM)
        home.expect("stopping")
        home.tell(b"open")
        code = home.ended()
    seen_then = seen(place)
    Campaign(place, seed=0).quiesce()
    verdict = await judge(place)

    assert (code, verdict.violations) == (0, [])
    assert seen_then == [("one", 1), ("two", 1)]
    assert seen(place) == [("join", 1), ("one", 1), ("two", 1)]
    assert (verdict.states, verdict.returned, verdict.lost_attempts) == ({"SUCCESS": 1}, 0, 0)


async def test_what_does_not_finish_is_handed_back_and_goes_on_under_its_attempt(place: Place):
    with nursery() as home:
        begin(home, place, drain_seconds=0.05)
        home.signal(signal.SIGTERM)
        code = home.ended()
    Campaign(place, seed=0).quiesce()
    verdict = await judge(place)

    assert (code, verdict.violations) == (0, [])
    assert seen(place) == [("join", 1), ("one", 1), ("one", 1), ("two", 1), ("two", 1)]
    assert (verdict.states, verdict.returned, verdict.lost_attempts) == ({"SUCCESS": 1}, 2, 0)


@pytest.mark.parametrize("drain_seconds", [0.0, 0.05, 10.0])
async def test_stops_under_load_burn_no_attempt(place: Place, drain_seconds: float):
    chance = random.Random(7)
    codes = []
    with nursery() as home:
        for seed in range(STOPS):
            home.ask(Request(place=place, seed=seed, drain_seconds=drain_seconds, clients=60))
            home.expect("serving")
            home.line(chance.uniform(0.02, 0.3))
            home.signal(signal.SIGTERM)
            codes.append(home.ended())
    Campaign(place, seed=0).quiesce()
    verdict = await judge(place)

    assert codes == [0] * STOPS
    assert verdict.violations == []
    assert verdict.lost_attempts == 0
