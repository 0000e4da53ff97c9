"""The rows that make the tables say what an execution's state says.

Nothing here decides: a row is written when the state it stands for differs from what was written last.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from ropewalk.core import log
from ropewalk.core.canonical import content_hash
from ropewalk.core.events import Blob, ExecutionFailed, ExecutionReopened, ExecutionTimedOut, RunWaiting
from ropewalk.core.execution.work import Phase
from ropewalk.core.rows import LetterRow, RunRow
from ropewalk.core.state import ExecutionState, Resolution, RunState
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.stored import LITTLE, count
from ropewalk.engines.runner import INLINE_LIMIT
from ropewalk.store.events import NO_ITEM, subject_of
from ropewalk.store.naming import NAMES_BLOB, NAMES_FILE, named_in
from ropewalk.store.rows import DeadLetterEntry, RunEntry
from ropewalk.telemetry.failures import DeadLetter, in_order

Row = tuple[Any, ...]
Rows = list[tuple[str, Row]]
RowsByStatement = defaultdict[str, list[Row]]
"""The rows of one commit, by the statement that writes them."""

# To ask a member of an enum for its value takes longer than to look it up.
STATES = {state: state.value for state in ExecutionState}

_NONE: Sequence[Row] = ()

_NUMBER = re.compile(r"\d+")


def put_rows(live: Live, owner: str | None, batch: RowsByStatement) -> Sequence[Row]:
    """Put what the next commit writes for this execution into the batch; from then on it counts as written.

    The rows of its runs are given back. If a row cannot be made, none is put.
    """
    x, written, events = live.execution, live.written, live.events
    rows: Rows = []
    statement, runs = "insert_run", _NONE
    if events and (first_seq := x.seq - len(events) + 1) <= written.seq:
        # Projected before, by an engine that did not hear of it: only what follows is new.
        live.events = events = events[written.seq + 1 - first_seq :]
        first_seq = written.seq + 1
    if events:
        entry, seal = log.sealed(first_seq, events, written.seal)
        live.stored += len(entry)
        if NAMES_BLOB in entry or NAMES_FILE in entry or len(entry) > INLINE_LIMIT or live.stored > LITTLE:
            _look_closer(live, entry, rows)
        # Of one whose nodes have only started and succeeded, no run was written before its end.
        if (first_runs := live.ledger.add(events)) is not None:
            runs = first_runs
        else:
            statement, runs = "upsert_run", _runs(live, rows)
    if x.is_ended or x.state is not written.state:
        _put_execution(live, rows)
    # As long as it runs, its row says the same again and again.
    if not x.has_slot or written.live != (owner, None, True, live.has_key):
        _put_live(live, owner, rows)
    if written.queued is not None or not x.has_slot:
        _put_queue(live, rows)
    if written.event_waits:
        _drop_event_waits(live, rows)
    if live.rows:
        rows += live.rows
        live.rows = []
    if events:
        batch["insert_log"].append((live.id, first_seq, entry))
        written.seal, written.seq = seal, x.seq
    if runs:
        batch[statement] += runs
    for name, row in rows:
        batch[name].append(row)
    return runs


def _look_closer(live: Live, entry: bytes, rows: Rows) -> None:
    """The entry is long, or names large values, or comes after many."""
    live.stored -= len(entry)
    named = named_in(entry)
    count(live, len(entry), live.events if named else ())
    if named:
        live.has_large, live.is_plain = True, False
        rows += [("insert_blob_reference", (digest, live.id)) for digest in named]


def _put_execution(live: Live, rows: Rows) -> None:
    x, written = live.execution, live.written
    state, started_at = STATES[x.state], x.started_at
    row = (state, started_at, x.now, _error(live)) if x.is_ended else (state, started_at, None, None)
    if written.execution is None:
        rows.append(("insert_execution", _accepted(live, state, started_at)))
        written.execution = (state, started_at, None, None)
    if row != written.execution:
        rows.append(("set_execution", (*row, live.id)))
    written.execution, written.state = row, x.state


def _accepted(live: Live, state: str, started_at: int | None) -> Row:
    accepted = live.accepted
    parent = accepted.parent
    place = (None, None, None, None) if parent is None else (parent.execution, parent.node, parent.item, parent.attempt)
    # A `NewExecution`, as a plain tuple: one is made for every start.
    return (
        live.id, accepted.workspace, accepted.workflow, accepted.version, state, accepted.trigger.value, *place,
        accepted.concurrency_key, accepted.at, started_at, live.trace_id,
    )  # fmt: skip


def _error(live: Live) -> str | None:
    """Why an execution that is over has failed, if it has."""
    if live.events:
        last = live.events[-1]
        return last.error if isinstance(last, ExecutionFailed | ExecutionTimedOut) else None
    return live.written.execution[3] if live.written.execution else None


def _put_live(live: Live, owner: str | None, rows: Rows) -> None:
    x, written = live.execution, live.written
    if x.is_ended:
        if written.live is not None:
            rows.append(("delete_live", (live.id,)))
        if live.offered:
            rows.append(("delete_offers", (live.id,)))
        written.live = None
        return
    # The claim takes the key; one that was told something before it could begin waits again, and holds nothing.
    has_key = live.has_key if x.is_started else 0
    row = (owner, None if x.has_slot else x.wake_at, int(x.has_slot), has_key)
    if written.live is None:
        accepted = live.accepted
        about = (accepted.concurrency_key, accepted.priority)
        rows.append(("insert_live", (live.id, accepted.workspace, owner, 1, x.seq, *row[1:], *about)))
    elif any(type(event) is ExecutionReopened for event in live.events):
        rows.append(("reopen_live", (owner, x.seq, *row[1:], live.accepted.priority, live.id)))
    elif row != written.live:
        rows.append(("update_live", (owner, x.seq, *row[1:], live.id)))
    elif owner is None and live.events:
        # A claimer goes by the number of its events, and may just have claimed it: the rest is left alone.
        rows.append(("count_live", (x.seq, live.id)))
    written.live = row


def _put_queue(live: Live, rows: Rows) -> None:
    """An execution is in the queue exactly while it needs a slot."""
    x, written = live.execution, live.written
    queued = "PENDING" if not x.is_ended and x.needs_slot else None
    if queued == written.queued:
        return
    if queued is not None:
        accepted = live.accepted
        is_new = int(x.started_at is None and accepted.parent is None)
        rows.append(("insert_queue", (live.id, accepted.workspace, "PENDING", accepted.priority, is_new, x.now, x.now)))
    else:
        rows.append(("delete_queue", (live.id,)))
    written.queued = queued


def _runs(live: Live, rows: Rows) -> list[Row]:
    """The rows of runs these events change; those of dead letters and waits are put with the others."""
    runs, letters = live.ledger.take()
    made: list[DeadLetter] = []
    for letter in letters:
        if letter.resolution is Resolution.PENDING:
            rows.append(("upsert_dead_letter", _letter(live, letter)))
            made.append(_made(letter))
        else:
            resolved = (letter.resolution.value, letter.resolved, letter.by, None, letter.id)
            rows.append(("resolve_dead_letter", resolved))
    live.failures = in_order(live.events, made)
    _put_event_waits(live, rows)
    # What is under way is in the log; a row is for what ended, or waits where others must see it.
    return [_run(live, run) for run in runs if run.finished is not None or run.state is RunState.WAITING]


def _put_event_waits(live: Live, rows: Rows) -> None:
    """Those who begin to wait for what others bring about can be found by them."""
    for event in live.events:
        if type(event) is RunWaiting and (waits_for := subject_of(event.wait)) is not None:
            item = NO_ITEM if event.item is None else event.item
            about = (event.attempt, live.accepted.workspace, *waits_for)
            rows.append(("insert_event_wait", (live.id, event.node, item, *about)))
            live.written.event_waits[event.node, item] = None


def _drop_event_waits(live: Live, rows: Rows) -> None:
    for node, item in list(live.written.event_waits):
        work = live.execution.work(node, None if item == NO_ITEM else item)
        if work is None or work.phase is not Phase.WAITING:
            rows.append(("delete_event_wait", (live.id, node, item)))
            del live.written.event_waits[node, item]


def _run(live: Live, run: RunRow) -> Row:
    error = run.error
    return RunEntry(
        id=run.id, execution=live.id, node=run.node, item=run.item, attempt=run.attempt, state=run.state.value,
        worker=None, retry_after=run.retry_after, started_at=run.started, finished_at=run.finished,
        error_type=None if error is None else str(error.type), error=None if error is None else error.message,
    )  # fmt: skip


def _letter(live: Live, letter: LetterRow) -> Row:
    plan = live.execution.plan
    node = plan.definition.nodes[plan.index[letter.node]]
    accepted, is_blob = live.accepted, isinstance(letter.inputs, Blob)
    fingerprint = content_hash([accepted.workflow, letter.node, str(letter.type), _shape(letter.reason)])[:16]
    inputs = _json(letter.inputs)
    return DeadLetterEntry(
        id=letter.id, workspace=accepted.workspace, run=letter.run, execution=live.id, workflow=accepted.workflow,
        node=letter.node, item=letter.item, attempt=letter.attempt, failure_type=str(letter.type),
        error_type=str(letter.error_type), reason=letter.reason, fingerprint=fingerprint,
        inputs=None if is_blob else inputs, config=_json(node), created_at=letter.created,
        resolution=str(letter.resolution), resolved_at=None, reviewed_by=None, inputs_blob=inputs if is_blob else None,
    )  # fmt: skip


def _made(letter: LetterRow) -> DeadLetter:
    about = (letter.id, letter.node, letter.item, letter.attempt)
    return DeadLetter(*about, str(letter.type), str(letter.error_type), letter.reason)


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _shape(reason: str) -> str:
    """A message without its numbers, so that the same trouble with other orders is one group."""
    return _NUMBER.sub("#", reason)
