"""The fact by which the end of an execution begins that has nodes to close it: a part of the events of a log."""

from typing import Any

from ropewalk.core.closing_nodes import UNDOES
from ropewalk.core.event_base import Blob, EventBase
from ropewalk.core.state import ExecutionState


class OutcomeDecided(EventBase, frozen=True):
    """All nodes of the graph have ended, and how the execution ends is decided for good.

    `nodes` close it, one after the other: what undoes a node first, then those of `finally`. None of them has a turn
    after `until`. The event of the end follows them, with this `error`, or with this output.
    """

    outcome: ExecutionState
    nodes: tuple[str, ...] = ()
    until: int | None = None
    error: str | None = None
    output: Any = None
    blob: Blob | None = None

    @property
    def undone(self) -> tuple[str, ...]:
        """The nodes that are undone."""
        return tuple(name.removesuffix(UNDOES) for name in self.nodes if name.endswith(UNDOES))
