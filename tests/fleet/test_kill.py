"""Members that die at any moment, or come back from the dead, lose nothing that was accepted and double nothing."""

import pytest

from tests.fleet.campaign import Campaign
from tests.fleet.fleet import Fleet
from tests.fleet.verdict import judge

KILLS = 40
ZOMBIES = 30


@pytest.mark.parametrize("seed", [2026])
async def test_kills_at_any_moment_lose_and_double_nothing(crew: Fleet, seed: int):
    figures = await Campaign(crew, seed).kill(KILLS)
    verdict = await judge(crew.url, crew.place)

    assert verdict.violations == []
    assert crew.faults() == []
    assert verdict.accepted == figures.accepted > figures.kills
    assert verdict.lost_attempts > 0, "no kill came while a node was at work: this has shown nothing"
    assert figures.takeovers, "there was nothing to take over: this has shown nothing"


@pytest.mark.parametrize("seed", [2026])
async def test_a_member_that_comes_back_from_the_dead_writes_nothing_and_works_under_a_new_name(crew: Fleet, seed: int):
    figures = await Campaign(crew, seed).stop(ZOMBIES)
    verdict = await judge(crew.url, crew.place)

    assert verdict.violations == []
    assert crew.faults() == []
    assert figures.zombies == ZOMBIES
    assert figures.refused > 0, "no member tried to write too late: this has shown nothing"
