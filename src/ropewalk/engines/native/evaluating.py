"""Expressions of executions that take long: evaluated beside the loop, in fair turns.

Most take a few microseconds, and are evaluated where they are needed. Whatever is `Unfinished` there comes here.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from ropewalk.core.execution.view import Later, TooMuch, output_later
from ropewalk.core.expression import ExpressionError
from ropewalk.core.signals import Evaluated
from ropewalk.engines.computing import Computing
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.stored import keep
from ropewalk.engines.runner import INLINE_LIMIT, Desk, Run
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.recording import output_apart
from ropewalk.store.blobs import BlobTooLarge

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

    async def output(self, live: Live, seq: int, desk: Desk) -> Evaluated:
        """The execution's output, as it is after so many events; one that is too large for the log is kept elsewhere.

        Unavailable if the store does not take it now.
        """
        try:
            later = output_later(live.execution)
            output, large = await self.beside(live, lambda: output_apart(later(), INLINE_LIMIT))
            blob = None if large is None else await keep(live, large, desk)
        except (ExpressionError, TooMuch, NodeFailure, BlobTooLarge) as error:
            return Evaluated(seq, error=str(error))
        return Evaluated(seq, output, blob=blob)
