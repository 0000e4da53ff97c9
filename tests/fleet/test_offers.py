"""Runs are carried out by a member with a free hand; they are lost, stopped and reported as if their owner had them."""

import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from tests.crash.ledgers import Accepted
from tests.crash.workflows import Document
from tests.fleet.fleet import Fleet, Member
from tests.fleet.ledgers import Seen
from tests.fleet.verdict import judge
from tests.fleet.workflows import workflow
from tests.polling import until

WIDTH = 8
RETRY = {"maxAttempts": 3, "delay": "50ms", "jitter": 0}


def gated(name: str, **fields: Any) -> Document:
    return {"id": name, "type": "fleet.gated", "retry": RETRY, **fields}


WIDE = workflow("wide", [gated(f"leg{place}") for place in range(WIDTH)])
POOLED = workflow("pooled", [gated("here"), gated("there", pool="gpu")], "here there")


async def start(crew: Fleet, document: Document) -> str:
    execution = await crew.client.start(await crew.client.save(document))
    crew.place.clients.write(Accepted(execution, document["name"]))
    return execution


def begun(crew: Fleet) -> list[Seen]:
    return [seen for seen in crew.place.seen.read() if seen.is_begun]


def has_begun(crew: Fleet, runs: int) -> Callable[[], Awaitable[bool]]:
    async def is_so() -> bool:
        return len(begun(crew)) >= runs

    return is_so


async def owner_first(crew: Fleet, members: Sequence[Member]) -> list[Member]:
    """The same members, beginning with the one that has the execution in hand."""
    [(owner,)] = await crew.ask("select owner from live")
    return sorted(members, key=lambda member: owner not in member.names)


async def shared(crew: Fleet, members: int = 3) -> tuple[str, list[Member]]:
    """A wide execution under way in many hands; those who have them, its owner first."""
    crowd = await crew.join(members, hands=-(-WIDTH // members))
    execution = await start(crew, WIDE)
    await until(has_begun(crew, WIDTH), "every leg is under way")
    return execution, await owner_first(crew, crowd)


async def test_a_wide_execution_is_shared_among_those_who_have_hands_free(crew: Fleet):
    execution, members = await shared(crew)
    crew.place.turn_on("gate")
    ends = await crew.states([execution])
    await crew.quiet()
    verdict = await judge(crew.url, crew.place)

    assert ends == ["SUCCESS"]
    assert {seen.pid for seen in begun(crew)} == {member.pid for member in members}
    assert set(verdict.attempts()) == {1}
    assert verdict.violations == []
    assert crew.faults() == []


async def test_a_member_that_joins_later_helps_with_what_is_under_way(crew: Fleet):
    await crew.join(1, hands=1)
    execution = await start(crew, WIDE)
    await until(has_begun(crew, 1), "the first leg is under way")
    await crew.join(1, hands=WIDTH)
    await until(has_begun(crew, WIDTH), "the others are, too")
    crew.place.turn_on("gate")

    assert await crew.states([execution]) == ["SUCCESS"]
    await crew.quiet()
    assert (await judge(crew.url, crew.place)).violations == []


async def test_the_runs_of_a_killed_runner_are_lost_after_its_lease_and_made_again(crew: Fleet):
    execution, [_, runner, _] = await shared(crew)
    had = {seen.node for seen in begun(crew) if seen.pid == runner.pid}
    runner.signal(signal.SIGKILL)
    await crew.join(1, hands=WIDTH)
    await until(has_begun(crew, WIDTH + len(had)), "what the dead had is under way again")
    crew.place.turn_on("gate")
    ends = await crew.states([execution])
    await crew.quiet()
    verdict = await judge(crew.url, crew.place)

    assert ends == ["SUCCESS"]
    assert {seen.node for seen in begun(crew) if seen.attempt == 2} == had
    assert verdict.lost_attempts == len(had) > 0
    assert verdict.violations == []


async def test_others_go_on_with_their_runs_while_the_owner_is_taken_over_from(crew: Fleet):
    execution, [owner, *runners] = await shared(crew)
    kept = {seen.node for seen in begun(crew) if seen.pid != owner.pid}
    owner.signal(signal.SIGKILL)
    await crew.join(1, hands=WIDTH)
    await until(has_begun(crew, 2 * WIDTH - len(kept)), "what the dead had is under way again")
    crew.place.turn_on("gate")
    ends = await crew.states([execution])
    await crew.quiet()
    verdict = await judge(crew.url, crew.place)

    assert ends == ["SUCCESS"]
    assert {seen.node for seen in begun(crew) if seen.attempt == 2}.isdisjoint(kept)
    assert [runner.code for runner in runners] == [None] * len(runners)
    assert verdict.violations == []


async def test_a_report_that_comes_after_the_lease_changes_nothing(crew: Fleet):
    execution, [_, runner, _] = await shared(crew)
    had = [seen for seen in begun(crew) if seen.pid == runner.pid]
    runner.signal(signal.SIGSTOP)
    await crew.join(1, hands=WIDTH)
    await until(has_begun(crew, WIDTH + len(had)), "what the stopped had is under way again")
    crew.place.turn_on("gate")
    ends = await crew.states([execution])
    before = await crew.ask("select * from log order by execution, seq")
    runner.signal(signal.SIGCONT)

    async def is_told() -> bool:
        return "was reported too late" in runner.said

    await until(is_told, "the late are told")
    await crew.quiet()

    assert ends == ["SUCCESS"]
    assert await crew.ask("select * from log order by execution, seq") == before
    assert (await judge(crew.url, crew.place)).violations == []


async def test_runs_in_other_hands_stop_when_their_execution_is_cancelled(crew: Fleet):
    execution, _ = await shared(crew)
    await crew.client.cancel(execution)
    ends = await crew.states([execution])

    async def have_stopped() -> bool:
        return sum(not seen.is_begun for seen in crew.place.seen.read()) == WIDTH

    await until(have_stopped, "every run has stopped")
    await crew.quiet()

    assert ends == ["CANCELLED"]
    assert (await judge(crew.url, crew.place)).violations == []


@pytest.mark.parametrize("type_", ["fleet.gated", "fleet.stubborn"])
async def test_runs_in_other_hands_have_their_time_limit_also_if_their_nodes_block(crew: Fleet, type_: str):
    await crew.join(1)
    await crew.join(1, pool="gpu")
    node = gated("there", pool="gpu", type=type_, timeout="200ms")
    execution = await start(crew, workflow("limited", [node]))
    ends = await crew.states([execution])
    runs = await crew.ask("select attempt, error_type, error from run where execution = $1 order by attempt", execution)
    crew.place.turn_on("gate")
    await crew.quiet()

    message = "the node did not end in its time limit of 200ms"
    assert ends == ["FAILED"]
    assert runs == [(attempt, "TIMEOUT", message) for attempt in (1, 2, 3)]


async def test_a_runner_that_leaves_hands_back_what_does_not_stop(crew: Fleet):
    await crew.join(1)
    there = (await crew.join(1, pool="gpu", drain=0.2))[0]
    execution = await start(crew, workflow("handed", [gated("there", pool="gpu", type="fleet.stubborn")]))
    await until(has_begun(crew, 1), "the run is under way")
    there.signal(signal.SIGTERM)

    async def is_free() -> list[tuple[Any, ...]]:
        return await crew.ask("select attempt from offer where leased_by is null")

    offered = await until(is_free, "the run is offered again")
    crew.place.turn_on("gate")
    await crew.join(1, pool="gpu")
    ends = await crew.states([execution])

    assert (offered, ends) == ([(1,)], ["SUCCESS"])


async def test_a_pool_has_its_own_members_and_they_do_nothing_else(crew: Fleet):
    here = (await crew.join(1))[0]
    crew.place.turn_on("gate")
    execution = await start(crew, POOLED)

    async def is_offered() -> list[tuple[Any, ...]]:
        return await crew.ask("select node, leased_by from offer where pool = 'gpu'")

    waiting = await until(is_offered, "the pool has something to do")
    there = (await crew.join(1, pool="gpu"))[0]
    ends = await crew.states([execution])
    await crew.quiet()

    assert (waiting, ends) == ([("there", None)], ["SUCCESS"])
    assert [(seen.node, seen.pid) for seen in begun(crew)] == [("here", here.pid), ("there", there.pid)]
    assert (await judge(crew.url, crew.place)).violations == []
