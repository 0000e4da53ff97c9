"""A breaker is shared: the calls of all members open it, and of all of them a few probe at a time."""

from typing import Any

from msgspec.structs import replace

from ropewalk.core.breaker import BreakerPolicy
from ropewalk.core.duration import MINUTE, SECOND
from tests.crash.ledgers import Accepted
from tests.fleet.fleet import Fleet, Member
from tests.fleet.ledgers import Seen
from tests.fleet.verdict import judge
from tests.fleet.workflows import workflow
from tests.polling import until

BRIEF = BreakerPolicy(minimum_calls=6, cooldown=SECOND // 2, probes=2, probe_lease=2 * SECOND)
PATIENT = BreakerPolicy(minimum_calls=6, cooldown=2 * SECOND, probes=1, successes=1, probe_lease=10 * MINUTE)
"""A call that comes while a probe is out has to wait for ten minutes, unless closing frees it."""
CALLS = workflow(
    "calls", [{"id": "call", "type": "fleet.call", "retry": {"maxAttempts": 50, "delay": "50ms", "maxDelay": "100ms"}}]
)
EXECUTIONS = 12
PROBES = 3


async def is_open(crew: Fleet) -> list[tuple[Any, ...]]:
    return await crew.ask("select 1 from breaker where state <> 'CLOSED'")


def overlapping(seen: list[Seen], most: int = 1) -> list[Seen]:
    """The calls that began while as many others as may be were under way."""
    under_way: dict[tuple[str, int], None] = {}
    found = []
    for each in seen:
        if each.is_begun:
            found += [each] if len(under_way) >= most else []
            under_way[each.execution, each.attempt] = None
        else:
            under_way.pop((each.execution, each.attempt), None)
    return found


async def held(crew: Fleet, policy: BreakerPolicy) -> tuple[list[Member], list[str]]:
    """Two members whose every call fails, until the breaker holds all they have."""
    members = await crew.join(2, executions=EXECUTIONS // 2, breaker=policy)
    crew.place.turn_on("down")
    version = await crew.client.save(CALLS)
    ids = [await crew.client.start(version) for _ in range(EXECUTIONS)]
    for execution in ids:
        crew.place.clients.write(Accepted(execution, "calls"))

    async def are_held() -> bool:
        return bool(await is_open(crew)) and not await calling(crew)

    await until(are_held, "the breaker holds everyone")
    return members, ids


async def calling(crew: Fleet) -> bool:
    """Whether a call is under way."""
    seen = crew.place.seen.read()
    return sum(each.is_begun for each in seen) * 2 > len(seen)


async def test_the_failures_of_all_open_it_and_a_few_probe_at_a_time(crew: Fleet):
    members, ids = await held(crew, BRIEF)
    before = crew.place.seen.read()

    async def are_probed() -> bool:
        return sum(each.is_begun for each in crew.place.seen.read()[len(before) :]) >= PROBES

    await until(are_probed, "the target was probed several times")
    probes = crew.place.seen.read()[len(before) :]
    crew.place.turn_off("down")
    ends = await crew.states(ids)
    await crew.quiet()

    # It may open before the second of them has called.
    assert {each.pid for each in before} <= {member.pid for member in members}
    assert overlapping(probes, BRIEF.probes) == []
    assert ends == ["SUCCESS"] * EXECUTIONS
    assert await is_open(crew) == []
    assert (await judge(crew.url, crew.place)).violations == []
    assert crew.faults() == []


def test_two_probes_at_once_would_be_noticed():
    first = Seen(1, "e1", "call", None, 1, True, 0.0)
    second = replace(first, pid=2, execution="e2")

    assert overlapping([first, second]) == [second]
    assert overlapping([first, replace(first, is_begun=False), second]) == []


async def test_a_breaker_that_closes_frees_those_who_hold_no_slot(crew: Fleet):
    _, ids = await held(crew, PATIENT)
    crew.place.turn_off("down")

    async def is_closed() -> bool:
        return not await is_open(crew)

    await until(is_closed, "the breaker is closed")

    async def have_ended() -> bool:
        return await crew.ask("select 1 from live") == []

    await until(have_ended, f"all {len(ids)} are free", 15)

    assert await crew.states(ids) == ["SUCCESS"] * EXECUTIONS
    assert (await judge(crew.url, crew.place)).violations == []
    assert crew.faults() == []
