"""The world outside the engine: what nodes do to it, what it sees of them, and where it holds them up."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import uuid_utils

from ropewalk.checker import Effect
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.waits import BreakerWait, ChildWait
from ropewalk.nodes.base import Inputs, NodeContext, NodeFailure, NodeType, Output, Registry, Wait


class Gate:
    """Where nodes stop until they are let through."""

    def __init__(self) -> None:
        self._came: asyncio.Queue[str] = asyncio.Queue()
        self._open = asyncio.Event()
        self.inside = self.most = 0

    async def arrived(self, count: int = 1) -> list[str]:
        """Waits until so many more have come; their nodes' names, in the order they came."""
        return [await self._came.get() for _ in range(count)]

    def open(self) -> None:
        self._open.set()

    async def pass_through(self, node: str) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self._came.put_nowait(node)
        try:
            await self._open.wait()
        finally:
            self.inside -= 1


class Outside:
    """Sees every attempt that is carried out, as it begins."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.gates: dict[str, Gate] = {}

    def gate(self, name: str = "gate") -> Gate:
        return self.gates.setdefault(name, Gate())

    def saw(self, execution: str, node: str, item: int | None = None) -> int:
        """How often a node or item was seen at work."""
        return len(self.attempts(execution, node, item))

    def attempts(self, execution: str, node: str, item: int | None = None) -> list[Effect]:
        where = (execution, node, item)
        return [effect for effect in self.effects if (effect.execution, effect.node, effect.item) == where]

    def order(self, execution: str) -> list[str]:
        """The nodes of an execution in the order they were seen."""
        return [effect.node for effect in self.effects if effect.execution == execution]


class Act(NodeType):
    """Hands on its value, after so many failures."""

    name = "act"
    ports = ("left", "right")

    class Parameters(Inputs):
        value: Any = None
        fails: int = 0
        kind: Literal["TRANSIENT", "PERMANENT", "TIMEOUT"] = "TRANSIENT"
        message: str = "no luck"
        retry_after: float | None = None
        port: str | None = None
        body: str | None = None

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        if context.attempt <= parameters.fails:
            kind, status = ErrorType(parameters.kind), None if parameters.body is None else 409
            wish, body = parameters.retry_after, parameters.body
            raise NodeFailure(RunError(kind, parameters.message, retry_after=wish, status=status, body=body))
        return Output(parameters.value, () if parameters.port is None else (parameters.port,))


class Call(Act):
    """The same, but it calls somebody, whose health a breaker watches."""

    name = "call"

    class Parameters(Act.Parameters):
        endpoint: str = "shop"

    def target(self, parameters: Parameters) -> str:
        return f"call {parameters.endpoint}"


class Late(NodeType):
    """Sets out to wait for a breaker that has closed by then; comes back and is through."""

    name = "late"

    class Parameters(Inputs):
        seconds: int = 3_600

    def __init__(self) -> None:
        self._waited: dict[str, None] = {}

    async def run(self, parameters: Parameters, context: NodeContext) -> Output | Wait:
        if context.idempotency_key in self._waited:
            return Output("through")
        self._waited[context.idempotency_key] = None
        return BreakerWait("call shop", context.now + parameters.seconds * SECOND)


class Stop(NodeType):
    """Stops at a gate until it is let through."""

    name = "gate"

    class Parameters(Inputs):
        gate: str = "gate"
        value: Any = None

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    async def run(self, parameters: Parameters, context: NodeContext) -> Output | Wait:
        await self._outside.gate(parameters.gate).pass_through(context.node)
        return Output(parameters.value)


class Stubborn(Stop):
    """The same, but it does not let itself be cancelled."""

    name = "stubborn"

    async def run(self, parameters: Stop.Parameters, context: NodeContext) -> Output | Wait:
        passing = asyncio.ensure_future(super().run(parameters, context))
        while not passing.done():
            try:
                await asyncio.wait([passing])
            except asyncio.CancelledError:
                continue
        return passing.result()


class Summon(Stop):
    """Stops at a gate, then calls for a child and waits for it."""

    name = "summon"
    is_wait = True

    class Parameters(Stop.Parameters):
        workflow: str = "child"

    async def run(self, parameters: Stop.Parameters, context: NodeContext) -> Wait:
        assert isinstance(parameters, Summon.Parameters), "its own"
        await self._outside.gate(parameters.gate).pass_through(context.node)
        return ChildWait(str(uuid_utils.uuid7()), parameters.workflow)


class Watched(NodeType):
    """Any node type, with the world watching."""

    def __init__(self, watched: NodeType, outside: Outside) -> None:
        self.name, self.only_shapes = watched.name, watched.only_shapes
        self._watched = watched
        self._outside = outside

    def accept(self, inputs: Any) -> Any:
        return self._watched.accept(inputs)

    def wrong_ports(self, parameters: Mapping[str, Any], taken: Sequence[str]) -> str | None:
        return self._watched.wrong_ports(parameters, taken)

    def target(self, parameters: Any) -> str | None:
        return self._watched.target(parameters)

    async def run(self, parameters: Any, context: NodeContext) -> Output | Wait:
        seen = Effect(context.execution, context.node, context.item, context.attempt, context.idempotency_key)
        self._outside.effects.append(seen)
        return await self._watched.run(parameters, context)


class WatchedTypes(Registry):
    """Node types whose every attempt the world sees."""

    outside: Outside
    forgotten: tuple[str, ...] = ()
    """Types a workflow may be saved with, and nobody can carry out."""

    @classmethod
    def of(cls, outside: Outside, *more: NodeType) -> Self:
        types = cls.builtin()
        types.outside = outside
        for node_type in (Act(), Call(), Late(), Stop(outside), Stubborn(outside), Summon(outside), *more):
            types.register(node_type)
        return types

    def get(self, name: str) -> NodeType | None:
        known = None if name in self.forgotten else super().get(name)
        return None if known is None else Watched(known, self.outside)
