"""Several people decide about one dead letter at the same moment: one of them does, the others hear 409."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from ropewalk.core.errors import Conflict, InvalidTransition
from ropewalk.core.events import NodeFixed, NodeRequeued
from ropewalk.core.state import Resolution
from ropewalk.service import Service
from ropewalk.service.dead_letter_bulk import Outcome
from ropewalk.store import audit, dlq
from ropewalk.store.dlq import Wanted
from ropewalk.wiring import open_service
from tests.engines.worlds import ONCE, World, act, flow

BROKEN = flow(act("a", fails=1, retry=ONCE), name="broken")
ROUNDS = 10


@pytest.fixture(params=["world", "shared_world"])
def either(request: pytest.FixtureRequest) -> World:
    chosen: World = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
async def pair(shared_world: World) -> AsyncIterator[tuple[World, Service]]:
    """Two workers on one PostgreSQL."""
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(open_service(shared_world.settings, shared_world.types))
        yield shared_world, other


async def letter_of(world: World) -> tuple[str, str]:
    ended = await world.run(BROKEN)
    (letter,) = await world.letters(ended.execution)
    return ended.execution, letter["id"]


async def tried(*verbs: Any) -> list[bool]:
    """Which of them were accepted; a refusal is a conflict or comes too late."""
    done = await asyncio.gather(*verbs, return_exceptions=True)
    assert [
        each for each in done if isinstance(each, Exception) and not isinstance(each, Conflict | InvalidTransition)
    ] == []
    return [not isinstance(each, Exception) for each in done]


async def told(world: World, execution: str, letter: str) -> tuple[str, int, int]:
    """How the letter was resolved, how often its node was requeued or fixed, and how many decisions were audited."""
    found = await dlq.get(world.service.store, "default", letter)
    rows = await audit.listed(world.service.store, "default", limit=200)
    audited = [row for row in rows if row.verb in ("requeue", "fix", "discard") and row.object in (execution, letter)]
    facts = [each for each in await world.events(execution) if isinstance(each, NodeRequeued | NodeFixed)]
    assert found is not None
    return found.resolution, len(facts), len(audited)


async def raced(world: World, one: Service, other: Service, verb: str) -> None:
    execution, letter = await letter_of(world)
    argument = ("by hand",) if verb == "fix" else ()

    accepted = await tried(getattr(one, verb)(letter, *argument), other.discard(letter, "ann"))

    resolved = {"requeue": Resolution.REQUEUED, "fix": Resolution.FIXED}[verb] if accepted[0] else Resolution.DISCARDED
    assert sum(accepted) == 1
    assert await told(world, execution, letter) == (resolved, int(accepted[0]), 1)
    if accepted[0]:
        await world.ended(execution)


@pytest.mark.parametrize("verb", ["requeue", "fix"])
async def test_of_a_discard_and_another_decision_at_once_one_is_accepted(either: World, verb: str):
    for _ in range(ROUNDS):
        await raced(either, either.service, either.service, verb)


@pytest.mark.parametrize("verb", ["requeue", "fix"])
async def test_the_same_holds_for_two_workers_of_a_fleet(pair: tuple[World, Service], verb: str):
    world, other = pair
    for _ in range(ROUNDS):
        await raced(world, world.service, other, verb)
        await raced(world, other, world.service, verb)


async def test_in_bulk_every_letter_is_either_requeued_or_discarded(either: World):
    pairs = [await letter_of(either) for _ in range(ROUNDS)]
    letters = either.service.dead_letters

    async def all_of(steps: AsyncIterator[Any]) -> list[Any]:
        return [each async for each in steps if each.outcome in (Outcome.REQUEUED, Outcome.DISCARDED)]

    requeued, discarded = await asyncio.gather(
        all_of(letters.requeue_all(Wanted())), all_of(letters.discard_all(Wanted()))
    )

    assert sorted(each.letter for each in [*requeued, *discarded]) == sorted(letter for _, letter in pairs)
    for execution, letter in pairs:
        resolution, facts, audited = await told(either, execution, letter)
        assert (resolution, audited) == (Resolution.REQUEUED if facts else Resolution.DISCARDED, 1)
    for each in requeued:
        await either.ended(each.execution)


async def test_a_retry_and_a_discard_at_once_leave_a_letter_that_says_what_happened(either: World):
    for _ in range(ROUNDS):
        execution, letter = await letter_of(either)

        _, is_discarded = await tried(either.service.retry(execution), either.service.discard(letter))

        found = await dlq.get(either.service.store, "default", letter)
        assert found is not None
        assert found.resolution == (Resolution.DISCARDED if is_discarded else Resolution.REQUEUED)
        await either.ended(execution)
