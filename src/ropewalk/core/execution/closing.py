"""How an execution is closed that has nodes for it: `compensate` undoes what was done, `finally` comes last.

When nothing of the graph is ready, running or waiting any more, or a stopped execution is quiet, the outcome is
decided and recorded (`OutcomeDecided`), together with the nodes that close the execution, in their order:

| outcome | what is undone | `finally` | time for all of it |
|---|---|---|---|
| SUCCESS | nothing | all, in document order | that of its nodes |
| FAILED | every SUCCESS that has `compensate`, the last one first | the same | that of its nodes |
| CANCELLED, TIMEOUT | the same | the same | an hour in all |
| ended before it had started | nothing | none | |

They are nodes like any other: recorded, retried, dead-lettered, folded and lost by the same rules; they are in line
from that event on, and one is under way at a time. So nothing but that event is new to a fold, and nothing decides
anew what was decided: the failure of such a node is a dead letter, the next one has its turn, and the outcome stands.
The event of the end comes when the line is empty, or when the hour is over.

| asked meanwhile | |
|---|---|
| cancel | changes nothing if the outcome is CANCELLED; else refused |
| pause, retry, requeue, fix | refused |
| give up a run by hand | as ever: the next node has its turn |

Afterwards an execution that has undone something is over for good: what it did is not there any more, so nothing of it
may count as done. A rerun carries over all but what was undone. One that has undone nothing is reopened as ever, and
its `finally` nodes run again at the next end, with attempts that go on; their dead letters are requeued by that.

What another execution gave (a rerun carries it over) is that execution's to undo. A map is undone once, as a whole.
"""

from typing import Final

from ropewalk.core.closing_events import OutcomeDecided
from ropewalk.core.duration import HOUR
from ropewalk.core.errors import InvalidTransition
from ropewalk.core.event_base import Blob
from ropewalk.core.events import Event, ExecutionCancelled, ExecutionFailed, ExecutionSucceeded, ExecutionTimedOut
from ropewalk.core.execution.evolving_end import stop_runs
from ropewalk.core.execution.evolving_whole import record
from ropewalk.core.execution.progress import Progress
from ropewalk.core.state import ExecutionState

MOST_TIME: Final = HOUR
"""For all that closes an execution which a person or its time limit has ended."""

_HURRIED: Final = (ExecutionState.CANCELLED, ExecutionState.TIMEOUT)


def is_due(x: Progress) -> bool:
    """Whether the end that is at hand is to be decided first: there are nodes to close it, and it has begun once."""
    return x.plan.has_closing and x.closing is None and x.started_at is not None


def decide(x: Progress, now: int, outcome: ExecutionState, error: str | None = None, output: object = None,
           blob: Blob | None = None) -> None:  # fmt: skip
    """Nothing of the graph is left to do: this is the outcome, and what the next nodes do does not change it."""
    until = now + MOST_TIME if outcome in _HURRIED else None
    nodes = tuple([x.plan.ids[index] for index in (*_undoing(x, outcome), *x.plan.last)])
    record(x, OutcomeDecided(now, outcome, nodes, until, error, output, blob))


def _undoing(x: Progress, outcome: ExecutionState) -> list[int]:
    """What undoes the nodes that have succeeded, the last of them first: outputs are kept in the order they came."""
    if outcome is ExecutionState.SUCCESS:
        return []
    known = x.plan.compensations
    done = [node for node in x.outputs if node in known and node not in x.carried]
    return [known[node] for node in reversed(done)]


def end(x: Progress, now: int) -> None:
    """The line is empty: the execution ends as it was decided."""
    assert x.closing is not None, "an end is decided before it is recorded"
    record(x, _end_of(x.closing, now))


def _end_of(decided: OutcomeDecided, now: int) -> Event:
    match decided.outcome:
        case ExecutionState.SUCCESS:
            return ExecutionSucceeded(now, decided.output, decided.blob)
        case ExecutionState.CANCELLED:
            return ExecutionCancelled(now)
        case ExecutionState.TIMEOUT:
            return ExecutionTimedOut(now)
        case _:
            return ExecutionFailed(now, decided.error or "")


def cut_short(x: Progress, now: int) -> None:
    """The time for it is over: what runs is told to stop, and what is left has no turn."""
    stop_runs(x)
    end(x, now)


def is_closing(x: Progress) -> bool:
    """Whether the outcome is decided, and nodes are yet to close the execution."""
    return x.closing is not None and not x.is_ended


def require_not_undone(x: Progress, verb: str) -> None:
    """Refuse to reopen an execution that has undone what it did."""
    undone = () if x.closing is None or not x.is_ended else x.closing.undone
    if undone:
        named = ", ".join(undone[:3]) + (f" and {len(undone) - 3} more" if len(undone) > 3 else "")
        raise InvalidTransition(f"cannot {verb}: the execution has undone {named}; rerun it, or start it anew")
