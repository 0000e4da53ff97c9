"""The facts an execution's log is made of, in the past tense.

`at` is store time in µs since the epoch and never goes back within an execution. Whatever a fold needs is in
the event itself; what follows from the graph alone (which edges are decided) is not repeated here.

Inputs too large for the log are kept as a blob, which `inputs_blob` names: what many attempts share is kept once.
"""

from typing import Any, Final, Protocol

from msgspec import Struct

from ropewalk.core.errors import RunError
from ropewalk.core.state import ExecutionState, GaveUp, TriggerType
from ropewalk.core.waits import Wait


class Blob(Struct, frozen=True, gc=False):
    """A value too large for the log: kept by the blob store under its hash."""

    hash: str
    size: int


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


class _Event(Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag=True, gc=False):
    at: int


# The execution as a whole


RULES: Final = 3
"""The rules an execution follows that is accepted today. Under 0 `maxParallel` counted only what executed, siblings
shared the key of an ancestor, and a failed child was never tried again. Under 1 expressions saw only the type, the
message and the attempts of an error."""
TELLS_ERRORS: Final = 2
NAMES_WORKFLOW: Final = 3
"""The rules from which on expressions see all of an error."""


class ExecutionAccepted(_Event, frozen=True):
    """Always first: what is executed, everything it may read, and the rules it follows.

    `bounded_by` are the actors with whom single workflows are shared, and who saved or started it: it reaches what is
    shared with each of them. None: it reaches the whole workspace.
    """

    execution: str
    workspace: str
    workflow: str
    version: int
    hash: str
    trigger: TriggerType = TriggerType.MANUAL
    payload: Any = None
    input: Any = None
    vars: dict[str, Any] = {}
    env: dict[str, str] = {}
    parent: Parent | None = None
    priority: int = 5
    concurrency_key: str | None = None
    trace: str | None = None
    once: str | None = None
    """A hash of the idempotency key it was started under, and of what was asked."""
    rules: int = 0
    bounded_by: tuple[str, ...] = ()


class NodesCarriedOver(_Event, frozen=True):
    """A rerun starts with these results of another execution; `ports` names those taken, where any were.

    `large` names the outputs that are blobs, or the places of those in a map's list: a log shows them like any object.
    """

    source: str
    outputs: dict[str, Any]
    ports: dict[str, tuple[str, ...]] = {}
    skipped: tuple[str, ...] = ()
    large: dict[str, tuple[int, ...]] = {}

    def output(self, node: str) -> Any:
        """What the node handed on, blobs as such also after the log was read."""
        written, places = self.outputs[node], self.large.get(node)
        if not places:
            return written if places is None else _as_blob(written)
        large = frozenset(places)
        return [_as_blob(each) if place in large else each for place, each in enumerate(written)]


def _as_blob(written: Any) -> Blob:
    return written if isinstance(written, Blob) else Blob(**written)


class ExecutionStarted(_Event, frozen=True):
    """A slot was taken; nodes may start. `deadline` is when the execution times out."""

    deadline: int | None = None


class SlotReleased(_Event, frozen=True):
    """Nothing runs for now; someone else may have the slot."""


class SlotTaken(_Event, frozen=True):
    """The execution may start nodes again."""


class ExecutionPaused(_Event, frozen=True):
    by: str
    reason: str | None = None


class ExecutionResumed(_Event, frozen=True):
    """Whatever was left of the time limit when it was paused is left now."""

    by: str
    deadline: int | None = None


class StopRequested(_Event, frozen=True):
    """The first unhandled failure under `onFailure: stop` or `cancel`: nothing starts any more.

    Under `cancel` what runs is told to stop, and has until `grace_until`.
    """

    node: str
    grace_until: int | None = None


class CancelRequested(_Event, frozen=True):
    by: str
    grace_until: int
    reason: str | None = None


class DeadlinePassed(_Event, frozen=True):
    grace_until: int


class ExecutionSucceeded(_Event, frozen=True):
    output: Any = None
    blob: Blob | None = None


class ExecutionFailed(_Event, frozen=True):
    error: str


class ExecutionCancelled(_Event, frozen=True):
    pass


class ExecutionTimedOut(_Event, frozen=True):
    @property
    def error(self) -> str:
        """Why it ended, as a failure tells it. Rows of long ago have these very words."""
        return "the execution did not end in its time limit"


class ExecutionReopened(_Event, frozen=True):
    """Back to PENDING; cancelled nodes will have their turn after all."""

    by: str
    verb: str


# Nodes


class NodesStarted(_Event, frozen=True):
    """Each of these starts its next attempt; for a map it is the evaluation of its list, or its going on."""

    nodes: tuple[str, ...]


class NodesSkipped(_Event, frozen=True):
    nodes: tuple[str, ...]


class NodeSucceeded(_Event, frozen=True):
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


class NodeFailed(_Event, frozen=True):
    """The node has failed for good; `gave_up` if its last run became a dead letter. `child` is how its child ended,
    after `opening` reopenings, if that is why.
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


class NodesReset(_Event, frozen=True):
    """A retry: these failed nodes begin again, their dead letters are requeued."""

    nodes: tuple[str, ...]


class NodeRequeued(_Event, frozen=True):
    """A dead letter goes back to work."""

    node: str
    by: str
    item: int | None = None
    overrides: dict[str, Any] | None = None


class NodeFixed(_Event, frozen=True):
    """A person supplied the output."""

    node: str
    by: str
    output: Any = None
    ports: tuple[str, ...] = ()
    item: int | None = None
    blob: Blob | None = None


# Maps


class MapExpanded(_Event, frozen=True):
    node: str
    attempt: int
    count: int


class ItemsStarted(_Event, frozen=True):
    node: str
    items: tuple[int, ...]


class ItemSucceeded(_Event, frozen=True):
    node: str
    item: int
    attempt: int
    output: Any = None
    inputs: Any = None
    blob: Blob | None = None
    tokens: int | None = None
    inputs_blob: Blob | None = None


class ItemFailed(_Event, frozen=True):
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


class ItemsGivenUp(_Event, frozen=True):
    """These earlier failures are dead letters: more failed than the map tolerates, or it succeeds and keeps all.

    No new item starts, unless the map goes on whatever failed.
    """

    node: str
    items: tuple[int, ...] = ()


# Runs


class RunStarted(_Event, frozen=True):
    """A further attempt starts, or one that was handed back or held starts again."""

    node: str
    attempt: int
    item: int | None = None


class RunFailed(_Event, frozen=True):
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


class RunWaiting(_Event, frozen=True):
    """An attempt waits; `due` is when its timer fires or its patience ends."""

    node: str
    attempt: int
    wait: Wait
    due: int | None = None
    item: int | None = None
    inputs: Any = None
    inputs_blob: Blob | None = None


class RunReturned(_Event, frozen=True):
    node: str
    attempt: int
    item: int | None = None


class RunReleased(_Event, frozen=True):
    """An attempt on hold is back in line: its breaker has closed, or it may be tried again."""

    node: str
    attempt: int
    item: int | None = None


class ChildResumed(_Event, frozen=True):
    """The node waits for its reopened child again."""

    node: str
    attempt: int
    item: int | None = None


class SignalReceived(_Event, frozen=True):
    """Kept until a wait for `name` uses it."""

    name: str
    payload: Any = None


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
    | RunWaiting
    | RunReturned
    | RunReleased
    | ChildResumed
    | SignalReceived
)
