"""Expressions of executions that take long: evaluated beside the loop, in fair turns.

Most take a few microseconds, and are evaluated where they are needed. Whatever is `Unfinished` there comes here.
"""

from typing import Any

from ropewalk.core.execution.view import Later, TooMuch, output_later
from ropewalk.core.expression import ExpressionError
from ropewalk.core.signals import Evaluated
from ropewalk.engines.computing import Computing
from ropewalk.engines.native.live import Live


class Evaluating:
    """Evaluates for executions; what an expression raises is raised."""

    def __init__(self, computing: Computing) -> None:
        self._computing = computing

    async def beside(self, live: Live, later: Later) -> Any:
        """What the evaluation gives, when it is the execution's turn."""
        return await self._computing.of_execution(live.accepted.workspace, live.id, later)

    async def output(self, live: Live, seq: int) -> Evaluated:
        """The execution's output, as it is after so many events."""
        try:
            return Evaluated(seq, await self.beside(live, output_later(live.execution)))
        except (ExpressionError, TooMuch) as error:
            return Evaluated(seq, error=str(error))
