"""Members that come and go in good order cost nothing: no attempt, no start."""

from typing import Any

import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.load import more_accepted, under_load
from tests.fleet.verdict import judge
from tests.fleet.workflows import SMOOTH

MEMBERS = 3
ROUNDS = 2


async def replace_everyone(crew: Fleet, **settings: Any) -> None:
    """Every member leaves in good order, one by one, after the one that comes instead."""
    for member in crew.living:
        await crew.join(1, **settings)
        await crew.leave(member)


@pytest.mark.parametrize("drain", [0.0, 10.0])
async def test_a_rolling_restart_under_load_burns_no_attempt(crew: Fleet, drain: float):
    await crew.join(MEMBERS, drain=drain)
    async with under_load(crew, documents=SMOOTH) as load:
        for _ in range(ROUNDS):
            await more_accepted(load, 10)
            await replace_everyone(crew, drain=drain)
    await crew.quiet()
    await crew.dismiss()
    verdict = await judge(crew.url, crew.place)

    assert verdict.violations == []
    assert crew.faults() == []
    assert set(verdict.states) == {"SUCCESS"}
    assert set(verdict.attempts()) == {1}
    assert verdict.lost_attempts == 0


async def test_two_releases_of_the_code_work_side_by_side(crew: Fleet):
    old, new = [*await crew.join(1, version="1.0.0"), *await crew.join(1, version="1.1.0")]
    async with under_load(crew, documents=SMOOTH) as load:
        await more_accepted(load, 60)
    await crew.quiet()
    listed = await crew.ask(
        "select version from worker where slots > 0 and heartbeat_at > 0 and version like '1._.0' order by 1"
    )
    worked = {seen.pid for seen in crew.place.seen.read()}
    verdict = await judge(crew.url, crew.place)

    assert listed == [("1.0.0",), ("1.1.0",)]
    assert worked == {old.pid, new.pid}
    assert verdict.violations == []
    assert set(verdict.states) == {"SUCCESS"}
