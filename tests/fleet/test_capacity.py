"""Slots are exact, turns are fair, and keys are held by one, however many claim at once."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from ropewalk.checker import check_together
from ropewalk.core.events import ExecutionStarted
from ropewalk.core.state import ExecutionState
from ropewalk.service import Service
from ropewalk.service.verbs import NewStart
from tests.crash.ledgers import Accepted
from tests.crash.workflows import Document
from tests.fleet.fleet import Fleet
from tests.fleet.verdict import Verdict, judge
from tests.fleet.workflows import BRIEF, KEYED, KEYS, SINGLE
from tests.polling import until

LIMITS: Final = {"free": 1, "pro": 5, "enterprise": 20}
STARTS: Final = {"free": 60, "pro": 290, "enterprise": 650}
CROWD: Final = 10_000
BATCH: Final = 1_000


async def start(crew: Fleet, service: Service, document: Document, count: int) -> list[str]:
    version = await service.save(document)
    ids = await service.start_batch([NewStart(version, {"key": KEYS[place % 3]}) for place in range(count)])
    ledger = crew.place.clients
    for execution in ids:
        ledger.write(Accepted(execution, version.plan.definition.name))
    return ids


def order_of_starts(verdict: Verdict, ids: list[str]) -> list[str]:
    begun = {
        execution: event.at
        for execution in ids
        for event in verdict.histories[execution].events
        if isinstance(event, ExecutionStarted)
    }
    return sorted(begun, key=lambda execution: begun[execution])


async def test_a_storm_of_starts_reaches_every_limit_and_exceeds_none(crew: Fleet):
    members = [crew.spawn() for _ in range(4)]
    for workspace, count in STARTS.items():
        await start(crew, await crew.found(workspace, LIMITS[workspace]), BRIEF, count)
    for member in members:
        await member.served()
    await crew.quiet()
    verdict = await judge(crew.url, crew.place, LIMITS)
    histories = list(verdict.histories.values())

    assert verdict.violations == []
    assert crew.faults() == []
    assert verdict.states == {ExecutionState.SUCCESS: sum(STARTS.values())}
    for workspace, limit in LIMITS.items():
        assert check_together(histories, {workspace: limit - 1}), f"{workspace} never used all of its slots"


async def test_a_crowd_in_one_workspace_delays_no_other_workspace(
    crew: Fleet, record_property: Callable[[str, object], None]
):
    crowded, other = await crew.found("crowded", 20), await crew.found("other", 1)
    version = await other.save(SINGLE)
    for _ in range(CROWD // BATCH):
        await start(crew, crowded, SINGLE, BATCH)
    await crew.join(2)
    began = time.monotonic()
    execution = await other.start(version)

    async def has_started() -> bool:
        return bool(await crew.ask("select 1 from execution where id = $1 and started_at is not null", execution))

    await until(has_started, "the other workspace has its turn")
    record_property("other_started_after_ms", round(1000 * (time.monotonic() - began)))
    done = await crew.ask("select count(*) from execution where workspace = 'crowded' and state = 'SUCCESS'")
    await crew.dismiss()
    verdict = await judge(crew.url, crew.place, {"crowded": 20, "other": 1}, is_quiet=False)

    assert done[0][0] < CROWD / 2
    assert verdict.violations == []


async def test_within_a_workspace_the_urgent_go_first_and_others_in_the_order_they_came(crew: Fleet):
    service = await crew.found("ordered", 1)
    version = await service.save(SINGLE)
    ids = {}
    for place in range(30):
        priority = (5, 9, 0)[place % 3]
        ids[await service.start(version, priority=priority)] = priority
    await crew.join(2)
    await crew.quiet()
    verdict = await judge(crew.url, crew.place, {"ordered": 1})

    assert verdict.violations == []
    assert order_of_starts(verdict, list(ids)) == sorted(ids, key=lambda execution: -ids[execution])


async def test_a_key_is_held_by_one_execution_at_a_time_across_members(crew: Fleet):
    members = await crew.join(3)
    batches = [await start(crew, crew.client, KEYED, 30) for _ in range(3)]
    await crew.quiet()
    verdict = await judge(crew.url, crew.place)

    assert verdict.violations == []
    assert verdict.states == {ExecutionState.SUCCESS: sum(map(len, batches))}
    assert [member.code for member in members] == [None] * 3


async def test_waiting_starts_are_claimed_by_a_member_that_joins(crew: Fleet):
    ids = await start(crew, crew.client, SINGLE, 5)
    await crew.join(1)
    ended = await asyncio.gather(*(crew.client.ended(execution) for execution in ids))

    assert [each.state for each in ended] == [ExecutionState.SUCCESS] * 5
    await crew.quiet()
    assert (await judge(crew.url, crew.place)).violations == []
