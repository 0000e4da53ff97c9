"""A breaker is shared: the failures of all members open it, one of them probes, and closing it frees everyone."""

from typing import Any

from ropewalk.core.breaker import BreakerPolicy
from ropewalk.core.duration import MINUTE, SECOND
from tests.crash.ledgers import Accepted
from tests.fleet.fleet import Fleet, until
from tests.fleet.ledgers import Seen
from tests.fleet.verdict import judge
from tests.fleet.workflows import workflow

POLICY = BreakerPolicy(failures=6, window=MINUTE, cooldown=2 * SECOND, successes=2, probe_lease=10 * MINUTE)
"""Whoever comes while a probe is out would have to wait for ten minutes, if closing did not free it."""
CALLS = workflow(
    "calls", [{"id": "call", "type": "fleet.call", "retry": {"maxAttempts": 20, "delay": "50ms", "maxDelay": "100ms"}}]
)
EXECUTIONS = 12


async def is_open(crew: Fleet) -> list[tuple[Any, ...]]:
    return await crew.ask("select 1 from breaker where state <> 'CLOSED'")


def overlapping(seen: list[Seen]) -> list[str]:
    """Who began while another was at it."""
    under_way: set[tuple[str, int]] = set()
    found = []
    for each in seen:
        if each.is_begun and under_way:
            found.append(f"{each.execution} attempt {each.attempt}")
        (under_way.add if each.is_begun else under_way.discard)((each.execution, each.attempt))
    return found


async def test_a_breaker_is_opened_by_all_probed_by_one_and_frees_everyone_when_it_closes(crew: Fleet):
    members = await crew.join(2, executions=EXECUTIONS // 2, breaker=POLICY)
    crew.place.turn_on("down")
    version = await crew.client.save(CALLS)
    ids = [await crew.client.start(version) for _ in range(EXECUTIONS)]
    for execution in ids:
        crew.place.clients.write(Accepted(execution, "calls"))
    await until(lambda: is_open(crew), "the breaker is open")
    callers = {seen.pid for seen in crew.place.seen.read()}

    async def is_at_rest() -> list[tuple[Any, ...]]:
        found = await crew.ask("select count(*) from run where state = 'WAITING'")
        return [row for row in found if row[0] == EXECUTIONS]

    await until(is_at_rest, "everyone waits for the breaker")
    before = len(crew.place.seen.read())

    async def is_probed() -> bool:
        return len(crew.place.seen.read()) > before

    await until(is_probed, "somebody probes")
    probes = crew.place.seen.read()[before:]
    crew.place.turn_off("down")
    ends = await crew.states(ids)
    await crew.quiet()

    assert callers == {member.pid for member in members}
    assert overlapping(probes) == []
    assert ends == ["SUCCESS"] * EXECUTIONS
    assert await is_open(crew) == []
    assert (await judge(crew.url, crew.place)).violations == []
    assert crew.faults() == []
