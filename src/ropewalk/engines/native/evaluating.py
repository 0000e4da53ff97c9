"""Expressions of executions that take long: evaluated beside the loop, in fair turns.

Most take a few microseconds, and are evaluated where they are needed. What is `Unfinished` there comes here.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from ropewalk.core.execution.view import Later
from ropewalk.engines.computing import Computing
from ropewalk.engines.native.live import Live
from ropewalk.engines.run import Run

Made = TypeVar("Made")


class Evaluating:
    """Evaluates for executions; what an expression raises is raised."""

    def __init__(self, computing: Computing) -> None:
        self._computing = computing

    async def beside(self, live: Live, later: Later) -> Any:
        """What the evaluation gives, when it is the execution's turn."""
        return await self._computing.of_execution(live.accepted.workspace, live.id, later)

    async def of_run(self, run: Run, work: Callable[[], Made]) -> Made:
        """What some work for an attempt gives; unlike an expression, it leaves its execution no rest afterwards."""
        return await self._computing.of_caller(run.workspace, run.execution, work)
