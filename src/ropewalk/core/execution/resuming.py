"""How an execution goes on after its log was folded: which attempts ended with their worker, and what it is told first.

An engine that has folded a log tells the execution `first_signals`, sees to its next wake-up, and carries out what is
`outstanding()`, as far as it cannot know that it is done.
"""

from collections.abc import Iterable, Iterator

from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.work import RUNNING
from ropewalk.core.signals import Due, Lost, Returned, Signal, Start

Attempt = tuple[str, int | None, int]
"""An attempt at a node or item: node, item, number."""


def under_way(x: Progress) -> list[Attempt]:
    """The attempts that are under way by the log; they ended with the worker that carried them out, if that is gone."""
    works = (work for work in x.active_works() if work.phase is RUNNING)
    return [(x.plan.ids[work.node], work.item, work.attempt) for work in works]


def lost(attempt: Attempt, jitter: float) -> Lost:
    """The attempt ended with its worker, and counts."""
    node, item, number = attempt
    return Lost(node, number, item, jitter)


def handed_back(attempt: Attempt) -> Returned:
    """The attempt was not carried out, or is begun anew by the same worker, and does not count."""
    node, item, number = attempt
    return Returned(node, number, item)


def first_signals(x: Progress, reports: Iterable[Signal] = (), *, has_slot: bool) -> Iterator[Signal]:
    """What is told first, each signal once the one before was handled: how attempts ended, that time has passed, and
    that it has the slot it needs.

    Time comes before the slot: a retry that is due is no event, so a folded log does not know of it.
    """
    yield from reports
    yield Due()
    if has_slot and x.needs_slot:
        yield Start()
