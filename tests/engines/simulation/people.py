"""People: clients who start executions and wait for them, and those who meddle with them at any moment."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import RopewalkError
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import Approval, EventWait, SignalWait, Wait
from ropewalk.engines.base import Version
from ropewalk.service import Service, reading
from ropewalk.service.verbs import NewStart
from ropewalk.store import retention
from ropewalk.store.retention import Cutoffs
from tests.engines.simulation.knots import knotted
from tests.engines.simulation.nodes import SIGNAL, SUBJECT

ANN = "ann"
IMPATIENCE = 0.0
"""How many of them go away before they are answered."""
LONGEST_PATIENCE = 3.0
KEPT = 2 * SECOND
"""How long executions are kept after their end where anybody sweeps."""
Verb = Callable[["People", Service], Awaitable[Any]]


class People:
    """Everyone who asks something of the service; they remember what they were promised."""

    def __init__(self, db: str, chance: Random, sometimes: Counter[str], note: Callable[[str], None]) -> None:
        self.chance = chance
        self.verbs = VERBS
        self.accepted: list[str] = []
        # What was answered to starts under a key; once is enough for all.
        self.by_key: dict[tuple[str, str], dict[str, None]] = {}
        self.documents: list[dict[str, Any]] = []
        self._sometimes = sometimes
        self._note = note
        self._tables = sqlite3.connect(db)

    def close(self) -> None:
        self._tables.close()

    def look_up(self, question: str) -> list[Any]:
        return [row[0] for row in self._tables.execute(question)]

    async def do_something(self, service: Service) -> None:
        """One request; to be refused is an answer too."""
        name, verb = self.chance.choice(self.verbs)
        self._note(f"{name}?")
        try:
            async with asyncio.timeout(self._patience()):
                answer = await verb(self, service)
        except TimeoutError:
            self._sometimes["gone away"] += 1
            self._note(f"{name}: nobody waits for the answer")
        except RopewalkError as refusal:
            self._sometimes[f"{name} refused"] += 1
            self._note(f"{name}: {type(refusal).__name__} {refusal}")
        else:
            self._sometimes[name] += 1
            self._note(f"{name}: {answer}")

    def _patience(self) -> float | None:
        """Seconds; none is endless."""
        # Nothing is drawn where nobody is impatient: what a seed tells stays the same.
        if not IMPATIENCE or self.chance.random() >= IMPATIENCE:
            return None
        return self.chance.choice((0.0, self.chance.uniform(0, LONGEST_PATIENCE)))

    # What they ask for

    async def start(self, service: Service) -> str:
        version = await self._saved(service)
        given = {"items": list(range(self.chance.randrange(4))), "key": self.chance.randrange(2)}
        execution = await service.start(version, given, priority=self.chance.randrange(10))
        self.accepted.append(execution)
        return execution

    async def _saved(self, service: Service) -> Version:
        """One of the workflows; those it may call are there too."""
        return self.chance.choice([await service.save(document) for document in self.documents])

    async def start_once(self, service: Service) -> str:
        """Whoever comes with the key of another wants the same, and gets it."""
        key = f"key {self.chance.randrange(3)}"
        version = await service.save(self.documents[0])
        execution = await service.start(version, {"items": [0, 1], "key": 0}, key=key)
        self.accepted.append(execution)
        self.by_key.setdefault((service.workspace, key), {})[execution] = None
        return execution

    async def start_many(self, service: Service) -> list[str]:
        version = await self._saved(service)
        starts = [NewStart(version, {"items": [0], "key": number % 2}) for number in range(self.chance.randint(1, 4))]
        executions = await service.start_batch(starts)
        self.accepted += executions
        return executions

    async def start_and_wait(self, service: Service) -> ExecutionState:
        return (await service.ended(await self.start(service))).state

    async def follow(self, service: Service) -> int:
        return len([event async for event in service.follow(self._someone())])

    async def decide(self, service: Service) -> bool:
        execution = self._someone()
        node = self.chance.choice(await self._waiting(service, execution, Approval) or ["n0"])
        return await service.decide(execution, node, approved=self.chance.random() < 0.7, by=ANN)

    async def give_up(self, service: Service) -> bool:
        return await service.give_up(self._someone(), f"n{self.chance.randrange(3)}", by=ANN)

    async def requeue(self, service: Service) -> str:
        return await service.requeue(self._letter(), {"read": "other"} if self.chance.random() < 0.5 else None, ANN)

    async def requeue_twice(self, service: Service) -> list[Any]:
        letter = self._letter()
        both = (service.requeue(letter), service.requeue(letter))
        return [type(each).__name__ for each in await asyncio.gather(*both, return_exceptions=True)]

    async def fix(self, service: Service) -> str:
        return await service.fix(self._letter(), "fixed", ANN)

    async def discard(self, service: Service) -> None:
        await service.discard(self._letter(), ANN)

    async def rerun(self, service: Service) -> None:
        self.accepted.append(await service.rerun(self._someone(), "n0", ANN))

    async def sweep(self, service: Service) -> int:
        """Away with what ended a moment ago."""
        now = service.store.now()
        old = Cutoffs(now=now, executions=now - KEPT, letters=now - KEPT, blobs=now)
        async with service.store.transaction() as tx:
            removed, _ = await retention.remove_executions(tx, "", old, self.chance.choice((1, 5, 100)))
        return len(removed)

    async def _waiting(self, service: Service, execution: str, kind: type[Wait]) -> list[str]:
        x = (await reading.recorded(service.store, execution)).folded()
        return [x.plan.ids[work.node] for work in x.waiting.values() if isinstance(work.wait, kind)]

    def _someone(self) -> str:
        known = self.look_up("select id from execution order by id")
        return self.chance.choice(known) if known else "nobody"

    def _letter(self) -> str:
        known = self.look_up("select id from dead_letter order by resolution != 'PENDING', id limit 5")
        return self.chance.choice(known) if known else "no letter"

    # When nobody makes trouble any more

    async def answer_everything(self, service: Service) -> None:
        """Resume what is paused and give what is waited for, in one workspace."""
        living = f"select execution from live where workspace = '{service.workspace}' order by execution"
        for execution in self.look_up(living):
            x = (await reading.recorded(service.store, execution)).folded()
            if x.state is ExecutionState.PAUSED:
                await self._try(service.resume(execution, ANN))
            for work in list(x.waiting.values()):
                await self._answer(service, execution, x.plan.ids[work.node], work.item, work.wait)

    async def untangle(self, service: Service) -> None:
        """Give up one of those that wait for each other's keys, if it is of this workspace."""
        if (knot := knotted(self._tables)) is not None:
            self._sometimes["waited for each other"] += 1
            self._note(f"{knot} is given up")
            await self._try(service.cancel(knot, ANN))

    async def _answer(self, service: Service, execution: str, node: str, item: int | None, wait: Wait | None) -> None:
        match wait:
            case Approval():
                await self._try(service.decide(execution, node, approved=True, by=ANN, item=item))
            case SignalWait(name):
                await self._try(service.signal(execution, name, 7, ANN))
            case EventWait(subject):
                await self._try(service.publish(subject, 7))

    async def _try(self, request: Awaitable[Any]) -> None:
        try:
            await request
        except RopewalkError as refusal:
            self._note(f"an answer was refused: {refusal}")


VERBS: tuple[tuple[str, Verb], ...] = (
    *[("start", People.start)] * 8,
    *[("start and wait", People.start_and_wait)] * 8,
    *[("follow", People.follow)] * 2,
    *[("pause", lambda people, service: service.pause(people._someone(), ANN))] * 4,
    *[("resume", lambda people, service: service.resume(people._someone(), ANN))] * 4,
    *[("cancel", lambda people, service: service.cancel(people._someone(), ANN))] * 2,
    *[("retry", lambda people, service: service.retry(people._someone(), ANN))] * 3,
    *[("signal", lambda people, service: service.signal(people._someone(), SIGNAL, 3, ANN))] * 4,
    *[("publish", lambda people, service: service.publish(SUBJECT, people.chance.randrange(4)))] * 4,
    *[("decide", People.decide)] * 4,
    *[("requeue", People.requeue)] * 4,
    *[("requeue twice", People.requeue_twice)] * 2,
    *[("fix", People.fix)] * 3,
    ("give up", People.give_up),
    ("discard", People.discard),
    ("rerun", People.rerun),
    ("replay", lambda people, service: service.replay(people._someone(), ANN)),
)

FLEET_VERBS: tuple[tuple[str, Verb], ...] = (
    *VERBS,
    *[("start once", People.start_once)] * 3,
    *[("start many", People.start_many)] * 3,
    *[("give up", People.give_up)] * 3,
)
SWEEPING_VERBS: tuple[tuple[str, Verb], ...] = (*FLEET_VERBS, *[("sweep", People.sweep)] * 15)
