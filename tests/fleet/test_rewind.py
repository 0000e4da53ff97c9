"""The database goes back in time under living workers: only what it lost is lost, and nothing is made up for it."""

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ropewalk.service.auditing import Audit
from ropewalk.store.ids import first_id
from ropewalk.store.postgres import PostgresReader
from tests.fleet.fleet import Fleet, Nursery, fleet
from tests.fleet.ledgers import Place
from tests.fleet.load import more_accepted, under_load
from tests.fleet.verdict import judge
from tests.postgres import PostgresServer

REPEATED = ("I-32", "I-33")
"""What is forgotten is done again: the world outside sees an attempt twice, and attempts that are in no log."""


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    server = PostgresServer(fsync="on", full_page_writes="on")
    yield server
    server.remove()


@pytest.fixture
async def own_crew(home: Nursery, own_server: PostgresServer, tmp_path: Path) -> AsyncIterator[Fleet]:
    """A fleet whose database may go back."""
    async with fleet(home, await own_server.create_database(), Place(str(tmp_path))) as opened:
        yield opened


async def test_a_database_that_went_back_loses_what_it_lost_and_nothing_else(
    own_crew: Fleet, own_server: PostgresServer
):
    members = await own_crew.join(2)
    async with under_load(own_crew) as load:
        await more_accepted(load, 30)
        kept = {each.execution for each in own_crew.place.clients.read()}
        own_server.keep_copy()
        await more_accepted(load, 60)
        own_server.go_back()
        back_at = first_id(time.time_ns() // 1_000)
        await more_accepted(load, 30)
    await own_crew.quiet()
    verdict = await judge(own_crew.url, own_crew.place)

    wrong = [each for each in verdict.violations if not each.startswith(REPEATED)]
    assert [each for each in wrong if not is_loss(each, kept, back_at)] == []
    assert await audited(own_crew.url) == []
    assert own_crew.faults() == []
    assert [member.code for member in members] == [None] * 2
    assert all("went back in time" in member.said for member in members)


def is_loss(violation: str, kept: set[str], before: str) -> bool:
    """Whether it says that an execution is lost which was accepted after the copy and before it was put back."""
    number, execution, *_ = violation.split()
    return number == "I-35" and execution not in kept and execution < before


async def audited(url: str) -> list[str]:
    """What `ropewalk check` finds in a store on which nothing is under way."""
    reader = await PostgresReader.open(url)
    try:
        walk = Audit(reader, at_rest=True)
        found = [str(violation) async for each in walk.executions() for violation in each.violations]
        return found + [str(violation) for violation in await walk.together()]
    finally:
        await reader.close()
