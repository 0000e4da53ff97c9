"""People ask for anything, in any order, of executions that wait, are parked or are over: nothing comes apart.

The simulator does the same with time and faults of its own; here the stores are real, and so is every restart. What
people ask for comes from one seed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from ropewalk.core.errors import RopewalkError
from ropewalk.core.execution import Execution
from ropewalk.core.state import ExecutionState
from ropewalk.service import reading
from ropewalk.telemetry.logs import FAILURES, ROOT
from tests.engines.judging import judge, kept_executions
from tests.engines.worlds import ONCE, World, act, at_most, flow, node

STEPS = 40
ROUNDS = 100
GO = node("go", "wait", signal="go")
BROKEN = act("a", fails=1, retry=ONCE)
CHILD = flow(GO, act("b", fails=1, retry=ONCE), edges="go->b", name="child")
DOCUMENTS = [
    flow(BROKEN, node("ask", "approval", title="?"), edges="a->ask", name="asking"),
    flow(GO, act("b"), edges="go->b", name="keyed", concurrencyKey="{{ input.key }}"),
    flow(node("sub", "subworkflow", workflow="child"), act("b"), edges="sub->b", name="parent"),
    flow(BROKEN | {"forEach": [1, 2, 3]}, act("b"), edges="a->b", name="map", concurrencyKey="{{ input.key }}"),
    flow(node("ask", "approval", title="?", timeout="100ms"), act("b"), edges="ask->b", name="expiring", timeout="1h"),
    flow(node("long", "delay", **{"for": "1h"}), act("b"), edges="long->b", name="parked"),
]
Verb = Callable[["People", str], Awaitable[Any]]


class People:
    """They ask for one thing after the other, and take any answer."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chance = Random(seed)

    async def ask(self) -> None:
        """One request about someone; to be refused is an answer too."""
        known = await kept_executions(self.world.db)
        await self._try(self.chance.choice(VERBS), self.chance.choice(known) if known else "nobody")

    async def _try(self, verb: Verb, someone: str) -> None:
        try:
            await verb(self, someone)
        except RopewalkError:
            return

    # What they ask for

    async def start(self, _: str) -> None:
        await self.world.save(CHILD)
        given = {"key": str(self.chance.randrange(2))}
        await self.world.start(self.chance.choice(DOCUMENTS), given, priority=self.chance.randrange(10))

    async def signal(self, someone: str) -> None:
        await self.world.service.signal(someone, "go")

    async def decide(self, someone: str) -> None:
        await self.world.service.decide(someone, "ask", approved=self.chance.random() < 0.7)

    async def give_up(self, someone: str) -> None:
        nodes = [each["id"] for each in (await self.world.details(someone))["nodes"]]
        await self.world.service.give_up(someone, self.chance.choice(nodes))

    async def requeue(self, someone: str) -> None:
        for letter in (await self.world.letters(someone))[:1]:
            await self.world.service.requeue(letter["id"])

    async def fix(self, someone: str) -> None:
        for letter in (await self.world.letters(someone))[:1]:
            await self.world.service.fix(letter["id"], "fixed")

    async def restart(self, _: str) -> None:
        """Whenever everything stands still, the store is without fault; some may be claimed, and not have begun."""
        world = self.world
        await world.close()
        assert await judge(world.db, world.outside.effects, world.limits, at_rest=False) == []
        await self.world.open()

    async def crash(self, _: str) -> None:
        await self.world.crash()
        await self.world.open()

    # When they have had enough

    async def conclude(self) -> None:
        """Give everyone what they wait for, until all are over."""
        for _ in range(ROUNDS):
            left = [each for each in await kept_executions(self.world.db) if not (await self._folded(each)).is_ended]
            if not left:
                return
            for execution in left:
                for verb in (RESUME, People.signal, People.decide, People.wait_no_longer):
                    await self._try(verb, execution)
            await self._until_one_is_over(left)
        raise AssertionError(f"they are never over: {[(each, (await self._folded(each)).state) for each in left]}")

    async def wait_no_longer(self, execution: str) -> None:
        x = await self._folded(execution)
        if "long" in x.plan.index and x.state is ExecutionState.RUNNING:
            await self.world.service.cancel(execution)

    async def _until_one_is_over(self, executions: list[str]) -> None:
        """Or until others may wait for something that they did not wait for before."""
        waiting = [asyncio.ensure_future(self.world.ended(each)) for each in executions]
        await asyncio.wait(waiting, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def _folded(self, execution: str) -> Execution:
        return (await reading.recorded(self.world.service.store, execution)).folded()


RESUME: Verb = lambda people, someone: people.world.service.resume(someone)  # noqa: E731 -- one of the verbs below
VERBS: list[Verb] = [
    *[People.start] * 3,
    *[RESUME] * 3,
    *[lambda people, someone: people.world.service.pause(someone)] * 2,
    *[lambda people, someone: people.world.service.retry(someone)] * 2,
    lambda people, someone: people.world.service.cancel(someone),
    lambda people, someone: people.world.service.replay(someone),
    lambda people, someone: people.world.service.rerun(someone, "b"),
    *[People.signal, People.decide] * 2,
    *[People.give_up, People.requeue, People.fix, People.restart, People.crash],
]


EXPECTED = ("the process is gone", "unexpected connection_lost() call")
"""Of a crash; the second is the driver's, about a connection that was lost with it."""
FAILURE_LOG = f"{ROOT}.{FAILURES}"
"""The log of executions that fail, as those here do on purpose."""


async def told(world: World, seed: int, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the engine has to complain about when people have asked for this and that, and everything is over."""
    await world.restart(default_slots=1 + seed % 2)
    people = People(world, seed)
    for _ in range(STEPS):
        await at_most(20, people.ask())
    await at_most(40, people.conclude())
    records = [each for each in caplog.records if each.levelname == "ERROR" and each.name != FAILURE_LOG]
    errors = [each.getMessage() for each in records]
    return [error for error in errors if not any(expected in error for expected in EXPECTED)]


@pytest.mark.parametrize("seed", [*range(8), 20])
async def test_whatever_people_ask_for_holds_together_in_a_file(
    world: World, seed: int, caplog: pytest.LogCaptureFixture
):
    assert await told(world, seed, caplog) == []


@pytest.mark.parametrize("seed", [0, 4])
async def test_whatever_people_ask_for_holds_together_on_a_shared_store(
    shared_world: World, seed: int, caplog: pytest.LogCaptureFixture
):
    assert await told(shared_world, seed, caplog) == []
