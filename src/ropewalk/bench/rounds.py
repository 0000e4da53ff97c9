"""Rounds: the engine, the floor, the engine, the floor … so that a slow moment of the machine meets both."""

import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from subprocess import PIPE, CalledProcessError, TimeoutExpired, run
from types import MappingProxyType
from typing import Final

import msgspec
import uvloop

from ropewalk.bench import fleet
from ropewalk.bench.contenders import CONTENDERS, Broken, Execute, opened
from ropewalk.bench.figures import Round, percentile
from ropewalk.bench.shapes import Shape
from ropewalk.bench.stores import POSTGRES, Stores

Measured = dict[str, list[Round]]
"""The rounds of each contender."""
PAIRS: Final = 3
"""How often the engine is held beside the floor in one turn: each takes so little that a busy moment of the machine is
all of it."""
Reading = Callable[[Shape, Sequence[float]], Round]


def turns(rounds: int, seconds: float) -> Iterator[int]:
    """As many turns as asked for and fit into the time; at least one."""
    end = time.perf_counter() + seconds
    for turn in range(rounds):
        if turn and time.perf_counter() > end:
            return
        yield turn


# One execution after another, in this process


def one_by_one(
    shape: Shape, repeats: int, read: Reading, rounds: int, seconds: float, stores: Stores,
    contenders: Sequence[str] = CONTENDERS,
) -> Measured:  # fmt: skip
    """Rounds of executions one after another, each timed from the request to the result."""
    with ExitStack() as stack:
        places = {name: stack.enter_context(stores.fresh()) for name in contenders}
        return uvloop.run(_one_by_one(shape, repeats, read, turns(rounds, seconds), seconds, places))


async def _one_by_one(
    shape: Shape, repeats: int, read: Reading, turns: Iterator[int], seconds: float, places: Mapping[str, str]
) -> Measured:
    measured: Measured = {name: [] for name in places}
    async with AsyncExitStack() as stack:
        contenders = {
            name: await (await stack.enter_async_context(opened(name, db)))(shape) for name, db in places.items()
        }
        for execute in contenders.values():
            await timed(execute, max(1, repeats // 5), seconds)
        for _ in turns:
            for name, execute in contenders.items():
                measured[name].append(read(shape, await timed(execute, repeats, seconds)))
    return measured


async def timed(execute: Execute, repeats: int, limit: float) -> list[float]:
    """How many seconds each took."""
    times = []
    try:
        async with asyncio.timeout(limit):
            for _ in range(repeats):
                began = time.perf_counter()
                await execute()
                times.append(time.perf_counter() - began)
    except TimeoutError:
        raise Broken(f"{repeats} executions did not end within {limit:g} s") from None
    return times


def latency(shape: Shape, times: Sequence[float]) -> Round:
    ordered = [seconds * 1000 for seconds in sorted(times)]
    return {f"latency_ms_p{percent}": percentile(ordered, percent) for percent in (50, 95, 99)}


def per_node(shape: Shape, times: Sequence[float]) -> Round:
    return {"ms_per_node": statistics.median(times) * 1000 / shape.size}


def whole(shape: Shape, times: Sequence[float]) -> Round:
    return {"ms": statistics.median(times) * 1000}


# Many at once, each round in a process of its own, so that its memory is the contender's alone


def at_once(executions: int, rounds: int, seconds: float, stores: Stores) -> Measured:
    """Rounds of executions that are all requested together; on a shared store also of several workers."""
    return in_children(CONTENDERS, executions, rounds, seconds, stores, fleet.FLEETS if stores.name == POSTGRES else {})


def in_children(
    contenders: Sequence[str], executions: int, rounds: int, seconds: float, stores: Stores,
    fleets: Mapping[str, Callable[[str, int, float], Round]] = MappingProxyType({}),
) -> Measured:  # fmt: skip
    """The same of these contenders, several times in each turn, and of these fleets once."""
    measured: Measured = {name: [] for name in (*contenders, *fleets)}
    for _ in turns(rounds, seconds):
        for name in tuple(contenders) * PAIRS:
            with stores.fresh() as db:
                measured[name].append(_in_child(name, db, executions, seconds))
        for name, measure in fleets.items():
            with stores.fresh() as db:
                measured[name].append(measure(db, executions, seconds))
    return measured


def _in_child(contender: str, db: str, executions: int, limit: float) -> Round:
    command = [sys.executable, "-m", "ropewalk.bench.child", contender, db, str(executions)]
    try:
        done = run(command, stdout=PIPE, timeout=limit, check=True)
    except CalledProcessError as error:
        raise Broken(f"the process that measures {contender} ended with {error.returncode}") from None
    except TimeoutExpired:
        raise Broken(f"{executions} executions of {contender} did not end within {limit:g} s") from None
    return msgspec.json.decode(done.stdout, type=dict[str, float])
