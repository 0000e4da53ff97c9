"""Where the tables say other than the log: every row of an execution against the fold of its events."""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import msgspec

from ropewalk.core.canonical import writable
from ropewalk.core.events import Blob
from ropewalk.core.execution import Execution
from ropewalk.core.execution.resuming import first_signals
from ropewalk.core.rows import ExecutionRow, LetterRow, Rows, RunRow
from ropewalk.core.signals import Due
from ropewalk.core.state import ExecutionState, Resolution, RunState
from ropewalk.engines.base import Custody
from ropewalk.service.reading import Recorded
from ropewalk.store import dlq, executions
from ropewalk.store.auditing import Kept, KeptEventWait
from ropewalk.store.events import place_of, subject_of

_MOST_STEPS: Final = 10_000
Row = dict[str, Any]


def differences(kept: Kept, story: Recorded, machine: Execution, custody: Custody, *,
                at_rest: bool) -> Iterator[str]:  # fmt: skip
    """Everything the tables say other than the log makes it; `machine` is its fold, and is used up.

    `at_rest` says that no worker executes on the store and nothing was cut off: then no row is held that needs no
    holding, and no inbox message waits for an execution that has ended.
    """
    made = story.projected()
    yield from _execution(kept, story, made)
    yield from _event_waits(kept, story, machine)
    yield from _places(kept, story, machine, at_rest)
    if kept.live is not None and not machine.is_ended:
        yield from custody.faults(kept, at_rest=at_rest)
    yield from _runs(kept, story, made)
    yield from _dead_letters(kept, made)
    if at_rest and machine.is_ended:
        yield from _leftovers(kept)


def _leftovers(kept: Kept) -> Iterator[str]:
    if kept.untold:
        yield f"inbox: it is over, and has yet to be told {kept.untold} things"
    if kept.offered:
        yield f"offer: it is over, and {kept.offered} of its runs are offered"


def _unequal(what: str, row: object, made: Row) -> Iterator[str]:
    for column, value in made.items():
        known = getattr(row, column)
        if known != value and not _is_same_text(known, value):
            yield f"{what}: {column} {known!r} was kept, the log makes it {value!r}"


def _is_same_text(known: Any, value: Any) -> bool:
    """Whether these differ in what a store cannot keep: a log of an earlier version may have it, and its rows not."""
    return isinstance(known, str) and isinstance(value, str) and writable(known) == writable(value)


def _execution(kept: Kept, story: Recorded, made: Rows) -> Iterator[str]:
    fold = made.execution
    assert fold is not None, "a log begins with what accepted the execution"
    parent = fold.parent
    expected = {
        "workspace": fold.workspace,
        "workflow": fold.workflow,
        "version": fold.version,
        "state": str(fold.state),
        "trigger": str(fold.trigger),
        "parent": parent and parent.execution,
        "parent_node": parent and parent.node,
        "parent_item": parent and parent.item,
        "parent_attempt": parent and parent.attempt,
        "concurrency_key": fold.concurrency_key,
        "accepted_at": fold.accepted,
        "started_at": fold.started,
        "finished_at": fold.finished,
        **_error(kept.execution, fold),
        **_trace(kept.execution, story),
    }
    return _unequal("execution", kept.execution, expected)


def _error(row: executions.Execution, fold: ExecutionRow) -> Row:
    """The error a row is to have; an earlier version wrote none for what timed out."""
    is_earlier = row.error is None and fold.state is ExecutionState.TIMEOUT
    return {} if is_earlier else {"error": fold.error}


def _trace(row: executions.Execution, story: Recorded) -> Row:
    """The trace a row is to have; those of earlier versions have none."""
    return {} if row.trace_id is None else {"trace_id": story.trace_id}


# Its place among the living and in the queue


def _places(kept: Kept, story: Recorded, machine: Execution, at_rest: bool) -> list[str]:
    """What is not over is among the living, and in the queue exactly while it needs a slot."""
    for signal in first_signals(machine, has_slot=False):
        machine.handle(signal, machine.now)
    found = list(_place(kept, story, machine, at_rest))
    return [] if found and _agrees_later(kept, story, at_rest) else found


def _agrees_later(kept: Kept, story: Recorded, at_rest: bool) -> bool:
    """Whether the rows say what time alone has made of it since its last event."""
    machine = story.folded()
    for _ in range(_MOST_STEPS):
        due = machine.wake_at
        if due is None or machine.handle(Due(), due):
            return False  # it would have been recorded
        if not any(_place(kept, story, machine, at_rest)):
            return True
        if machine.wake_at == due:
            return False
    return False


def _place(kept: Kept, story: Recorded, machine: Execution, at_rest: bool) -> Iterator[str]:
    is_claimed = not at_rest and kept.queue is not None and kept.queue.state == "CLAIMED"
    yield from _queue(kept, story, machine, is_claimed)
    if machine.is_ended:
        # To tell it something, a worker may hold what is over, but no longer than that takes.
        if kept.live is not None and (at_rest or kept.live.has_slot or kept.live.owner is None):
            yield f"live: it is {machine.state}, and is kept as under way"
    elif kept.live is None:
        yield f"live: it is {machine.state}, and is not kept as under way"
    else:
        yield from _unequal("live", kept.live, _living(story, machine, is_claimed))


def _living(story: Recorded, machine: Execution, is_claimed: bool) -> Row:
    accepted = story.accepted
    # The claiming worker takes slot and key at once; the execution's log says so with its next events.
    has_slot = is_claimed or machine.has_slot
    expected: Row = {
        "workspace": accepted.workspace,
        "concurrency_key": accepted.concurrency_key,
        "priority": accepted.priority,
        "has_slot": int(has_slot),
        "wake_at": None if machine.has_slot else machine.wake_at,
    }
    # A child that uses its ancestor's key holds it in a later place; one that began under earlier rules in none.
    if accepted.parent is None:
        expected["has_key"] = int(accepted.concurrency_key is not None and (is_claimed or machine.is_started))
    return expected


def _queue(kept: Kept, story: Recorded, machine: Execution, is_claimed: bool) -> Iterator[str]:
    row, needs_slot = kept.queue, machine.needs_slot and not machine.is_ended
    if row is None:
        if needs_slot:
            yield "queue: it needs a slot, and is not in the queue"
    elif not needs_slot:
        # An entry that failed stays to be seen, together with its execution.
        if row.state != "FAILED" or not machine.state.is_reopenable:
            yield f"queue: it needs no slot, and is in the queue as {row.state}"
    else:
        accepted = story.accepted
        expected = {
            "workspace": accepted.workspace,
            "state": "CLAIMED" if is_claimed else "PENDING",
            "priority": accepted.priority,
            "is_new": int(machine.started_at is None and accepted.parent is None),
        }
        yield from _unequal("queue", row, expected)


# Runs, dead letters, event waits


def _runs(kept: Kept, story: Recorded, made: Rows) -> Iterator[str]:
    """What ended or waits has its row; what is under way is the log's alone, and its earlier row does not count."""
    known = {run.id: run for run in kept.runs}
    for run in made.runs:
        name = f"run {run.id} ({run.node} {run.attempt})"
        row = known.pop(run.id, None)
        if run.finished is None and run.state is not RunState.WAITING:
            continue
        if row is None:
            yield f"{name}: the log has it, the table has not"
        else:
            yield from _unequal(name, row, _run(run))
    yield from (f"run {run.id} ({run.node} {run.attempt}): no event made it" for run in known.values())


def _run(run: RunRow) -> Row:
    return {
        "node": run.node,
        "item": run.item,
        "attempt": run.attempt,
        "state": str(run.state),
        "retry_after": run.retry_after,
        "started_at": run.started,
        "finished_at": run.finished,
        "error_type": run.error and str(run.error.type),
        "error": run.error and run.error.message,
    }


def _dead_letters(kept: Kept, made: Rows) -> Iterator[str]:
    known = {letter.id: letter for letter in kept.letters}
    for letter in made.letters:
        name = f"dead letter {letter.id} ({letter.node})"
        row = known.pop(letter.id, None)
        if row is not None:
            yield from _unequal(name, row, _dead_letter(letter, kept))
            yield from chain(_resolution(name, row, letter), _inputs(name, row, letter))
        elif letter.resolution is Resolution.PENDING:
            # One that was requeued or fixed is not kept as long as a log may be.
            yield f"{name}: the log has it, the table has not"
    yield from (f"dead letter {letter.id} ({letter.node}): no event made it" for letter in known.values())


def _dead_letter(letter: LetterRow, kept: Kept) -> Row:
    return {
        "workspace": kept.execution.workspace,
        "workflow": kept.execution.workflow,
        "run": letter.run,
        "node": letter.node,
        "item": letter.item,
        "attempt": letter.attempt,
        "failure_type": str(letter.type),
        "error_type": str(letter.error_type),
        "reason": letter.reason,
        "created_at": letter.created,
    }


def _resolution(name: str, row: dlq.DeadLetter, letter: LetterRow) -> Iterator[str]:
    # Discarding is a person's note beside the log; the first resolution of a dead letter stands.
    if row.resolution != Resolution.DISCARDED:
        made = {"resolution": str(letter.resolution), "resolved_at": letter.resolved, "reviewed_by": letter.by}
        yield from _unequal(name, row, made)


def _inputs(name: str, row: dlq.DeadLetter, letter: LetterRow) -> Iterator[str]:
    inputs: Any = None if row.inputs is None else msgspec.json.decode(row.inputs)
    if row.inputs_blob is not None:
        inputs = msgspec.json.decode(row.inputs_blob, type=Blob)
    if inputs != letter.inputs:
        yield f"{name}: other inputs were kept than the log makes them"


def _event_waits(kept: Kept, story: Recorded, machine: Execution) -> Iterator[str]:
    known = {(wait.node, wait.item): wait for wait in kept.event_waits}
    for wait in _waiting_for_events(story, machine):
        row = known.pop((wait.node, wait.item), None)
        if row is None:
            yield f"event wait of {wait.node}: the log has it, the table has not"
        else:
            yield from _unequal(f"event wait of {wait.node}", row, msgspec.structs.asdict(wait))
    yield from (f"event wait of {node}: the node does not wait for it" for node, _ in known)


def _waiting_for_events(story: Recorded, machine: Execution) -> Iterator[KeptEventWait]:
    if machine.is_ended:
        return
    for work in machine.waiting.values():
        waits_for = None if work.wait is None else subject_of(work.wait)
        if waits_for is not None:
            about = (machine.plan.ids[work.node], place_of(work.item), work.attempt, story.accepted.workspace)
            yield KeptEventWait(*about, *waits_for)
