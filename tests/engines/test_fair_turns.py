"""Fair turns: whoever brings much waits with it for himself."""

import asyncio

import pytest

from ropewalk.engines.computing import Computing
from ropewalk.engines.fair_turns import FairTurns, TooManyWaiting


async def take(turns: FairTurns, group: str, member: str, order: list[str], rest: float = 0.0) -> None:
    async with turns.turn(group, member) as turn:
        order.append(group + member)
        await asyncio.sleep(0)
        turn.rest = rest


async def in_line(turns: FairTurns, order: list[str], *whose: str) -> None:
    await asyncio.gather(*(take(turns, each[0], each[1:], order) for each in whose))


async def test_groups_and_their_members_have_their_turns_in_rotation():
    order: list[str] = []

    await in_line(FairTurns(), order, "a1", "a1", "a1", "a1", "a2", "b1", "b1")

    assert order == ["a1", "a1", "b1", "a2", "b1", "a1", "a1"]


@pytest.mark.parametrize("at_once", [1, 2])
async def test_so_many_at_a_time_have_the_turn(at_once: int):
    turns, inside = FairTurns(at_once), 0

    async def alone() -> int:
        nonlocal inside
        async with turns.turn("a", "1"):
            inside += 1
            most = inside
            await asyncio.sleep(0)
            inside -= 1
            return most

    assert max(await asyncio.gather(*(alone() for _ in range(5)))) == at_once


async def test_a_member_that_rests_lets_others_go_first():
    turns, order = FairTurns(), []

    await asyncio.gather(take(turns, "a", "1", order, 0.05), *(take(turns, "a", each, order) for each in "1122"))

    assert order == ["a1", "a2", "a2", "a1", "a1"]


async def test_who_has_as_many_waiting_as_he_may_is_refused_and_others_are_not():
    turns, order = FairTurns(), []
    async with turns.turn("a", "1", most=2):
        waiting = asyncio.ensure_future(take(turns, "a", "1", order))
        await asyncio.sleep(0)
        with pytest.raises(TooManyWaiting):
            await turns.turn("a", "1", most=2).__aenter__()
        other = asyncio.ensure_future(take(turns, "a", "2", order))
        await asyncio.sleep(0)

    await asyncio.gather(waiting, other)
    await take(turns, "a", "1", order)

    assert order == ["a1", "a2", "a1"]


async def test_who_goes_away_takes_nobodys_turn():
    turns, order = FairTurns(), []
    async with turns.turn("a", "1"):
        gone = [asyncio.ensure_future(take(turns, "a", "1", order)) for _ in range(3)]
        left = asyncio.ensure_future(take(turns, "b", "1", order))
        await asyncio.sleep(0)
        for each in gone:
            each.cancel()
    gone[0].cancel()
    await left
    await take(turns, "a", "1", order)

    assert order == ["b1", "a1"]


async def test_a_turn_that_comes_together_with_a_cancellation_is_passed_on():
    turns, order = FairTurns(), []
    async with turns.turn("a", "1"):
        gone = asyncio.ensure_future(take(turns, "a", "1", order))
        await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([gone])

    await take(turns, "a", "2", order)

    assert order == ["a2"]


async def test_work_that_takes_long_keeps_the_loop_from_nothing_and_its_errors_are_raised():
    computing = Computing()

    made = await computing.of_execution("w", "e", lambda: 7)
    with pytest.raises(ZeroDivisionError):
        await computing.of_execution("w", "e", lambda: 1 / 0)
    asked = await computing.of_caller("w", "somebody", lambda: 8)
    computing.close()

    assert (made, asked) == (7, 8)
