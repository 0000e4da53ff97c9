"""What the kind of a failure decides: whether another attempt follows, and which error edges lead on.

An expression that decides so is evaluated on the loop, so all that one failure has evaluated takes few steps together.
One that takes more, looks at large values or cannot be evaluated does not fit; what is wrong with it is recorded with
the failure. Nothing here is asked again when a log is folded.
"""

from typing import Final

from msgspec import Struct

from ropewalk.core.canonical import writable
from ropewalk.core.errors import ErrorType, RunError, Unfinished
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.view import error_record, rules_of, scope
from ropewalk.core.execution.work import NodeError, Work
from ropewalk.core.expression import ExpressionError, Scope, Template, is_true
from ropewalk.core.expression.run import BRIEF_STEPS
from ropewalk.core.retry import is_named, is_retryable
from ropewalk.core.state import ExecutionState

LONGEST_FAULT: Final = 300
TOO_LONG: Final = f"takes more than {BRIEF_STEPS:,} steps, or looks at values that are not in the log; ask for less"


class Handling(Struct, frozen=True):
    """Whether error edges lead on from a failure; the first of those taken, if there was a choice; what was wrong."""

    is_handled: bool
    edge: int | None = None
    faults: tuple[str, ...] = ()


UNHANDLED: Final = Handling(False)
HANDLED: Final = Handling(True)


def handling_of(x: Progress, node: int, error: RunError, attempt: int, child: ExecutionState | None = None) -> Handling:
    """Which error edges of the node this failure takes."""
    ways = x.plan.error_ways.get(node)
    if ways is None:
        return HANDLED if x.plan.has_error_edge[node] else UNHANDLED
    asking = _Asking(x, node, error, attempt, child)
    for way in ways:
        if way.when is None or asking.is_true(f"edges[{way.edge}].when", way.when):
            return Handling(True, way.edge, tuple(asking.faults))
    return Handling(False, None, tuple(asking.faults))


def is_worth_retrying(x: Progress, work: Work, error: RunError, child: ExecutionState | None = None,
                      ) -> tuple[bool, tuple[str, ...]]:  # fmt: skip
    """Whether another attempt may follow this failure as far as its kind goes; and what was wrong with asking."""
    on, when = x.plan.retries[work.node].on, x.plan.retry_when.get(work.node)
    if on is None and when is None:
        return is_retryable(error.type), ()
    # Its time of waiting for the breaker is used up, and would be again at once.
    if error.type is ErrorType.CIRCUIT_OPEN or (on is not None and not is_named(on, error)):
        return False, ()
    if when is None:
        return True, ()
    asking = _Asking(x, work.node, error, work.attempt, child)
    return asking.is_true("retry.when", when), tuple(asking.faults)


class _Asking:
    """The questions that one failure is asked; they share a few steps."""

    def __init__(self, x: Progress, node: int, error: RunError, attempt: int, child: ExecutionState | None) -> None:
        told = NodeError(error.type, error.message, attempt, None, error.status, error.detail, error.body, child)
        first = x.maps[node] if node in x.maps else x.works[node]
        self._scope: Scope = scope(x, as_of=first.as_of)
        self._scope.error = error_record(told, rules_of(x))
        self._scope.attempt = attempt
        self._steps = BRIEF_STEPS
        self.faults: list[str] = []

    def is_true(self, place: str, when: Template) -> bool:
        """Whether the expression holds; a fault is noted, and is a no."""
        try:
            answer = is_true(when.resolve_briefly(self._scope, self._steps))
        except ExpressionError as error:
            return self._is_at_fault(place, str(error))
        except Unfinished:
            # All of it may have been taken, or none, if it looks at a large value: those that follow have half of it.
            self._steps //= 2
            return self._is_at_fault(place, TOO_LONG)
        self._steps = self._scope.steps
        return answer

    def _is_at_fault(self, place: str, why: str) -> bool:
        self.faults.append(writable(f"{place}: {why}")[:LONGEST_FAULT])
        return False
