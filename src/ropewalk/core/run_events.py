"""What happened to single attempts, and what the execution was told: a part of the events of a log."""

from typing import Any

from ropewalk.core.errors import RunError
from ropewalk.core.event_base import Blob, EventBase
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import Wait


class RunStarted(EventBase, frozen=True):
    """A further attempt starts, or one that was handed back or held starts again."""

    node: str
    attempt: int
    item: int | None = None


class RunFailed(EventBase, frozen=True):
    """An attempt failed and another will follow at `retry_at`; None: none will, the execution is ending.

    `child` is how its child ended, if that is why.
    """

    node: str
    attempt: int
    error: RunError
    retry_at: int | None = None
    item: int | None = None
    inputs: Any = None
    lost: bool = False
    inputs_blob: Blob | None = None
    child: ExecutionState | None = None


class RoundEnded(EventBase, frozen=True):
    """An attempt at a node that is repeated ended well, and with it a round; the next begins at `next_at`.

    None: none does, the execution is ending. The last round ends with its node.
    """

    node: str
    attempt: int
    output: Any = None
    next_at: int | None = None
    inputs: Any = None
    blob: Blob | None = None
    tokens: int | None = None
    inputs_blob: Blob | None = None


class RunWaiting(EventBase, frozen=True):
    """An attempt waits; `due` is when its timer fires or its patience ends."""

    node: str
    attempt: int
    wait: Wait
    due: int | None = None
    item: int | None = None
    inputs: Any = None
    inputs_blob: Blob | None = None


class RunReturned(EventBase, frozen=True):
    node: str
    attempt: int
    item: int | None = None


class RunReleased(EventBase, frozen=True):
    """An attempt on hold is back in line: its breaker has closed, or it may be tried again."""

    node: str
    attempt: int
    item: int | None = None


class ChildResumed(EventBase, frozen=True):
    """The node waits for its reopened child again."""

    node: str
    attempt: int
    item: int | None = None


class SignalReceived(EventBase, frozen=True):
    """Kept until a wait for `name` uses it. `once` is the key under which it was told, if it was."""

    name: str
    payload: Any = None
    once: str | None = None
