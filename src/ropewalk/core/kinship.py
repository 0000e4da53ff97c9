"""What the executions of one family tell each other: a parent its children, a child its parent.

To be told twice changes nothing, so an engine that cannot know whether something was told tells it again.
"""

from typing import Final

from ropewalk.core.commands import CancelChild, Command, PauseChild, ReopenChild, ResumeChild
from ropewalk.core.events import (
    Event,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionSucceeded,
    ExecutionTimedOut,
    Parent,
)
from ropewalk.core.signals import BY_PARENT, Cancel, ChildEnded, Pause, Resume, Retry, Signal
from ropewalk.core.state import ExecutionState

ENDS: Final[dict[type, ExecutionState]] = {
    ExecutionSucceeded: ExecutionState.SUCCESS,
    ExecutionFailed: ExecutionState.FAILED,
    ExecutionCancelled: ExecutionState.CANCELLED,
    ExecutionTimedOut: ExecutionState.TIMEOUT,
}
"""The events that end an execution, and the state that each leaves."""


def verb_of_parent(command: Command) -> tuple[str, Signal] | None:
    """What a command has a child be told, and which child; None if the command concerns no child that is there."""
    match command:
        case CancelChild(child):
            return child, Cancel(BY_PARENT)
        case PauseChild(child):
            return child, Pause(BY_PARENT)
        case ResumeChild(child):
            return child, Resume(BY_PARENT)
        case ReopenChild(child, opening):
            return child, Retry(BY_PARENT, opening)
        case _:
            return None


def end_of_child(parent: Parent, end: Event, opening: int, jitter: float) -> ChildEnded:
    """What a child that has ended with this event, after so many reopenings, tells the execution that waits for it."""
    output, blob = (end.output, end.blob) if isinstance(end, ExecutionSucceeded) else (None, None)
    about = (parent.node, parent.attempt, ENDS[type(end)], output, error_of(end), parent.item, blob)
    return ChildEnded(*about, jitter, opening)


def error_of(end: Event) -> str | None:
    """Why an execution ended so, if anything is said about it."""
    return end.error if isinstance(end, ExecutionFailed | ExecutionTimedOut) else None
