"""What every engine offers, whatever keeps its logs."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

from msgspec import Struct

from ropewalk.core.events import Blob, Event, Parent
from ropewalk.core.plan import Plan
from ropewalk.core.signals import Signal
from ropewalk.core.state import ExecutionState, TriggerType


class Version(Struct, frozen=True):
    """One version of a workflow, ready to be executed."""

    workflow: str
    version: int
    hash: str
    plan: Plan


class StartRequest(Struct, frozen=True, kw_only=True):
    """What is to be executed, for whom, and with what."""

    version: Version
    workspace: str = "default"
    input: Any = None
    vars: Mapping[str, Any] = {}
    env: Mapping[str, str] = {}
    trigger: TriggerType = TriggerType.MANUAL
    payload: Any = None
    priority: int = 5
    actor: str = "local"
    parent: Parent | None = None
    execution: str | None = None
    carried: tuple[Event, ...] = ()


class Ended(Struct, frozen=True):
    """How an execution ended."""

    execution: str
    state: ExecutionState
    output: Any = None
    error: str | None = None
    blob: Blob | None = None


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
