"""What the executions of one family tell each other: a parent its children, a child its parent.

To be told twice changes nothing, so an engine that cannot know whether something was told tells it again.
"""

from collections.abc import Iterable
from typing import Final

from ropewalk.core.acceptance import StartRequest, Version
from ropewalk.core.commands import CancelChild, Command, PauseChild, ReopenChild, ResumeChild, StartChild
from ropewalk.core.errors import InvalidTransition
from ropewalk.core.events import (
    Event,
    ExecutionAccepted,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionReopened,
    ExecutionSucceeded,
    ExecutionTimedOut,
    Parent,
)
from ropewalk.core.signals import BY_PARENT, Cancel, ChildEnded, ChildReopened, Pause, Resume, Retry, Signal
from ropewalk.core.state import ExecutionState

DEEPEST: Final = 16
"""How many executions may be nested, the outermost counted."""

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


def child_request(accepted: ExecutionAccepted, command: StartChild, version: Version) -> StartRequest:
    """What a node of the execution accepted so starts as its child; InvalidTransition if it is nested too deep."""
    wait, above = command.wait, accepted.parent.ancestors if accepted.parent else ()
    if len(above) + 1 >= DEEPEST:
        raise InvalidTransition(f"sub-workflows are nested more than {DEEPEST} deep")
    of = accepted.execution
    return StartRequest(
        version=version,
        workspace=accepted.workspace,
        input=wait.input,
        env=accepted.env,
        trigger=accepted.trigger,
        priority=accepted.priority,
        parent=Parent(of, command.node, command.attempt, command.item, (*above, of)),
        execution=wait.child,
        trace=accepted.trace,
        bounded_by=accepted.bounded_by,
        depth=accepted.depth,
    )


def depth_below(accepted: ExecutionAccepted) -> int:
    """The depth of what a node of the execution accepted so starts without waiting; InvalidTransition if too deep."""
    above = accepted.parent.ancestors if accepted.parent else ()
    depth = accepted.depth + len(above) + 1
    if depth >= DEEPEST:
        raise InvalidTransition(f"executions have started one another more than {DEEPEST} deep")
    return depth


def never_began(command: StartChild, state: ExecutionState, reason: str) -> ChildEnded:
    """What the execution that waits for a child is told if the child cannot be started."""
    return ChildEnded(command.node, command.attempt, state, None, reason, command.item)


def reopening_of_child(accepted: ExecutionAccepted, events: Iterable[Event]) -> tuple[str, ChildReopened] | None:
    """What a child that these events reopen has its parent be told, and which parent; None if they reopen no child.

    A parent that refuses it keeps the child from being reopened.
    """
    of = accepted.parent
    if of is None:
        return None
    reopened = next((event for event in events if isinstance(event, ExecutionReopened)), None)
    return None if reopened is None else (of.execution, ChildReopened(of.node, of.attempt, reopened.by, of.item))


def end_of_child(parent: Parent, end: Event, opening: int, jitter: float, *, undone: bool = False) -> ChildEnded:
    """What a child that has ended with this event, after so many reopenings, tells the execution that waits for it;
    `undone` if what it did is undone, so that it is not reopened.
    """
    output, blob = (end.output, end.blob) if isinstance(end, ExecutionSucceeded) else (None, None)
    about = (parent.node, parent.attempt, ENDS[type(end)], output, error_of(end), parent.item, blob)
    return ChildEnded(*about, jitter, opening, undone=undone)


def error_of(end: Event) -> str | None:
    """Why an execution ended so, if anything is said about it."""
    return end.error if isinstance(end, ExecutionFailed | ExecutionTimedOut) else None
