"""What every engine offers, wherever it keeps its logs: `Engine`, and the words its users and its parts share.

Everything outside `engines/` is typed by `Engine`; only `wiring` knows which one there is. What every engine does in
the same way (watching, leasing, publishing, breakers, rate limits) is a class of its own beside this module, which the
engine is made of and hands out.
"""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from ropewalk.core.acceptance import StartRequest, Version
from ropewalk.core.breaker import Wait
from ropewalk.core.errors import ErrorType
from ropewalk.core.events import Blob, Event, ExecutionAccepted
from ropewalk.core.execution import Execution
from ropewalk.core.signals import Discard, Signal
from ropewalk.core.state import ExecutionState
from ropewalk.store.access import Reader, Row, Store, Transaction
from ropewalk.telemetry.facts import Fact, Undispatched

if TYPE_CHECKING:
    from ropewalk.engines.computing import Computing
    from ropewalk.engines.leasing import Leasing
    from ropewalk.engines.publishing import Publishing
    from ropewalk.engines.rate_limits import RateLimits
    from ropewalk.engines.versions import Versions
    from ropewalk.engines.watching import Watching
    from ropewalk.store.auditing import Kept
    from ropewalk.store.rows import LiveRow

WORKFLOWS = "workflows"
"""The topic of hints that a workflow was changed."""
RATE_LIMITS = "rate-limits"
"""The topic of hints that the rate limits of a workspace were changed."""
AT_ONCE = 10
"""After so many acceptances everything else on the loop has its turn: the key of each may be an expression."""
Remember = Callable[[str], Sequence[tuple[str, Row]]]
"""Gives, from the id of an execution that is accepted, what is written together with it: the row of an idempotency key,
or of a trigger's fire; each with its statement. The commit is refused if another server has written that row."""

__all__ = ["StartRequest", "Version"]  # what a start is made of, for those who ask an engine for one


class Reaches(Protocol):
    """Knows what is within reach of actors who are no members of a workspace."""

    async def may_call(self, actor: str, workspace: str, workflow: str) -> bool:
        """Whether this actor may start this workflow (its id) at this moment."""
        ...

    async def may_use(self, actor: str, workspace: str, credential: str) -> bool:
        """Whether this actor may use this credential (its id) at this moment."""
        ...


class NoReach:
    """Where nothing is known of actors, none of them reaches anything."""

    async def may_call(self, actor: str, workspace: str, workflow: str) -> bool:
        return False

    async def may_use(self, actor: str, workspace: str, credential: str) -> bool:
        return False


class Ended(Struct, frozen=True):
    """How an execution ended."""

    execution: str
    state: ExecutionState
    output: Any = None
    error: str | None = None
    blob: Blob | None = None


class Appended(Struct, frozen=True, gc=False):
    """The events of one execution that became durable together; `execution` is the machine they leave."""

    accepted: ExecutionAccepted
    execution: Execution
    last_seq: int
    events: Sequence[Event]
    is_ended: bool

    @property
    def id(self) -> str:
        return self.accepted.execution

    @property
    def first_seq(self) -> int:
        """The number of the first of the events."""
        return self.last_seq - len(self.events) + 1


class Watcher(Protocol):
    """Hears of one execution, or of a whole workspace, and reads the log where it must."""

    def told(self, appended: Appended) -> None:
        """This became durable here."""

    def moved(self, execution: str | None, head: int | None) -> None:
        """There may be more in the log of this one (None: of any), an entry of this number if that is known."""

    def begin_anew(self) -> None:
        """The database went back in time: what was told before may not be so."""


class Observer(Protocol):
    """Is told what a worker has done, once that is durable. Takes no time, and keeps no caller waiting."""

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


class Breakers(Protocol):
    """The health of the targets that nodes call, for all of this engine's workers."""

    async def load(self) -> None:
        """Take over what the store knows."""

    async def close(self) -> None:
        """Leave nothing running."""

    async def admit(self, workspace: str, target: str, now: int) -> Wait | None:
        """None: call; else until when not to."""
        ...

    async def record(self, workspace: str, target: str, outcome: ErrorType | None) -> None:
        """A call ended so."""

    async def places(self, workspace: str, target: str) -> int | None:
        """How many of those it holds may go on by now; None: all."""
        ...

    def forget_calls(self, workspace: str, target: str) -> None:
        """Count the calls to the target anew."""


class Holding(Struct, frozen=True):
    """Which worker holds an execution. One that is set aside goes to none: it was under way in so many deaths."""

    worker: str | None = None
    is_set_aside: bool = False
    deaths: int = 0
    set_aside_at: int | None = None


class Custody(Protocol):
    """What of an execution is the engine's own, and in no log: asked by readers too, which open no engine."""

    async def holding(self, reader: Reader, live: "LiveRow") -> Holding:
        """Which worker holds an execution that is not over."""
        ...

    def faults(self, kept: "Kept", *, at_rest: bool) -> Iterator[str]:
        """What is wrong with how an execution that is not over is held; `at_rest`: no worker executes."""
        ...

    async def strangers(self, reader: Reader, most: int) -> list[tuple[str, str]]:
        """Executions that are held by workers which do not exist, and these."""
        ...

    async def forget(self, executions: Sequence[str]) -> None:
        """The rows of these are removed: what else the engine keeps of them goes."""


class Load(Struct, frozen=True):
    """How much a worker has in hand."""

    executions: int
    runs: int


class Engine(Protocol):
    """Keeps executions going until they end, also if its process dies."""

    store: Store
    versions: "Versions"
    computing: "Computing"
    watching: "Watching"
    leasing: "Leasing"
    publishing: "Publishing"
    breakers: Breakers
    rate_limits: "RateLimits"
    reaches: Reaches
    custody: Custody
    observer: Observer | None
    workflow_changes: int
    """Goes up when another process says that it has changed a workflow."""

    # Its life

    async def open(self) -> None:
        """Take up everything that was under way when the last process ended."""

    def begin_closing(self) -> None:
        """From now on nothing new begins here."""

    async def close(self) -> None:
        """Let running nodes finish or hand them back, write everything down, and go."""

    def observe(self, observer: Observer) -> None:
        """From now on the observer is told of everything that becomes durable."""

    # Starting and telling

    async def start(self, request: StartRequest, *, remember: Remember | None = None) -> str:
        """Accept an execution durably and return its id; the row of its idempotency key is written with it."""
        ...

    async def accept(self, tx: Transaction, requests: Sequence[StartRequest]) -> list[str]:
        """Accept executions with the caller's transaction, all or none; call `accepted` when that is through."""
        ...

    def accepted(self) -> None:
        """Something may wait for a slot, or there are more slots: look."""

    async def tell(self, execution: str, signal: Signal | Discard, by: str) -> bool:
        """Tell an execution something, wherever it is; False if that changed nothing. Refusals are raised."""
        ...

    async def settled(self) -> None:
        """Wait until everything said so far is durable; raises what kept it from being so."""

    def spawn(self, coroutine: Coroutine[None, None, None]) -> None:
        """Have it done beside everything else, and while the engine is open."""

    # What it has in hand

    @property
    def accepts_only(self) -> bool:
        """Whether it executes nothing, and only records what it is told."""
        ...

    @property
    def load(self) -> Load:
        """How much this worker has in hand."""
        ...

    def under_way(self, execution: str) -> ExecutionAccepted | None:
        """How an execution was accepted that is under way here; None if it is not."""
        ...

    # Time, for tests that skip it

    async def quiet(self) -> None:
        """Wait until there is nothing to do before time passes or something is told."""

    async def next_due(self) -> int | None:
        """The next moment at which time alone changes something."""
        ...

    def look(self) -> None:
        """The store's time has moved: carry out what is due by now."""
