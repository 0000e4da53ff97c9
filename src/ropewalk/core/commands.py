"""What the shell must see to, once the events that caused it are durable.

Every command is keyed by what it names, so carrying one out twice is harmless.
"""

from msgspec import Struct

from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import ChildWait


class _Command(Struct, frozen=True, omit_defaults=True, tag=True, gc=False):
    pass


class RunNode(_Command, frozen=True):
    """Carry out this attempt. For a map without `item`: evaluate its list and report `Expanded`."""

    node: str
    attempt: int
    item: int | None = None


class StopRun(_Command, frozen=True):
    """Tell this attempt to stop; what it still reports within the grace counts."""

    node: str
    attempt: int
    item: int | None = None


class StartChild(_Command, frozen=True):
    """Accept the child execution, if it is not there yet."""

    node: str
    attempt: int
    wait: ChildWait
    item: int | None = None


class CancelChild(_Command, frozen=True):
    child: str


class PauseChild(_Command, frozen=True):
    child: str


class ResumeChild(_Command, frozen=True):
    child: str


class ReopenChild(_Command, frozen=True):
    """Have a child go on that has failed after so many reopenings."""

    child: str
    opening: int | None = None


class EvaluateOutput(_Command, frozen=True):
    """The output is large or takes long: evaluate it beside everything else, keep it elsewhere if it is too large for
    the log, then signal `Evaluated` with the same `seq`."""

    seq: int


class NeedSlot(_Command, frozen=True):
    """Something could start: claim a slot, then signal `Start`."""


class WakeAt(_Command, frozen=True):
    """Signal `Due` at this moment; None: nothing to wake for. Replaces the previous one."""

    at: int | None


class Finish(_Command, frozen=True):
    """The execution ended; those that wait for it may be told."""

    state: ExecutionState


Command = (
    RunNode
    | StopRun
    | StartChild
    | CancelChild
    | PauseChild
    | ResumeChild
    | ReopenChild
    | EvaluateOutput
    | NeedSlot
    | WakeAt
    | Finish
)
