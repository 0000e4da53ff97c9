"""The facts an execution's log is made of, in the past tense.

`at` is store time in µs since the epoch and never goes back within an execution. What a fold needs is in
the event itself; what follows from the graph alone (which edges are decided) is not repeated here.

Inputs too large for the log are kept as a blob, which `inputs_blob` names: what many attempts share is kept once.
"""

from typing import Any, Final, Protocol

from msgspec import Struct, field

from ropewalk.core.closing_events import OutcomeDecided as OutcomeDecided
from ropewalk.core.errors import RunError
from ropewalk.core.event_base import Blob as Blob
from ropewalk.core.event_base import EventBase
from ropewalk.core.map_events import ItemFailed as ItemFailed
from ropewalk.core.map_events import ItemsGivenUp as ItemsGivenUp
from ropewalk.core.map_events import ItemsStarted as ItemsStarted
from ropewalk.core.map_events import ItemSucceeded as ItemSucceeded
from ropewalk.core.map_events import MapExpanded as MapExpanded
from ropewalk.core.run_events import ChildResumed as ChildResumed
from ropewalk.core.run_events import RoundEnded as RoundEnded
from ropewalk.core.run_events import RunFailed as RunFailed
from ropewalk.core.run_events import RunReleased as RunReleased
from ropewalk.core.run_events import RunReturned as RunReturned
from ropewalk.core.run_events import RunStarted as RunStarted
from ropewalk.core.run_events import RunWaiting as RunWaiting
from ropewalk.core.run_events import SignalReceived as SignalReceived
from ropewalk.core.state import ExecutionState, GaveUp, TriggerType


class _Given(Protocol):
    @property
    def inputs(self) -> Any: ...
    @property
    def inputs_blob(self) -> Blob | None: ...


def given(told: _Given) -> Any:
    """What an attempt was given, as the log has it: the value, or where it lies; None if it is not told here."""
    return told.inputs if told.inputs_blob is None else told.inputs_blob


class Parent(Struct, frozen=True, omit_defaults=True, gc=False):
    """Whose child an execution is: the attempt that waits for it, and everyone above, the outermost first."""

    execution: str
    node: str
    attempt: int
    item: int | None = None
    ancestors: tuple[str, ...] = ()


# The execution as a whole


RULES: Final = 4
"""The rules an execution follows that is accepted today. Under 0 `maxParallel` counted only what executed, siblings
shared the key of an ancestor, and a failed child was never tried again. Under 1 expressions saw only the type, the
message and the attempts of an error."""
TELLS_ERRORS: Final = 2
NAMES_WORKFLOW: Final = 3
TELLS_CHILD: Final = 4
"""From which rules on expressions see all of an error, the workflow's name, and how the child of a node ended."""


class ExecutionAccepted(EventBase, frozen=True):
    """Always first: what is executed, everything it may read, and the rules it follows.

    `bounded_by` are the actors with whom single workflows are shared, and who saved or started it: it reaches what is
    shared with each of them. None: it reaches the whole workspace. `depth` is how many led to it by starts of nodes.
    """

    execution: str
    workspace: str
    workflow: str
    version: int
    hash: str
    trigger: TriggerType = TriggerType.MANUAL
    payload: Any = None
    input: Any = None
    vars: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    parent: Parent | None = None
    priority: int = 5
    concurrency_key: str | None = None
    trace: str | None = None
    once: str | None = None
    """A hash of the idempotency key it was started under, and of what was asked."""
    rules: int = 0
    bounded_by: tuple[str, ...] = ()
    depth: int = 0


class NodesCarriedOver(EventBase, frozen=True):
    """A rerun starts with these results of another execution; `ports` names those taken, where any were.

    `large` names the outputs that are blobs, or the places of those in a map's list: a log shows them like any object.
    """

    source: str
    outputs: dict[str, Any]
    ports: dict[str, tuple[str, ...]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    large: dict[str, tuple[int, ...]] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)

    def output(self, node: str) -> Any:
        """What the node handed on, blobs as such also after the log was read."""
        written, places = self.outputs[node], self.large.get(node)
        if not places:
            return written if places is None else _as_blob(written)
        large = frozenset(places)
        return [_as_blob(each) if place in large else each for place, each in enumerate(written)]


def _as_blob(written: Any) -> Blob:
    return written if isinstance(written, Blob) else Blob(**written)


class ExecutionStarted(EventBase, frozen=True):
    """A slot was taken; nodes may start. `deadline` is when the execution times out."""

    deadline: int | None = None


class SlotReleased(EventBase, frozen=True):
    """Nothing runs for now; another execution may have the slot."""


class SlotTaken(EventBase, frozen=True):
    """The execution may start nodes again."""


class ExecutionPaused(EventBase, frozen=True):
    by: str
    reason: str | None = None


class ExecutionResumed(EventBase, frozen=True):
    """The part of the time limit that was left when it was paused is left now."""

    by: str
    deadline: int | None = None


class StopRequested(EventBase, frozen=True):
    """The first unhandled failure under `onFailure: stop` or `cancel`: nothing starts any more.

    Under `cancel` what runs is told to stop, and has until `grace_until`.
    """

    node: str
    grace_until: int | None = None


class CancelRequested(EventBase, frozen=True):
    by: str
    grace_until: int
    reason: str | None = None


class DeadlinePassed(EventBase, frozen=True):
    grace_until: int


class ExecutionSucceeded(EventBase, frozen=True):
    output: Any = None
    blob: Blob | None = None


class ExecutionFailed(EventBase, frozen=True):
    error: str


class ExecutionCancelled(EventBase, frozen=True):
    pass


class ExecutionTimedOut(EventBase, frozen=True):
    @property
    def error(self) -> str:
        """Why it ended, as a failure tells it. Rows of long ago have these very words."""
        return "the execution did not end in its time limit"


class ExecutionReopened(EventBase, frozen=True):
    """Back to PENDING; cancelled nodes will have their turn after all."""

    by: str
    verb: str


# Nodes


class NodesStarted(EventBase, frozen=True):
    """Each of these starts its next attempt; for a map it is the evaluation of its list, or its going on."""

    nodes: tuple[str, ...]


class NodesSkipped(EventBase, frozen=True):
    nodes: tuple[str, ...]


class NodeSucceeded(EventBase, frozen=True):
    """The node is done. For a map (`attempt` 0) the output is the list of its items' outputs.

    `tokens` is what the attempt used up of a language model's, if its node counted them.
    """

    node: str
    attempt: int = 0
    output: Any = None
    ports: tuple[str, ...] = ()
    inputs: Any = None
    blob: Blob | None = None
    tokens: int | None = None
    inputs_blob: Blob | None = None


class NodeFailed(EventBase, frozen=True):
    """The node has failed for good; `gave_up` if its last run became a dead letter. `child` is how its child ended,
    after `opening` reopenings, if that is why; one that is `undone` is not reopened. `edge` is the place of the first
    error edge taken, where edges ask which failure it is; `faults` are the `when` that could not be evaluated.
    """

    node: str
    error: RunError
    attempt: int = 0
    handled: bool = False
    gave_up: GaveUp | None = None
    inputs: Any = None
    child: ExecutionState | None = None
    inputs_blob: Blob | None = None
    opening: int | None = None
    edge: int | None = None
    faults: tuple[str, ...] = ()
    undone: bool = False


class NodesReset(EventBase, frozen=True):
    """A retry: these failed nodes begin again, their dead letters are requeued."""

    nodes: tuple[str, ...]


class NodeRequeued(EventBase, frozen=True):
    """A dead letter goes back to work."""

    node: str
    by: str
    item: int | None = None
    overrides: dict[str, Any] | None = None


class NodeFixed(EventBase, frozen=True):
    """A person supplied the output."""

    node: str
    by: str
    output: Any = None
    ports: tuple[str, ...] = ()
    item: int | None = None
    blob: Blob | None = None


Event = (
    ExecutionAccepted
    | NodesCarriedOver
    | ExecutionStarted
    | SlotReleased
    | SlotTaken
    | ExecutionPaused
    | ExecutionResumed
    | StopRequested
    | CancelRequested
    | DeadlinePassed
    | OutcomeDecided
    | ExecutionSucceeded
    | ExecutionFailed
    | ExecutionCancelled
    | ExecutionTimedOut
    | ExecutionReopened
    | NodesStarted
    | NodesSkipped
    | NodeSucceeded
    | NodeFailed
    | NodesReset
    | NodeRequeued
    | NodeFixed
    | MapExpanded
    | ItemsStarted
    | ItemSucceeded
    | ItemFailed
    | ItemsGivenUp
    | RunStarted
    | RunFailed
    | RoundEnded
    | RunWaiting
    | RunReturned
    | RunReleased
    | ChildResumed
    | SignalReceived
)
