"""The judgement over a store that nobody writes any more: the checker's over every log, and the tables beside it."""

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ropewalk.checker import Effect, History, check, check_together
from ropewalk.core import log
from ropewalk.core.events import Blob
from ropewalk.core.execution import Execution
from ropewalk.core.rows import LetterRow, Rows, RunRow, rows
from ropewalk.core.signals import Due
from ropewalk.core.state import RunState
from ropewalk.engines.native.followers import TERMINAL
from ropewalk.engines.native.live import blobs_of
from ropewalk.service.reading import Recorded, recorded
from ropewalk.store import dlq, executions, runs
from ropewalk.store.blobs import BlobFiles
from ropewalk.store.sqlite import SqliteReader

Table = dict[str, Any]


async def judge(db: str, effects: Sequence[Effect] = (), limits: Mapping[str, int] | None = None) -> list[str]:
    """Everything that is wrong with what the store at `db` has."""
    reader = await SqliteReader.open(db)
    try:
        return await _judged(reader, effects, limits or {})
    finally:
        await reader.close()


async def _judged(reader: SqliteReader, effects: Sequence[Effect], limits: Mapping[str, int]) -> list[str]:
    wrong: list[str] = []
    histories: list[History] = []
    for execution in every_execution(reader.path):
        story = await recorded(reader, execution)
        histories.append(await history(reader, story, effects))
        found = check(histories[-1])
        wrong += map(str, found)
        # A log that breaks the rules need not be foldable.
        wrong += [] if found else [f"{execution}: {each}" async for each in _differences(reader, story)]
    wrong += map(str, check_together(histories, limits))
    return wrong + list(_left_behind(reader.path))


def every_execution(db: str) -> list[str]:
    return [row[0] for row in ask(db, "select id from execution order by id")]


def ask(db: str, question: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(db)
    try:
        return connection.execute(question).fetchall()
    finally:
        connection.close()


async def history(reader: SqliteReader, story: Recorded, effects: Sequence[Effect]) -> History:
    """What the checker is to judge; the numbers are those the events were stored under."""
    seqs: list[int] = []
    for first, entry in await reader.fetch("log_entries", story.id, 1, 2**62):
        seqs += range(first, first + len(log.decode(entry)[1]))
    mine = [effect for effect in effects if effect.execution == story.id]
    return History(story.plan, story.events, seqs, mine, is_quiescent=type(story.events[-1]) in TERMINAL)


# The tables, against the fold of the log


async def _differences(reader: SqliteReader, story: Recorded) -> Any:
    known, execution = rows(story.plan, story.events), story.folded()
    kept = await executions.load(reader, story.id)
    for each in _unequal("execution", _execution(known), msgspec.structs.asdict(kept) if kept else {}):
        yield each
    for each in await _runs(reader, story.id, known):
        yield each
    for each in await _letters(reader, story.id, known):
        yield each
    for each in _places(reader.path, execution, story.id):
        yield each
    for each in _blobs(reader.path, execution):
        yield each


def _unequal(name: str, made: Table, kept: Table) -> Iterator[str]:
    for column, value in made.items():
        if kept.get(column, "nothing") != value:
            yield f"{name}.{column} is kept as {kept.get(column, 'nothing')!r}, the log makes it {value!r}"


def _execution(known: Rows) -> Table:
    row = known.execution
    assert row is not None
    parent = row.parent
    return {
        "id": row.id,
        "workspace": row.workspace,
        "workflow": row.workflow,
        "version": row.version,
        "state": str(row.state),
        "trigger": str(row.trigger),
        "parent": parent and parent.execution,
        "parent_node": parent and parent.node,
        "parent_item": parent and parent.item,
        "parent_attempt": parent and parent.attempt,
        "concurrency_key": row.concurrency_key,
        "accepted_at": row.accepted,
        "started_at": row.started,
        "finished_at": row.finished,
        "error": row.error,
    }


async def _runs(reader: SqliteReader, execution: str, known: Rows) -> list[str]:
    """What ended or waits has its row; what is under way is the log's alone, whatever row it left earlier."""
    kept = {run.id: msgspec.structs.asdict(run) for run in await runs.listed(reader, execution, limit=100_000)}
    wrong: list[str] = []
    for run in known.runs:
        row = kept.pop(run.id, {})
        if run.finished is not None or run.state is RunState.WAITING:
            wrong += _unequal(f"run {run.node}[{run.item}] {run.attempt}", _run(run), row)
    return wrong + [f"run {row['node']} {row['attempt']} is kept and not in the log" for row in kept.values()]


def _run(run: RunRow) -> Table:
    return {
        "node": run.node,
        "item": run.item,
        "attempt": run.attempt,
        "state": str(run.state),
        "started_at": run.started,
        "finished_at": run.finished,
        "retry_after": run.retry_after,
        "error_type": run.error and str(run.error.type),
        "error": run.error and run.error.message,
    }


async def _letters(reader: SqliteReader, execution: str, known: Rows) -> list[str]:
    kept = {letter.id: letter for letter in await dlq.of_execution(reader, execution, limit=100_000)}
    wrong: list[str] = []
    for letter in known.letters:
        row = kept.pop(letter.id, None)
        # Discarding is no event: the log does not know of it.
        is_discarded = row is not None and row.resolution == "DISCARDED"
        made = _letter(letter) | ({"resolution": "DISCARDED"} if is_discarded else _resolution(letter))
        wrong += _unequal(f"dead letter of {letter.node}", made, msgspec.structs.asdict(row) if row else {})
    return wrong + [f"dead letter of {letter.node} is kept and not in the log" for letter in kept.values()]


def _letter(letter: LetterRow) -> Table:
    return {
        "run": letter.run,
        "node": letter.node,
        "item": letter.item,
        "attempt": letter.attempt,
        "failure_type": str(letter.type),
        "error_type": str(letter.error_type),
        "reason": letter.reason,
        "created_at": letter.created,
        "inputs": None if letter.inputs is None else msgspec.json.encode(letter.inputs).decode(),
    }


def _resolution(letter: LetterRow) -> Table:
    return {"resolution": str(letter.resolution), "resolved_at": letter.resolved, "reviewed_by": letter.by}


def _places(db: str, x: Execution, execution: str) -> Iterator[str]:
    """What is not over is among the living, and in the queue exactly while it needs a slot."""
    # A retry that is due is back in line without an event of its own.
    x.handle(Due(), x.now)
    live = ask(db, f"select has_slot, wake_at, owner from live where execution = '{execution}'")
    queued = ask(db, f"select state from queue where id = '{execution}'")
    if bool(live) == x.is_ended:
        yield f"it is {x.state} and has {len(live)} rows among the living"
    elif live and bool(live[0][0]) != x.has_slot:
        yield f"it {'has' if x.has_slot else 'has no'} slot and its row says otherwise"
    elif live and not x.has_slot and live[0][1:] != (x.wake_at, None):
        yield f"it is to wake at {x.wake_at}, and its row says {live[0][1:]}"
    if bool(queued) != (x.needs_slot and not x.is_ended):
        yield f"it {'needs a' if x.needs_slot else 'needs no'} slot and is {len(queued)} times in the queue"


def _blobs(db: str, x: Execution) -> Iterator[str]:
    files, known = BlobFiles(f"{db}.blobs"), dict(ask(db, "select hash, size from blob"))
    for blob in (blob for output in x.outputs.values() for blob in blobs_of(output)):
        if known.get(blob.hash) != blob.size or not _is_whole(files, blob):
            yield f"I-39 blob {blob.hash} is not what the log says"


def _is_whole(files: BlobFiles, blob: Blob) -> bool:
    with open(f"{files.root}/{blob.hash[:2]}/{blob.hash}", "rb") as file:
        content = file.read()
    return len(content) == blob.size and hashlib.sha256(content).hexdigest() == blob.hash


def _left_behind(db: str) -> Iterator[str]:
    """Once everything has ended, nobody is owed a word any more."""
    if not ask(db, "select 1 from live"):
        yield from (f"{row} is still to be told" for row in ask(db, "select execution, signal from inbox"))
    lost = ask(db, "select execution from log where execution not in (select id from execution)")
    yield from (f"{row[0]} has a log and no row" for row in lost)
