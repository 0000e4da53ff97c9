"""Where the engine's time goes: what functions take by themselves, and with all they call.

Counting every call makes small functions look larger than they are, and the store's own thread is not in it.
"""

from cProfile import Profile
from io import StringIO
from pstats import SortKey, Stats

import uvloop

from ropewalk.bench.child import at_once
from ropewalk.bench.contenders import NATIVE, Execute, opened
from ropewalk.bench.shapes import Shape
from ropewalk.bench.stores import Stores
from ropewalk.bench.workloads import Workload

LINES = 25


def profile(workload: Workload, shape: Shape, stores: Stores, contender: str = NATIVE) -> str:
    """The profile of one round in this process, after a warm-up."""
    profiler = Profile()
    with stores.fresh() as db:
        uvloop.run(_run(workload, shape, profiler, db, contender))
    text = StringIO()
    stats = Stats(profiler, stream=text).strip_dirs()
    for key in (SortKey.TIME, SortKey.CUMULATIVE):
        stats.sort_stats(key).print_stats(LINES)
    return text.getvalue()


async def _run(workload: Workload, shape: Shape, profiler: Profile, db: str, contender: str) -> None:
    async with opened(contender, db) as prepare:
        execute = await prepare(shape)
        await _round(execute, max(1, workload.n // 5), workload.is_at_once)
        with profiler:
            await _round(execute, workload.n, workload.is_at_once)


async def _round(execute: Execute, executions: int, is_at_once: bool) -> None:
    if is_at_once:
        await at_once(execute, executions)
    else:
        for _ in range(executions):
            await execute()
