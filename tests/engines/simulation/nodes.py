"""Nodes that do whatever chance wants, under the names the random workflows use."""

import asyncio
from random import Random
from typing import Any

import uuid_utils
from pydantic import BaseModel, ConfigDict

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.waits import Approval, ChildWait, EventWait, SignalWait, Timer, Wait
from ropewalk.nodes.base import NodeContext, NodeFailure, NodeType, Output
from tests.simulator.workflows import PORTS, WAITS

SIGNAL = "ping"
SUBJECT = "bell.rang"
CHILDREN = ("child-0", "child-1")
FILTERS = ("item > 1", "item > 1 and input.key == input.key and workspace != null")
LARGE = "x" * 70_000
DURATIONS = (0, 0, 0, 0.001, 0.3, 2, 7, 400)
KINDS = (ErrorType.TRANSIENT, ErrorType.TRANSIENT, ErrorType.TIMEOUT, ErrorType.PERMANENT)


class Anything(BaseModel):
    """Parameters nobody looks at."""

    model_config = ConfigDict(extra="allow")


class Whim(NodeType):
    """Takes its time, then fails, breaks or succeeds."""

    Parameters = Anything

    def __init__(self, name: str, chance: Random, durations: tuple[float, ...]) -> None:
        self._durations = durations
        self.name = name
        self.ports = PORTS[name]
        self.is_wait = name in WAITS
        self._chance = chance

    def accept(self, inputs: Any) -> Any:
        return inputs

    def target(self, parameters: Any) -> str | None:
        return "shop" if self.name == "branch" else None

    async def run(self, parameters: Any, context: NodeContext) -> Output | Wait:
        await self._take_time()
        self._fail_perhaps()
        return self._wait(context) if self.is_wait else self._output()

    async def _take_time(self) -> None:
        """Some do not stop at once when they are told to."""
        duration = self._chance.choice(self._durations)
        try:
            await asyncio.sleep(duration)
        except asyncio.CancelledError:
            if self._chance.random() < 0.7:
                raise
            await asyncio.sleep(0.5)

    def _fail_perhaps(self) -> None:
        fate = self._chance.random()
        if fate < 0.2:
            wish = self._chance.choice((None, None, 3.0))
            raise NodeFailure(RunError(self._chance.choice(KINDS), "no luck", retry_after=wish))
        if fate < 0.25:
            raise RuntimeError("broken")

    def _output(self) -> Output:
        value = LARGE if self._chance.random() < 0.03 else self._chance.randrange(100)
        return Output(value, (self._chance.choice(self.ports),) if self.ports else ())

    def _wait(self, context: NodeContext) -> Wait:
        match self.name:
            case "sleep":
                return Timer(context.now + self._chance.choice((0, 1, 10, 60)) * SECOND)
            case "ask":
                return Approval("may I?")
            case "listen":
                return SignalWait(SIGNAL)
            case "hear":
                return EventWait(SUBJECT, self._chance.choice((None, *FILTERS)))
            case _:
                given = {"items": list(range(self._chance.randrange(3))), "key": self._chance.randrange(2)}
                return ChildWait(str(uuid_utils.uuid7()), self._chance.choice((*CHILDREN, *CHILDREN, "nowhere")), given)


def whims(chance: Random, durations: tuple[float, ...] = DURATIONS) -> list[NodeType]:
    return [Whim(name, chance, durations) for name in PORTS]
