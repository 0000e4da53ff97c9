"""Holds a store to the guarantees: every log to the invariants, every table to what the logs make of it.

Works on a live store: what is read of one execution counts only if its log is the same before and after.
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from ropewalk.checker import History, Violation, check, check_together
from ropewalk.core import log
from ropewalk.core.errors import RopewalkError
from ropewalk.core.events import Event
from ropewalk.core.execution import Execution
from ropewalk.core.plan import Plan, load_plan
from ropewalk.core.rows import LetterRow, Rows, RunRow, rows
from ropewalk.core.state import Resolution, RunState
from ropewalk.store import dlq, executions, live, runs, workflows, workspaces
from ropewalk.store import log as stored_log
from ropewalk.store.access import Reader

TABLES: Final = "tables"
"""What violations of the tables are filed under, beside the invariants of logs."""

_PAGE: Final = 500
_TRIES: Final = 20
_MOST_ROWS: Final = 10_000_000
_MOST_TOGETHER: Final = 10_000


class Kept(Struct):
    """What the tables say about one execution."""

    execution: executions.Execution
    live: live.Live | None
    runs: list[runs.Run]
    letters: list[dlq.DeadLetter]


class Checked(Struct, frozen=True):
    """One execution, looked at."""

    id: str
    violations: list[Violation]
    history: History | None = None


async def checked(reader: Reader) -> AsyncIterator[Checked]:
    """Every execution of every workspace, oldest findings last; then what they show together."""
    plans: dict[tuple[str, int], Plan] = {}
    together: list[History] = []
    for workspace in await workspaces.listed(reader, limit=_PAGE):
        async for row in _executions(reader, workspace.id):
            found = await _check(reader, row, plans)
            yield found
            if found.history is not None and row.concurrency_key is not None and len(together) < _MOST_TOGETHER:
                together.append(found.history)
    for violation in check_together(together, {}):
        yield Checked(violation.execution, [violation])


async def _executions(reader: Reader, workspace: str) -> AsyncIterator[executions.Execution]:
    before = executions.NEWEST
    while page := await executions.listed(reader, workspace, before=before, limit=_PAGE):
        for row in page:
            yield row
        before = page[-1].id


async def _check(reader: Reader, row: executions.Execution, plans: dict[tuple[str, int], Plan]) -> Checked:
    try:
        seqs, events, kept = await _settled(reader, row)
        plan = plans.get((row.workflow, row.version)) or await _plan(reader, row)
        plans[row.workflow, row.version] = plan
    except (RopewalkError, msgspec.DecodeError) as error:
        return Checked(row.id, [_violation(row.id, 0, f"cannot be read: {error}")])
    history = History(plan, events, seqs, is_quiescent=False)
    found = check(history)
    if not found and kept is not None:
        found = list(_compared(kept, plan, events))
    return Checked(row.id, found, history)


async def _plan(reader: Reader, row: executions.Execution) -> Plan:
    version = await workflows.get_version(reader, row.workflow, row.version)
    if version is None:
        raise RopewalkError(f"version {row.version} of workflow {row.workflow} is missing")
    return load_plan(version.document.encode())


async def _settled(reader: Reader, row: executions.Execution) -> tuple[list[int], list[Event], Kept | None]:
    """The log, and the tables as they were with exactly this log; None for these if it never stood still."""
    for _ in range(_TRIES):
        before = await stored_log.entries(reader, row.id)
        kept = await _kept(reader, row.id)
        if await stored_log.entries(reader, row.id) == before:
            return *_decoded(before), kept
    return *_decoded(before), None


def _decoded(entries: list[tuple[int, bytes]]) -> tuple[list[int], list[Event]]:
    seqs: list[int] = []
    events: list[Event] = []
    for stored_seq, entry in entries:
        first, added = log.decode(entry)
        if first != stored_seq:
            raise RopewalkError(f"the entry kept as {stored_seq} says it is {first}")
        seqs += range(first, first + len(added))
        events += added
    return seqs, events


async def _kept(reader: Reader, execution: str) -> Kept:
    row = await executions.load(reader, execution)
    if row is None:
        raise RopewalkError("its row is gone")
    return Kept(
        row,
        await live.get(reader, execution),
        await runs.listed(reader, execution, limit=_MOST_ROWS),
        await dlq.of_execution(reader, execution, limit=_MOST_ROWS),
    )


# Tables against the fold


def _compared(kept: Kept, plan: Plan, events: list[Event]) -> Iterator[Violation]:
    made = rows(plan, events)
    name, last = kept.execution.id, len(events)
    differences = [*_execution(kept, made), *_live(kept, plan, events), *_runs(kept, made), *_letters(kept, made)]
    for difference in differences:
        yield _violation(name, last, difference)


def _violation(execution: str, seq: int, message: str) -> Violation:
    return Violation(TABLES, message, execution, seq)


def _execution(kept: Kept, made: Rows) -> Iterator[str]:
    row, fold = kept.execution, made.execution
    if fold is None:
        yield "execution: kept without a log"
        return
    parent: tuple[str | int | None, ...] = (None, None, None, None)
    if fold.parent is not None:
        parent = (fold.parent.execution, fold.parent.node, fold.parent.item, fold.parent.attempt)
    expected = (
        fold.workspace, fold.workflow, fold.version, str(fold.state), str(fold.trigger), *parent,
        fold.concurrency_key, fold.accepted, fold.started, fold.finished, fold.error,
    )  # fmt: skip
    known = (
        row.workspace, row.workflow, row.version, row.state, row.trigger, row.parent, row.parent_node, row.parent_item,
        row.parent_attempt, row.concurrency_key, row.accepted_at, row.started_at, row.finished_at, row.error,
    )  # fmt: skip
    yield from _differing("execution", _EXECUTION, known, expected)


_EXECUTION: Final = (
    "workspace", "workflow", "version", "state", "trigger", "parent", "parent_node", "parent_item", "parent_attempt",
    "concurrency_key", "accepted_at", "started_at", "finished_at", "error",
)  # fmt: skip


def _live(kept: Kept, plan: Plan, events: list[Event]) -> Iterator[str]:
    machine = Execution(plan)
    machine.apply(events)
    if (kept.live is None) != machine.is_ended:
        yield f"live: it is {machine.state}, and is {'not ' if kept.live is None else ''}kept as under way"
    elif kept.live is not None:
        expected = (int(machine.has_slot), None if machine.has_slot else machine.wake_at)
        yield from _differing("live", ("has_slot", "wake_at"), (kept.live.has_slot, kept.live.wake_at), expected)


def _runs(kept: Kept, made: Rows) -> Iterator[str]:
    known = {run.id: run for run in kept.runs}
    folded = {run.id: run for run in made.runs}
    yield from (f"run {name}: no event made it" for name in known if name not in folded)
    for name, run in folded.items():
        if run.finished is None and run.state is not RunState.WAITING:
            continue  # what is under way is in the log alone
        row = known.get(name)
        if row is None:
            yield f"run {name}: the log has it, the table has not"
        else:
            yield from _differing(f"run {name}", _RUN, _run_known(row), _run_expected(run))


_RUN: Final = (
    "node", "item", "attempt", "state", "retry_after", "started_at", "finished_at", "error_type", "error",
)  # fmt: skip


def _run_known(row: runs.Run) -> tuple[Any, ...]:
    return (row.node, row.item, row.attempt, row.state, row.retry_after, row.started_at, row.finished_at,
            row.error_type, row.error)  # fmt: skip


def _run_expected(run: RunRow) -> tuple[Any, ...]:
    error = (None, None) if run.error is None else (str(run.error.type), run.error.message)
    return run.node, run.item, run.attempt, str(run.state), run.retry_after, run.started, run.finished, *error


def _letters(kept: Kept, made: Rows) -> Iterator[str]:
    known = {letter.id: letter for letter in kept.letters}
    folded = {letter.id: letter for letter in made.letters}
    yield from (f"dead letter {name}: no event made it" for name in known if name not in folded)
    for name, letter in folded.items():
        row = known.get(name)
        if row is None:
            yield f"dead letter {name}: the log has it, the table has not"
            continue
        yield from _differing(f"dead letter {name}", _LETTER, _letter_known(row), _letter_expected(letter))
        # Discarding is a person's note beside the log; whoever did it first has resolved the letter.
        if row.resolution not in (str(letter.resolution), str(Resolution.DISCARDED)):
            yield f"dead letter {name}: {row.resolution} was kept, the log makes it {letter.resolution}"


_LETTER: Final = (
    "run", "node", "item", "attempt", "failure_type", "error_type", "reason", "created_at", "inputs",
)  # fmt: skip


def _letter_known(row: dlq.DeadLetter) -> tuple[Any, ...]:
    inputs = None if row.inputs is None else msgspec.json.decode(row.inputs)
    return (row.run, row.node, row.item, row.attempt, row.failure_type, row.error_type, row.reason, row.created_at,
            inputs)  # fmt: skip


def _letter_expected(letter: LetterRow) -> tuple[Any, ...]:
    return (letter.run, letter.node, letter.item, letter.attempt, str(letter.type), str(letter.error_type),
            letter.reason, letter.created, letter.inputs)  # fmt: skip


def _differing(what: str, columns: Iterable[str], known: tuple[Any, ...], expected: tuple[Any, ...]) -> Iterator[str]:
    for column, one, other in zip(columns, known, expected, strict=True):
        if one != other:
            yield f"{what}: {column} {one!r} was kept, the log makes it {other!r}"
