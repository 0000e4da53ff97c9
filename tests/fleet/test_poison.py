"""What kills the member that touches it, or cannot be read, or has lost its ground, harms no other execution."""

import asyncio
import signal

import asyncpg
import pytest

from ropewalk.core.errors import RopewalkError
from ropewalk.core.state import ExecutionState
from tests.fleet.fleet import Fleet
from tests.fleet.load import more_accepted, under_load
from tests.fleet.verdict import judge
from tests.fleet.workflows import BRIEF, CHAIN, SMOOTH, workflow
from tests.polling import until

POISON = workflow(
    "poison", [{"id": "kills", "type": "fleet.poison", "retry": {"maxAttempts": 3, "delay": "100ms", "jitter": 0}}]
)


async def supervise(crew: Fleet, over: asyncio.Event) -> int:
    """Replaces each member that dies, until it is over; how many did."""
    deaths = 0

    def look() -> bool:
        nonlocal deaths
        for member in list(crew.members):
            if member.code == -signal.SIGKILL and member not in crew.buried:
                crew.buried.append(member)
                crew.spawn()
                deaths += 1
        return over.is_set()

    await until(look, "the execution that kills its workers has ended")
    return deaths


async def test_a_poison_execution_ends_in_the_dead_letters_and_the_others_go_on(crew: Fleet):
    await crew.join(3)
    over = asyncio.Event()
    supervisor = asyncio.create_task(supervise(crew, over))
    async with under_load(crew, documents=SMOOTH) as load:
        poison = await crew.client.start(await crew.client.save(POISON))
        end = await crew.states([poison])
        await more_accepted(load, 10)
    await crew.quiet()
    over.set()
    deaths = await supervisor
    letters = await crew.ask("select execution, node, attempt, reason from dead_letter")
    verdict = await judge(crew.url, crew.place)

    assert (end, deaths) == (["FAILED"], 3)
    assert [letter[:3] for letter in letters] == [(poison, "kills", 3)]
    assert verdict.violations == []
    assert verdict.states[ExecutionState.SUCCESS] >= load.accepted
    assert sum(verdict.states.values()) - verdict.states[ExecutionState.SUCCESS] == 1


async def test_what_lost_its_version_after_its_acceptance_fails_at_once_and_alone(crew: Fleet):
    doomed = await crew.client.start(await crew.client.save(CHAIN))
    others = [await crew.client.start(await crew.client.save(BRIEF)) for _ in range(5)]
    gone = "delete from workflow_version where workflow in (select workflow from execution where id = $1)"
    await crew.ask_freely(gone, doomed)
    await crew.join(2)
    ends = await crew.states([doomed, *others])

    assert ends == ["FAILED", *["SUCCESS"] * 5]
    assert await crew.ask("select execution from live") == []
    assert crew.faults() == []


async def test_a_workspace_cannot_vanish_while_it_has_workflows(crew: Fleet):
    service = await crew.found("shop", 5)
    await service.start(await service.save(CHAIN))

    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await crew.ask("delete from workspace where id = 'shop'")


async def test_a_log_that_cannot_be_read_is_given_up_after_three_attempts_and_keeps_no_other_waiting(crew: Fleet):
    version = await crew.client.save(BRIEF)
    ids = [await crew.client.start(version) for _ in range(5)]
    await crew.ask("update log set entry = '\\x7b' where execution = $1", ids[0])
    await crew.join(2)
    ends = await crew.states(ids[1:])

    async def is_given_up() -> list[tuple[object, ...]]:
        return await crew.ask("select attempts from queue where id = $1 and state = 'FAILED'", ids[0])

    attempts = await until(is_given_up, "the unreadable is given up", 40)

    assert ends == [ExecutionState.SUCCESS] * 4
    assert attempts == [(3,)]
    assert await crew.ask("select has_slot, owner from live") == [(0, None)]
    assert crew.faults() == []


async def test_an_unreadable_log_does_not_keep_a_dead_members_other_work_from_going_on(crew: Fleet):
    victim = (await crew.join(1))[0]
    gated = workflow("gated", [{"id": "one", "type": "fleet.gated"}])
    version = await crew.client.save(gated)
    ids = [await crew.client.start(version) for _ in range(4)]

    async def are_under_way() -> bool:
        return len(crew.place.effects.read()) == len(ids)

    await until(are_under_way, "all are under way")
    victim.signal(signal.SIGKILL)
    await crew.ask("update log set entry = '\\x7b' where execution = $1 and seq > 1", ids[0])
    crew.place.turn_on("gate")
    await crew.join(1)
    ends = await crew.states(ids[1:])

    assert ends == [ExecutionState.SUCCESS] * 3
    with pytest.raises(RopewalkError):
        await crew.client.cancel(ids[0])
    assert crew.faults() == []
