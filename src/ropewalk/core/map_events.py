"""What happened to the items of maps: a part of the events of a log."""

from typing import Any

from ropewalk.core.errors import RunError
from ropewalk.core.event_base import Blob, EventBase
from ropewalk.core.state import ExecutionState, GaveUp


class MapExpanded(EventBase, frozen=True):
    node: str
    attempt: int
    count: int


class ItemsStarted(EventBase, frozen=True):
    node: str
    items: tuple[int, ...]


class ItemSucceeded(EventBase, frozen=True):
    node: str
    item: int
    attempt: int
    output: Any = None
    inputs: Any = None
    blob: Blob | None = None
    tokens: int | None = None
    inputs_blob: Blob | None = None


class ItemFailed(EventBase, frozen=True):
    """The item has failed for good; within the map's tolerance it makes no dead letter, unless the map keeps all."""

    node: str
    item: int
    attempt: int
    error: RunError
    gave_up: GaveUp | None = None
    inputs: Any = None
    child: ExecutionState | None = None
    inputs_blob: Blob | None = None
    opening: int | None = None
    faults: tuple[str, ...] = ()
    undone: bool = False


class ItemsGivenUp(EventBase, frozen=True):
    """These earlier failures are dead letters: more failed than the map tolerates, or it succeeds and keeps all.

    No new item starts, unless the map goes on after failures.
    """

    node: str
    items: tuple[int, ...] = ()
