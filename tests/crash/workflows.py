"""What the killed processes execute: every way an execution can be in the middle of something.

Each node that does anything writes down that it did, so that the checker can compare what the log says with what the
outside world saw.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any, Final

from ropewalk.checker import Effect
from ropewalk.nodes.base import NodeContext, NodeFailure, NodeType
from ropewalk.nodes.function import FunctionNode
from tests.crash.ledgers import Ledger

Document = dict[str, Any]

RETRY: Final = {"maxAttempts": 6, "delay": "20ms", "factor": 1.5, "maxDelay": "200ms", "jitter": 0.2}
KEYS: Final = ("red", "green", "blue")
LARGE: Final = 100_000
SHORT_NAP, LONG_NAP = "150ms", "10.5s"
"""The longer one is long enough for its execution to be parked."""


class Gate:
    """Where nodes wait until they are let through; each says so when it arrives."""

    def __init__(self, arrive: Callable[[], None]) -> None:
        self.arrive = arrive
        self.is_open = asyncio.Event()


def node_types_of(effects: Ledger[Effect], gate: Gate) -> list[NodeType]:
    """The node types of these workflows; what they do is in the ledger first."""

    def see(context: NodeContext) -> None:
        key = context.idempotency_key
        effects.write(Effect(context.execution, context.node, context.item, context.attempt, key))

    def result(context: NodeContext, failures: int, size: int, is_hopeless: bool) -> str:
        if is_hopeless:
            raise NodeFailure.permanent(f"{context.node} cannot be done")
        if context.attempt <= failures:
            raise NodeFailure.transient(f"attempt {context.attempt} of {context.node} failed")
        return f"{context.node}:{context.item}".ljust(size, ".")

    async def work(
        context: NodeContext,
        takes: float = 0,
        failures: int = 0,
        size: int = 0,
        hopeless: bool = False,
        using: Any = None,
    ) -> str:
        see(context)
        await asyncio.sleep(takes)  # the work itself
        return result(context, failures, size, hopeless)

    def blocking(context: NodeContext, failures: int = 0) -> str:
        see(context)
        return result(context, failures, 0, is_hopeless=False)

    async def gated(context: NodeContext) -> str:
        see(context)
        gate.arrive()
        await gate.is_open.wait()
        return result(context, 0, 0, is_hopeless=False)

    return [FunctionNode(each, name=f"crash.{each.__name__}") for each in (work, blocking, gated)]


def node(name: str, kind: str = "crash.work", *, retry: Document | None = None, **fields: Any) -> Document:
    parameters = {key: fields.pop(key) for key in list(fields) if key not in ("forEach", "concurrency", "timeout")}
    retried = {} if kind in ("delay", "subworkflow") else {"retry": RETRY if retry is None else retry}
    return {"id": name, "type": kind, "with": parameters, **retried, **fields}


def workflow(name: str, nodes: list[Document], *edges: str, **fields: Any) -> Document:
    """A workflow; an edge is written `from to` or `from to port`."""
    parts = [edge.split() for edge in edges]
    return {
        "ropewalk": 1,
        "name": name,
        "nodes": nodes,
        "edges": [dict(zip(("from", "to", "on"), part, strict=False)) for part in parts],
        **fields,
    }


LEGS: Final = tuple(f"leg{number}" for number in range(8))

CHILD: Final = workflow("child", [node("one", takes=0.005), node("two", "crash.blocking")], "one two")

WORKFLOWS: Final[tuple[Document, ...]] = (
    workflow(
        "fan",
        [node("split"), *(node(leg, takes=0.002 * place) for place, leg in enumerate(LEGS)), node("join")],
        *(f"split {leg}" for leg in LEGS),
        *(f"{leg} join" for leg in LEGS),
    ),
    workflow("flaky", [node("first", failures=2), node("second", "crash.blocking", failures=1)], "first second"),
    workflow(
        "map",
        [node("each", forEach="{{ input.items }}", concurrency=4, takes=0.004, failures=1), node("after")],
        "each after",
    ),
    workflow(
        "parent",
        [node("before"), node("child", "subworkflow", workflow="child"), node("after")],
        "before child",
        "child after",
    ),
    workflow("family", [node("each", "subworkflow", forEach="{{ input.items }}", concurrency=2, workflow="child")]),
    workflow(
        "nap", [node("before"), {**node("nap", "delay"), "with": {"for": "{{ input.nap }}"}}, node("after")],
        "before nap", "nap after",
    ),
    workflow("hopeless", [node("fails", hopeless=True), node("goes_on", takes=0.01), node("behind")], "fails behind"),
    workflow("exhausted", [node("fails", failures=99, retry={"maxAttempts": 2, "delay": "10ms"})]),
    workflow("handled", [node("fails", hopeless=True), node("mends")], "fails mends error"),
    workflow(
        "intolerant",
        [{**node("each", forEach="{{ input.items }}", concurrency=3, hopeless=True), "failureTolerance": 1}],
    ),
    workflow("large", [node("big", size=LARGE), node("user", using="{{ nodes.big.output }}")], "big user"),
    workflow("keyed", [node("one", takes=0.005), node("two")], "one two", concurrencyKey="{{ input.key }}"),
    workflow("late", [node("one"), {**node("nap", "delay"), "with": {"for": "1h"}}], "one nap", timeout="300ms"),
    workflow("slow", [node("slow", takes=60, timeout="50ms", retry={"maxAttempts": 2, "delay": "10ms"})]),
)  # fmt: skip

GATED: Final = workflow(
    "gated", [node("one", "crash.gated"), node("two", "crash.gated"), node("join")], "one join", "two join"
)


def input_for(chance: random.Random, *, has_long_naps: bool) -> Document:
    """The same input does for every workflow."""
    is_long = has_long_naps and chance.random() < 0.3
    return {
        "items": list(range(chance.randrange(1, 9))),
        "key": chance.choice(KEYS),
        "nap": LONG_NAP if is_long else SHORT_NAP,
    }
