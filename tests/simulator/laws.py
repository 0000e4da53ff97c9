"""What a log must show besides the checker's invariants: promises this world can judge by what it knows."""

from collections.abc import Iterator

from ropewalk.core.events import (
    CancelRequested,
    ChildResumed,
    DeadlinePassed,
    Event,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionPaused,
    ExecutionReopened,
    ExecutionResumed,
    ExecutionStarted,
    ExecutionTimedOut,
    ItemFailed,
    ItemsStarted,
    ItemSucceeded,
    MapExpanded,
    NodeFailed,
    NodeFixed,
    NodeRequeued,
    NodesReset,
    NodesStarted,
    NodeSucceeded,
    OutcomeDecided,
    RoundEnded,
    RunStarted,
    SignalReceived,
    StopRequested,
)
from ropewalk.core.execution import Execution
from ropewalk.core.plan import Plan
from ropewalk.core.signals import BY_PARENT
from tests.simulator.outside import TOLD, is_output, output_of, told_by

Log = list[Event]
ENDED_WELL = (NodeSucceeded, ItemSucceeded, RoundEnded)
ENDS = (ExecutionCancelled, ExecutionTimedOut, ExecutionFailed, OutcomeDecided)


def broken_laws(plan: Plan, log: Log) -> Iterator[str]:
    """Every law of this module that a log breaks."""
    for law in (
        outputs_are_their_own,
        signals_are_used_once,
        stop_is_obeyed,
        maps_stop_when_they_fail,
        time_limits_are_kept,
        parents_resume_what_they_have_paused,
        grace_is_granted,
    ):
        yield from (f"{law.__name__}: {broken}" for broken in law(plan, log))


def outputs_are_their_own(plan: Plan, log: Log) -> Iterator[str]:
    """What a node or item gave is what that very attempt at it reported, or the answer to that very wait."""
    for event in log:
        if isinstance(event, ENDED_WELL) and is_output(told := told_by(event.output)):
            item = event.item if isinstance(event, ItemSucceeded) else None
            if told != output_of((event.node, item, event.attempt)):
                yield f"not the result of its own attempt: {event}"


def signals_are_used_once(plan: Plan, log: Log) -> Iterator[str]:
    """Each signal ends at most one wait, those of one name in the order they were told."""
    names = {event.payload: event.name for event in log if isinstance(event, SignalReceived)}
    last: dict[str, int] = {}
    for event in log:
        output = event.output if isinstance(event, ENDED_WELL) else None
        if not isinstance(output, str) or output not in names:
            continue
        number = int(output.removeprefix(TOLD))
        if number <= last.get(names[output], 0):
            yield f"{output!r} was used again, or after a later one"
        last[names[output]] = number


def stop_is_obeyed(plan: Plan, log: Log) -> Iterator[str]:
    """`onFailure: stop`: after an unhandled failure nothing starts until someone reopens the execution."""
    failed: dict[str, None] = {}
    for event in log:
        if isinstance(event, ExecutionReopened | OutcomeDecided):
            failed.clear()
        elif isinstance(event, NodeFailed) and not event.handled and plan.index[event.node] < plan.ordinary:
            failed[event.node] = None
        elif isinstance(event, NodesStarted | ItemsStarted | RunStarted) and failed and plan.stop_on_failure:
            yield f"started after the failure of {list(failed)}: {event}"
        elif isinstance(event, NodeRequeued | NodeFixed | ChildResumed):
            failed.pop(event.node, None)
        elif isinstance(event, StopRequested) and event.node not in failed:
            yield f"stopped by a failure of an earlier opening: {event}"


def maps_stop_when_they_fail(plan: Plan, log: Log) -> Iterator[str]:
    """Once more items failed than the map tolerates, no new item starts until someone steps in, unless it goes on."""
    failures: dict[str, int] = {}
    limits: dict[str, int] = {}
    for event in log:
        if isinstance(event, MapExpanded):
            index = plan.index[event.node]
            limits[event.node] = event.count if plan.goes_on[index] else plan.tolerated(index, event.count)
        elif isinstance(event, ItemFailed):
            failures[event.node] = failures.get(event.node, 0) + 1
        elif isinstance(event, ExecutionReopened | NodesReset):
            failures.clear()
        elif isinstance(event, NodeRequeued | NodeFixed | ChildResumed):
            failures.pop(event.node, None)
        elif isinstance(event, ItemsStarted) and failures.get(event.node, 0) > limits[event.node]:
            yield f"items started after {failures[event.node]} failures: {event}"


def time_limits_are_kept(plan: Plan, log: Log) -> Iterator[str]:
    """The time limit starts with the execution and stands still in a pause, also when the parent pauses once more."""
    deadline: int | None = None
    left: int | None = None
    is_paused = False
    for event in log:
        if isinstance(event, ExecutionStarted):
            deadline = None if plan.timeout is None else event.at + plan.timeout
            if event.deadline != deadline:
                yield f"the deadline should be {deadline}: {event}"
        elif isinstance(event, ExecutionPaused):
            left = left if is_paused else None if deadline is None else max(0, deadline - event.at)
            is_paused = True
        elif isinstance(event, ExecutionResumed):
            is_paused = False
            deadline = None if left is None else event.at + left
            if event.deadline != deadline:
                yield f"the deadline should be {deadline}: {event}"
        elif isinstance(event, ExecutionReopened):
            deadline = left = None
            is_paused = False


def parents_resume_what_they_have_paused(plan: Plan, log: Log) -> Iterator[str]:
    """What a person has paused, and the parent has not, the parent does not resume."""
    by: str | None = None
    for event in log:
        if isinstance(event, ExecutionPaused):
            by = event.by
        elif isinstance(event, ExecutionResumed) and event.by == BY_PARENT != by:
            yield f"paused by {by}: {event}"


def grace_is_granted(plan: Plan, log: Log) -> Iterator[str]:
    """An execution that is told to end waits for what runs, until the grace is used up."""
    grace_until = 0
    for seq, event in enumerate(log):
        if isinstance(event, CancelRequested | DeadlinePassed | StopRequested):
            grace_until = event.grace_until or 0
        elif isinstance(event, ENDS) and event.at < grace_until:
            grace_until, last = 0, grace_until
            before = Execution(plan)
            before.apply(log[:seq])
            if before.running:
                yield f"{before.running} attempts had grace until {last}: {event}"
