"""What every engine offers, whatever keeps its logs."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from ropewalk.core.canonical import writable
from ropewalk.core.errors import InvalidInput, Problem, Unfinished
from ropewalk.core.events import Blob, Event, Parent
from ropewalk.core.expression import ExpressionError, Scope
from ropewalk.core.expression.run import BRIEF_STEPS
from ropewalk.core.plan import Plan
from ropewalk.core.signals import Signal
from ropewalk.core.state import ExecutionState, TriggerType
from ropewalk.telemetry.facts import Fact, Undispatched

LONGEST_KEY = 1_000
"""How many bytes a concurrency key may have: it is in an index, where PostgreSQL has no room for much more, and one
that does not fit would fail every claim it is part of."""


class Version(Struct, frozen=True):
    """One version of a workflow, ready to be executed; `bounded_by` saved it and reaches less than the workspace."""

    workflow: str
    version: int
    hash: str
    plan: Plan
    bounded_by: str | None = None


class StartRequest(Struct, frozen=True, kw_only=True):
    """What is to be executed, for whom, and with what; `bounded_by` reach less than the workspace."""

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
    trace: str | None = None
    once: str | None = None
    bounded_by: tuple[str, ...] = ()

    def bounds(self) -> tuple[str, ...]:
        """The actors that bound what it reaches: those who start it, and who saved the version."""
        saver = self.version.bounded_by
        return self.bounded_by if saver is None or saver in self.bounded_by else (*self.bounded_by, saver)

    def concurrency_key(self) -> str | None:
        """Evaluated at acceptance, on the input only."""
        template = self.version.plan.concurrency_key
        if template is None:
            return None
        try:
            key = template.resolve_briefly(Scope(input=self.input))
        except ExpressionError as error:
            raise InvalidInput([Problem(("concurrencyKey",), str(error))]) from error
        except Unfinished as error:
            message = f"takes more than {BRIEF_STEPS:,} steps; make the key of a part of the input"
            raise InvalidInput([Problem(("concurrencyKey",), message)]) from error
        text = writable(key) if isinstance(key, str) else msgspec.json.encode(key).decode()
        if (size := len(text.encode())) > LONGEST_KEY:
            allowed = f"has {size:,} bytes, at most {LONGEST_KEY:,} are allowed"
            raise InvalidInput([Problem(("concurrencyKey",), allowed)])
        return text


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
