"""Laws about a parent and its children, judged by both logs: what one has said reaches the other in the end."""

from collections.abc import Iterator

from ropewalk.core.duration import SECOND
from ropewalk.core.events import (
    Event,
    ExecutionPaused,
    ExecutionReopened,
    ExecutionResumed,
    ItemsStarted,
    NodesStarted,
    RunStarted,
)
from ropewalk.core.kinship import ENDS
from tests.simulator.store import Row
from tests.simulator.worker import fold

LONG = 150 * SECOND
"""More than any loss, its discovery and the difference of two clocks take together."""
SKEW = 10 * SECOND
"""More than any two clocks differ."""


def broken_families(rows: list[Row]) -> Iterator[str]:
    """Where a child did not follow its parent."""
    named = {row.id: row for row in rows}
    for row in rows:
        if row.parent is not None:
            parent = named[row.parent.execution]
            yield from _works_on_though_paused(parent, row)
            yield from _works_on_though_called_off(parent, row)


def _works_on_though_paused(parent: Row, child: Row) -> Iterator[str]:
    began = child.log[0].at
    for since, until in _pauses(parent.log):
        for event in _starts(child):
            if max(since, began) + LONG < event.at < until - SKEW:
                yield f"{child} starts something at {event.at}, and {parent} is paused since {since}"


def _pauses(log: list[Event]) -> Iterator[tuple[int, int]]:
    since: int | None = None
    for event in log:
        if isinstance(event, ExecutionPaused):
            since = event.at if since is None else since
        elif since is not None and (isinstance(event, ExecutionResumed) or type(event) in ENDS):
            yield since, event.at
            since = None


def _works_on_though_called_off(parent: Row, child: Row) -> Iterator[str]:
    if any(isinstance(event, ExecutionReopened) for event in parent.log) or type(parent.log[-1]) not in ENDS:
        return
    if child.id in fold(parent).called_off:
        end = parent.log[-1].at
        for event in _starts(child):
            if event.at > end + LONG:
                yield f"{child} starts something at {event.at}, and {parent} ended at {end} without it"


def _starts(row: Row) -> Iterator[Event]:
    """What it began, but for what closes it: that it does whatever its parent says."""
    for event in row.log:
        if isinstance(event, NodesStarted | ItemsStarted | RunStarted):
            first = event.nodes[0] if isinstance(event, NodesStarted) else event.node
            if row.plan.index[first] < row.plan.ordinary:
                yield event
