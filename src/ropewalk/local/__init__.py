"""Ropewalk inside a Python program: open a store, start workflows, wait for results.

async with ropewalk.open("sqlite:///jobs.db") as engine:
    execution = await engine.start(workflow, {"orderId": "7"})
    print(await execution.result())
"""

from ropewalk.local.engine import LocalEngine
from ropewalk.local.execution import LocalExecution
from ropewalk.local.opening import open, run  # noqa: A004

__all__ = ["LocalEngine", "LocalExecution", "open", "run"]
