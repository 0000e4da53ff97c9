"""What the members execute. Each node that does anything writes down that it did, and who did it."""

import asyncio
import os
import random
import signal
import time
from contextlib import suppress
from math import inf
from typing import Any, Final

from ropewalk.checker import Effect
from ropewalk.nodes.base import Inputs, NodeContext, NodeFailure, NodeType, Output
from tests.crash.ledgers import Ledger
from tests.crash.workflows import CHILD, KEYS, WORKFLOWS, Document, Gate, node, node_types_of, workflow
from tests.fleet.ledgers import Place, Seen
from tests.polling import until

LOOK_EVERY: Final = 0.01


class Watched(NodeType):
    """Tells the ledgers of every attempt, as it begins and when it is over."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._effects = Witness(place)
        self._seen = place.seen

    async def run(self, parameters: Any, context: NodeContext) -> Output:
        where = (context.execution, context.node, context.item, context.attempt)
        self._effects.write(Effect(*where, context.idempotency_key))
        try:
            return await self.work(parameters, context)
        finally:
            self._seen.write(Seen(os.getpid(), *where, False, time.monotonic()))

    async def work(self, parameters: Any, context: NodeContext) -> Output:
        raise NotImplementedError


class Gated(Watched):
    """Waits until its switch is on."""

    name = "fleet.gated"

    class Parameters(Inputs):
        switch: str = "gate"

    async def work(self, parameters: Parameters, context: NodeContext) -> Output:
        await until(lambda: self._place.is_on(parameters.switch), f"the switch {parameters.switch} is on", inf)
        return Output(context.attempt)


class Stubborn(Gated):
    """The same, and it does not stop when it is told to."""

    name = "fleet.stubborn"

    async def work(self, parameters: Gated.Parameters, context: NodeContext) -> Output:
        while not self._place.is_on(parameters.switch):
            with suppress(asyncio.CancelledError):
                await until(lambda: self._place.is_on(parameters.switch), f"the switch {parameters.switch} is on", inf)
        return Output(context.attempt)


class Called(Watched):
    """Calls a target, whose health a breaker watches, and which fails as long as its switch is on."""

    name = "fleet.call"

    class Parameters(Inputs):
        switch: str = "down"

    def target(self, parameters: Parameters) -> str:
        return f"call {parameters.switch}"

    async def work(self, parameters: Parameters, context: NodeContext) -> Output:
        await asyncio.sleep(LOOK_EVERY)  # the call itself
        if self._place.is_on(parameters.switch):
            raise NodeFailure.transient("the target does not answer")
        return Output(context.attempt)


class Wall(Watched):
    """Looks at the clock on the wall, as no part of the engine does."""

    name = "fleet.wall"

    async def work(self, parameters: Any, context: NodeContext) -> Output:
        return Output(time.time())


class Poison(Watched):
    """Kills the worker that carries it out."""

    name = "fleet.poison"

    async def work(self, parameters: Any, context: NodeContext) -> Output:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("no process survives this")


class Witness(Ledger[Effect]):
    """The ledger of effects, which also notes whose they are."""

    def __init__(self, place: Place) -> None:
        self._effects = place.effects
        self._seen = place.seen

    def write(self, line: Effect, *, is_synced: bool = False) -> None:
        self._effects.write(line, is_synced=is_synced)
        where = (line.execution, line.node, line.item, line.attempt)
        self._seen.write(Seen(os.getpid(), *where, True, time.monotonic()))


def types_of(place: Place) -> list[NodeType]:
    """Every node type of these workflows."""
    own = [Gated(place), Stubborn(place), Called(place), Wall(place), Poison(place)]
    return [*node_types_of(Witness(place), Gate(arrive=lambda: None)), *own]


CHAIN: Final = workflow("chain", [node(name, takes=0.01) for name in ("one", "two", "three")], "one two", "two three")
BRIEF: Final = workflow("brief", [node("one", takes=0.005), node("two")], "one two")
SINGLE: Final = workflow("single", [node("one", takes=0.002)])
KEYED: Final = workflow(
    "keyed", [node("one", takes=0.005), node("two", takes=0.005)], "one two", concurrencyKey="{{ input.key }}"
)

MIXED: Final[tuple[Document, ...]] = (CHAIN, *WORKFLOWS)
"""Every way to be in the middle of something."""

SMOOTH: Final[tuple[Document, ...]] = (
    CHAIN,
    *(each for each in WORKFLOWS if each["name"] in ("fan", "parent", "family", "nap", "keyed", "large")),
    workflow("items", [node("each", forEach="{{ input.items }}", concurrency=3, takes=0.02)]),
)
"""Workflows in which no attempt fails unless a fault makes it."""

__all__ = ["BRIEF", "CHAIN", "CHILD", "KEYED", "KEYS", "MIXED", "SINGLE", "SMOOTH", "input_for", "node", "workflow"]


def input_for(chance: random.Random) -> Document:
    """The same input does for every workflow; naps are short, so that everything can end soon."""
    return {"items": list(range(chance.randrange(1, 7))), "key": chance.choice(KEYS), "nap": "150ms"}
