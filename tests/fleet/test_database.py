"""The database goes away under load, or hangs up on a member that is writing: nothing is lost, nothing is stuck."""

import asyncio
import random
import signal

import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.load import more_accepted, under_load
from tests.fleet.verdict import judge
from tests.postgres import PostgresServer

OUTAGES = [
    (signal.SIGINT, 0.0),
    (signal.SIGQUIT, 0.0),
    (signal.SIGINT, 1.0),
    (signal.SIGQUIT, 3.0),  # longer than the lease: everyone comes back as another
    (signal.SIGQUIT, 0.2),
]
HANG_UPS = 50
HANG_UP = """
do $$
declare victim integer;
begin
    for look in 1..5000 loop
        perform pg_stat_clear_snapshot();
        select pid into victim
          from pg_stat_activity
         where datname = current_database() and application_name like 'ropewalk %'
           and application_name not like '%reader' and application_name not like '%heartbeat' and state <> 'idle'
         order by random()
         limit 1;
        if victim is not null then
            perform pg_terminate_backend(victim);
            return;
        end if;
        perform pg_sleep(0.001);
    end loop;
    raise exception 'no member is writing';
end $$
"""
"""Hangs up on someone who is in the middle of a commit, as soon as there is someone."""


async def test_outages_of_the_database_lose_nothing_and_every_member_lives_on(crew: Fleet, postgres: PostgresServer):
    members = await crew.join(3)
    async with under_load(crew) as load:
        for how, seconds in OUTAGES:
            await more_accepted(load, 10)
            postgres.stop(how)
            try:
                await asyncio.sleep(seconds)  # the outage itself
            finally:
                postgres.start()
        await more_accepted(load, 10)
    await crew.quiet()
    verdict = await judge(crew.url, crew.place)

    assert verdict.violations == []
    assert crew.faults() == []
    assert [member.code for member in members] == [None] * 3
    assert min(len(member.names) for member in members) > 1, "no outage was long enough to cost anyone the lease"


@pytest.mark.parametrize("seed", [7])
async def test_commits_whose_connection_dies_are_neither_lost_nor_doubled(crew: Fleet, seed: int):
    members = await crew.join(3)
    chance = random.Random(seed)
    async with under_load(crew) as load:
        for _ in range(HANG_UPS):
            await more_accepted(load, chance.randint(0, 3))
            await crew.ask(HANG_UP)
        await more_accepted(load, 10)
    await crew.quiet()
    verdict = await judge(crew.url, crew.place)

    assert verdict.violations == []
    assert crew.faults() == []
    assert [member.code for member in members] == [None] * 3
