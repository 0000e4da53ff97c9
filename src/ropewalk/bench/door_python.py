"""The door of a Python program: `ropewalk.open`, `engine.start` with a document, `execution.result`, nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from ropewalk.bench import rounds
from ropewalk.bench.contenders import FLOOR, NATIVE, PYTHON, Execute, Prepare
from ropewalk.bench.doors import Door
from ropewalk.bench.rounds import Measured
from ropewalk.bench.shapes import NODE_TYPE, Shape, diamond, single, work
from ropewalk.bench.stores import Stores
from ropewalk.local import LocalEngine
from ropewalk.local import open as open_engine
from ropewalk.nodes.function import FunctionNode

CONTENDERS: Final = (NATIVE, FLOOR, PYTHON)
"""The inside figure, the floor, and the door, in the same run."""


@asynccontextmanager
async def opened(db: str) -> AsyncIterator[Prepare]:
    """The engine as a program opens it, on a store of its own."""
    async with open_engine(db, nodes=[FunctionNode(work, name=NODE_TYPE)]) as engine:

        async def prepare(shape: Shape) -> Execute:
            document = shape.document()
            return lambda: execute(engine, document)

        yield prepare


async def execute(engine: LocalEngine, document: dict[str, Any]) -> None:
    """Once, as a program does it; anything but a success is raised by the engine itself."""
    execution = await engine.start(document)
    await execution.result()


def one_by_one(repeats: int, turns: int, seconds: float, stores: Stores) -> Measured:
    return rounds.one_by_one(single(), repeats, rounds.latency, turns, seconds, stores, CONTENDERS)


def at_once(executions: int, turns: int, seconds: float, stores: Stores) -> Measured:
    return rounds.in_children(CONTENDERS, executions, turns, seconds, stores)


DOOR: Final = Door(one_by_one, at_once, single(), diamond())
