"""What every engine offers, whatever keeps its logs."""

from collections.abc import AsyncIterator
from typing import Any, Protocol

from msgspec import Struct

from ropewalk.core.acceptance import StartRequest, Version
from ropewalk.core.events import Blob, Event
from ropewalk.core.signals import Signal
from ropewalk.core.state import ExecutionState
from ropewalk.telemetry.facts import Fact, Undispatched

__all__ = ["StartRequest", "Version"]  # what a start is made of, for those who ask an engine for one


class Reaches(Protocol):
    """Knows what is within reach of actors who are no members of a workspace."""

    async def may_call(self, actor: str, workspace: str, workflow: str) -> bool:
        """Whether this actor may start this workflow (its id) at this moment."""
        ...


class NoReach:
    """Where nothing is known of actors, none of them reaches anything."""

    async def may_call(self, actor: str, workspace: str, workflow: str) -> bool:
        return False


class Ended(Struct, frozen=True):
    """How an execution ended."""

    execution: str
    state: ExecutionState
    output: Any = None
    error: str | None = None
    blob: Blob | None = None


class Observer(Protocol):
    """Is told what a worker has done, once that is durable. Takes no time, and keeps nobody waiting."""

    def committed(self, fact: Fact) -> None:
        """This is durable, and what follows from it has not begun."""

    def left(self, execution: str) -> None:
        """The execution is in this worker's memory no more."""

    def dispatching(self, execution: str, workspace: str) -> None:
        """A claimed execution is about to be loaded."""

    def undispatched(self, failure: Undispatched) -> None:
        """A claimed execution could not be loaded."""

    def at_capacity(self) -> None:
        """Something waits, and nothing of it has a slot."""

    def leased(self, seconds: float) -> None:
        """Runs were leased, by this worker or through it by a runner, in so much time."""


class Engine(Protocol):
    """Keeps executions going until they end, whatever happens to the process."""

    async def start(self, request: StartRequest) -> str:
        """Accept an execution durably and return its id."""
        ...

    async def tell(self, execution: str, signal: Signal, by: str) -> bool:
        """Tell an execution something; False if that changed nothing. Refusals are raised."""
        ...

    async def ended(self, execution: str) -> Ended:
        """Wait for the end."""
        ...

    def follow(self, execution: str, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        """Every event from `after` on, those recorded and those to come, until the end."""
        ...
