"""Many requests are admitted by halves, in order, and each of them in the end."""

import asyncio

import pytest

from ropewalk.api.doors.admission import FEW, Admission

MANY_TURNS = 100


class Crowd:
    """Visitors who stay until they may leave, and what became of them."""

    def __init__(self) -> None:
        self.turns = Admission()
        self.went: list[int] = []
        self.exit = asyncio.Event()

    async def visit(self, number: int) -> None:
        with self.turns:
            await self.turns.wait()
            self.went.append(number)
            await self.exit.wait()

    def come(self, count: int) -> list[asyncio.Task[None]]:
        return [asyncio.ensure_future(self.visit(number)) for number in range(count)]

    async def groups(self) -> list[int]:
        """How many went on in each turn of the loop in which any did."""
        sizes = []
        for _ in range(MANY_TURNS):
            before = len(self.went)
            await asyncio.sleep(0)
            sizes.append(len(self.went) - before)
        return [size for size in sizes if size]


@pytest.mark.parametrize(
    ("count", "groups"),
    [(1, [1]), (FEW, [FEW]), (2 * FEW, [FEW, FEW]), (3 * FEW, [FEW, FEW + FEW // 2, FEW // 2]), (100, [FEW, 50, 42])],
)
async def test_half_of_those_who_are_there_go_on_at_a_time_but_never_less_than_a_few(count: int, groups: list[int]):
    crowd = Crowd()
    visitors = crowd.come(count)

    found = await crowd.groups()

    assert found == groups
    assert crowd.went == list(range(count))
    crowd.exit.set()
    await asyncio.gather(*visitors)


async def test_a_request_that_leaves_takes_no_place():
    crowd = Crowd()
    visitors = crowd.come(2 * FEW + 1)
    await asyncio.sleep(0)
    for gone in visitors[FEW:-1]:
        gone.cancel()

    await crowd.groups()

    assert crowd.went == [*range(FEW), 2 * FEW]
    crowd.exit.set()
    await asyncio.gather(*visitors, return_exceptions=True)


async def test_a_later_request_is_not_admitted_before_those_that_wait():
    crowd = Crowd()
    visitors = crowd.come(2 * FEW)
    await asyncio.sleep(0)
    visitors += [asyncio.ensure_future(crowd.visit(99))]

    await crowd.groups()

    assert crowd.went == [*range(2 * FEW), 99]
    crowd.exit.set()
    await asyncio.gather(*visitors)


async def test_a_crowd_that_has_left_makes_room_for_the_next():
    crowd = Crowd()
    crowd.exit.set()
    await asyncio.gather(*crowd.come(2 * FEW))
    await crowd.groups()
    crowd.went.clear()
    crowd.exit.clear()
    visitors = crowd.come(2 * FEW)

    assert await crowd.groups() == [FEW, FEW]
    crowd.exit.set()
    await asyncio.gather(*visitors)
