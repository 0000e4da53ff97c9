"""Runners outside: they lease over HTTP from whichever worker answers, and report to another, in time or not."""

import asyncio
from collections.abc import Awaitable, Callable
from copy import deepcopy
from random import Random
from typing import TYPE_CHECKING, Any

from ropewalk.checker import Effect
from ropewalk.core.errors import ErrorType, RopewalkError, RunError
from ropewalk.engines.leasing import Leased
from ropewalk.service import Service, runners
from tests.engines.simulation.nodes import LARGE
from tests.engines.simulation.process import WORKSPACE
from tests.engines.simulation.workflows import OTHER_WORKSPACE, POOL
from tests.simulator.workflows import PORTS

if TYPE_CHECKING:
    from tests.engines.simulation.fleet import Fleet

COUNT = 0
"""How many there are; where there are none, a seed tells what it always told."""
IN_POOL = 0.8
LEASE = 10.0
PATIENCE = 30.0
PAUSES = (0, 0.1, 2)
WORK = (0, 0.01, 0.3, 1, 4, 9, 15)
NOT_HEARD = object()


def with_work_for_runners(documents: list[dict[str, Any]], chance: Random) -> list[dict[str, Any]]:
    """The same, with more in the pool that runners look at."""
    documents = deepcopy(documents)
    for document in documents:
        for node in document["nodes"]:
            if chance.random() < IN_POOL:
                node["pool"] = POOL
    return documents


class Runner:
    """Looks for work, does it, says so; or forgets about it."""

    def __init__(self, fleet: "Fleet", name: str) -> None:
        self._fleet = fleet
        self._chance = fleet.chance
        self._name = name

    async def live(self, seconds: float) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            await asyncio.sleep(self._chance.choice(PAUSES))
            found = await self._ask(self._look)
            if isinstance(found, list):
                await asyncio.gather(*(self._carry_out(leased) for leased in found))

    async def _look(self, service: Service) -> list[Leased]:
        seeker = runners.seeker(service.workspace, POOL, self._name, "ann", self._chance.randint(1, 3))
        gone = asyncio.get_running_loop().create_future()
        return await service.engine.leasing.lease(seeker, self._chance.choice((0, 3, 20)), gone)

    async def _carry_out(self, leased: Leased) -> None:
        offer = leased.offer
        effect = Effect(offer.execution, offer.node, leased.item, offer.attempt, leased.idempotency_key)
        self._fleet.outside.effects.append(effect)
        self._fleet.sometimes["leased by a runner"] += 1
        for _ in range(self._chance.randrange(3)):
            await asyncio.sleep(self._chance.choice(WORK))
            await self._ask(lambda service: service.engine.leasing.keep(leased.lease))
        await asyncio.sleep(self._chance.choice(WORK))
        for _ in range(self._chance.choice((0, 1, 1, 1, 2))):
            await self._report(leased)

    async def _report(self, leased: Leased) -> None:
        """Twice is once: whoever is not sure of having been heard says it again."""
        fate, ports = self._chance.random(), PORTS[leased.work.type]
        if fate < 0.7:
            port = [self._chance.choice(ports)] if ports else []
            output = LARGE if fate < 0.03 else self._chance.randrange(100)
            answer = await self._ask(lambda service: runners.complete(service.engine, leased.lease, output, port))
        else:
            error = RunError(ErrorType.TRANSIENT if fate < 0.9 else ErrorType.PERMANENT, "no luck")
            answer = await self._ask(lambda service: runners.fail(service.engine, leased.lease, error))
        if isinstance(answer, RopewalkError):
            self._fleet.sometimes["report of a runner refused"] += 1
        elif answer is not NOT_HEARD:
            self._fleet.sometimes["report of a runner taken"] += 1

    async def _ask(self, request: Callable[[Service], Awaitable[Any]]) -> Any:
        """The answer of a worker, refusals too; NOT_HEARD if there was nobody, or nobody answered."""
        serving = [member for member in self._fleet.members if member.is_serving]
        if not serving:
            return NOT_HEARD
        member = self._chance.choice(serving)
        service = member.service_of(self._chance.choice((WORKSPACE, OTHER_WORKSPACE)))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        member.ask(_answered(lambda: request(service), answer))
        try:
            async with asyncio.timeout(PATIENCE):
                return await answer
        except TimeoutError:
            return NOT_HEARD


async def _answered(request: Callable[[], Awaitable[Any]], answer: "asyncio.Future[Any]") -> None:
    try:
        result = await request()
    except RopewalkError as refusal:
        result = refusal
    if not answer.done():
        answer.set_result(result)
