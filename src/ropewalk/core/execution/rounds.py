"""Whether a node that is repeated goes on after a round.

Its condition is asked after each round, briefly and on the loop, and what follows is recorded: a fold never asks again.
"""

from typing import Final

from msgspec import Struct

from ropewalk.core.canonical import writable
from ropewalk.core.definition.node_type import EXHAUSTED_PORT
from ropewalk.core.errors import ErrorType, RunError, Unfinished
from ropewalk.core.execution.kinds import TOO_LONG
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.view import scope, value_at_hand
from ropewalk.core.execution.work import Work
from ropewalk.core.expression import ExpressionError, is_true
from ropewalk.core.repeat import Repeat
from ropewalk.core.signals import Succeeded

EXHAUSTED: Final = (EXHAUSTED_PORT,)


class Verdict(Struct, frozen=True):
    """What follows from a round: another one, the node's success by these ports, or its failure."""

    is_again: bool = False
    ports: tuple[str, ...] = ()
    error: RunError | None = None


AGAIN: Final = Verdict(is_again=True)


def verdict(x: Progress, work: Work, report: Succeeded) -> Verdict:
    """What follows from a round that gave this."""
    repeat = x.plan.repeats[work.node]
    try:
        is_over = _is_true(x, work, repeat, report) is repeat.is_until
    except ExpressionError as error:
        return _failure(f"repeat.{repeat.word}: {error}")
    except Unfinished:
        return _failure(f"repeat.{repeat.word}: {TOO_LONG}")
    if is_over:
        return Verdict(ports=report.ports)
    if work.round + 1 < repeat.most:
        return AGAIN
    if EXHAUSTED_PORT in x.plan.port_names[work.node]:
        return Verdict(ports=EXHAUSTED)
    ended = f"`{repeat.word}` is {'not true' if repeat.is_until else 'still true'}"
    return _failure(f"repeat: {ended} after {repeat.most:,} rounds, which are the most")


def _is_true(x: Progress, work: Work, repeat: Repeat, report: Succeeded) -> bool:
    around = scope(x, None, work.round, work.as_of)
    if any(path[0] == "last" for path in repeat.condition.references):
        around.last = report.output if report.blob is None else value_at_hand(x, report.blob)
    if report.blob is not None:
        # The worker has put it there for this question.
        x.blobs.pop(report.blob.hash, None)
    return is_true(repeat.condition.resolve_briefly(around))


def _failure(message: str) -> Verdict:
    return Verdict(error=RunError(ErrorType.PERMANENT, writable(message)))
