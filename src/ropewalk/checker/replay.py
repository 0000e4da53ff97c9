"""Rules about folding the log: I-36 to I-38. The only ones that ask the machine, and only to fold, never to decide."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from ropewalk.checker.history import Violation
from ropewalk.checker.trace import Trace
from ropewalk.core.commands import Command
from ropewalk.core.events import Event
from ropewalk.core.execution import Execution
from ropewalk.core.plan import Plan
from ropewalk.core.rows import Projection, Rows, rows

Fold = Callable[[Plan], Execution]
UNFOLDABLE: Final = (LookupError, AssertionError, AttributeError, TypeError, ValueError)
MOST_CUTS: Final = 8
"""Where two folds of a log are compared: each cut costs what is under way there, and logs of all lengths are cut."""

COMPARED: Final = ("state", "nodes", "outputs", "ports", "unhandled", "has_slot", "seq", "wake_at", "needs_slot")

_encoder = msgspec.json.Encoder(order="sorted")


class Replay:
    """The log folded event by event, and again in a few parts; or why it cannot be."""

    def __init__(self, trace: Trace, fold: Fold) -> None:
        self.steps, self.parts = fold(trace.plan), fold(trace.plan)
        self.projection = Projection(trace.plan)
        self.error: Exception | None = None
        self.folded = 0
        self.differing: tuple[int, list[Command], list[Command]] | None = None
        try:
            for part in _parts(trace.events):
                self._fold(part)
            self.projection.add(trace.events)
        except UNFOLDABLE as error:
            self.error = error

    def _fold(self, part: Sequence[Event]) -> None:
        for event in part:
            self.steps.apply((event,))
            self.folded += 1
        self.parts.apply(part)
        asked, asked_again = self.steps.outstanding(), self.parts.outstanding()
        if asked != asked_again and self.differing is None:
            self.differing = (self.folded, asked, asked_again)


def _parts(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    size = max(1, -(-len(events) // MOST_CUTS))
    for start in range(0, len(events), size):
        yield events[start : start + size]


def the_log_makes_the_rows(t: Trace, replay: Replay) -> Iterator[Violation]:
    """I-36: the log can be folded; the machine and the tables then agree on the execution and every node; and the
    tables that were kept, if they are given, are the log's, in canonical JSON.
    """
    last = t.seqs[-1] if t.seqs else 0
    if replay.error is not None:
        message = f"cannot be folded: {type(replay.error).__name__}: {replay.error}"
        yield t.violation("I-36", message, t.seqs[min(replay.folded, len(t.seqs) - 1)])
        return
    execution, projection = replay.parts, replay.projection
    if execution.state is not projection.state:
        yield t.violation("I-36", f"folds to {execution.state} and to {projection.state}", last)
    for node, name in enumerate(t.plan.ids):
        one, other = execution.node_state(node), projection.node_state(node)
        if one is not other:
            yield t.violation("I-36", f"node {name} folds to {one} and to {other}", last)
    if t.history.rows is not None:
        yield from _other_rows(t, t.history.rows, last)


def _other_rows(t: Trace, kept: Rows, last: int) -> Iterator[Violation]:
    known = rows(t.plan, t.events)
    for table in ("execution", "nodes", "runs", "letters"):
        one, other = getattr(kept, table), getattr(known, table)
        if _encoder.encode(one) != _encoder.encode(other):
            yield t.violation("I-36", f"{table}: {one} was kept, the log makes it {other}", last)


def folds_are_alike(t: Trace, replay: Replay) -> Iterator[Violation]:
    """I-37: folding the log event by event, or in parts cut anywhere, gives the same state."""
    if replay.error is not None:
        return
    for what in COMPARED:
        one, other = getattr(replay.steps, what), getattr(replay.parts, what)
        if one != other:
            yield t.violation("I-37", f"{what} is {one!r} event by event, {other!r} in parts", t.seqs[-1])


def commands_follow_from_the_log(t: Trace, replay: Replay) -> Iterator[Violation]:
    """I-38: every fold of the same events asks for the same to be done, in the same order, wherever the log is cut."""
    if replay.differing is not None:
        place, asked, asked_again = replay.differing
        yield t.violation("I-38", f"{asked} is outstanding, and {asked_again}", t.seqs[place - 1])
