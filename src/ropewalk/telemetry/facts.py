"""What an engine tells its observer."""

from collections.abc import Sequence
from typing import NamedTuple, Self

from msgspec import Struct

from ropewalk.core.events import Event, ExecutionAccepted
from ropewalk.core.state import RunState

_SUCCESS = RunState.SUCCESS.value


class RunFact(NamedTuple):
    """A run as its row has it; `finished_at` is None while it waits."""

    id: str
    execution: str
    node: str
    item: int | None
    attempt: int
    state: str
    worker: str | None
    retry_after: int | None
    started_at: int
    finished_at: int | None
    error_type: str | None
    error: str | None

    @classmethod
    def of_first(cls, run: str, execution: str, node: str, started_at: int, finished_at: int) -> Self:
        """A node that succeeded at its first attempt."""
        return cls(run, execution, node, None, 1, _SUCCESS, None, None, started_at, finished_at, None, None)


class Fact(Struct, frozen=True):
    """What one commit made durable for one execution: its events, and the runs they changed."""

    accepted: ExecutionAccepted
    events: Sequence[Event]
    runs: Sequence[RunFact]

    def ended_runs(self) -> list[RunFact]:
        """The runs that ended with these events; one that ended before and is shown otherwise now is not among them."""
        since = self.events[0].at if self.events else 0
        return [run for run in self.runs if run.finished_at is not None and run.finished_at >= since]


class Undispatched(Struct, frozen=True):
    """A claimed execution that could not be loaded; the last of its attempts if it is given up."""

    execution: str
    workspace: str
    attempts: int
    reason: str
    is_given_up: bool
