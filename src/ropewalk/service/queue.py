"""The queue as people read it: where an accepted start stands."""

from typing import Any

from ropewalk.core import log
from ropewalk.core.errors import NotFound, reading_of
from ropewalk.core.instant import moment, rfc3339
from ropewalk.core.state import ExecutionState, QueueState
from ropewalk.store import executions, queue
from ropewalk.store import explain as stored
from ropewalk.store import log as stored_log
from ropewalk.store.access import Reader

Json = dict[str, Any]
DONE = "DONE"
"""The state of an item that is gone because its execution ended well, or was cancelled."""


async def queue_item(reader: Reader, workspace: str, execution: str) -> Json:
    """One item of a workspace's queue, by the id it shares with its execution; `position` is 1 for the next.

    Position and number of those waiting are null for an item that does not wait, or beyond what is counted.
    """
    row = await executions.get(reader, workspace, execution)
    if row is None:
        raise NotFound(f"there is no queue item {execution}")
    entry = await queue.get(reader, execution)
    found = await _gone(reader, row) if entry is None else await _queued(reader, entry)
    return {"id": execution, "executionId": execution, "executionState": row.state, **found}


async def _queued(reader: Reader, entry: queue.QueueEntry) -> Json:
    is_pending = entry.state == QueueState.PENDING
    place = await stored.place(reader, entry) if is_pending else None
    return {
        "state": entry.state,
        "position": None if place is None else place.position,
        "waiting": None if place is None else place.total,
        "priority": entry.priority,
        "enqueuedAt": rfc3339(entry.enqueued_at),
        "notBefore": rfc3339(entry.not_before) if is_pending else None,
        "attempts": entry.attempts,
        "claimedBy": entry.claimed_by,
        "claimedAt": moment(entry.claimed_at),
        "error": entry.error,
    }


async def _gone(reader: Reader, row: executions.Execution) -> Json:
    """What is known of an item whose row went with its claim or with the end; how often it was tried is not."""
    entries = await stored_log.entries(reader, row.id, limit=1)
    with reading_of(row.id):
        accepted = log.acceptance(list(log.decode_all(entry for _, entry in entries)))
    return {
        "state": _state(ExecutionState(row.state)),
        "position": None,
        "waiting": None,
        "priority": accepted.priority,
        "enqueuedAt": rfc3339(row.accepted_at),
        "notBefore": None,
        "attempts": None,
        "claimedBy": None,
        "claimedAt": None,
        "error": row.error,
    }


def _state(execution: ExecutionState) -> str:
    """An item is dispatched from its claim to the end of its execution, whenever its row is taken away."""
    if not execution.is_ended:
        return QueueState.DISPATCHED.value
    return QueueState.FAILED.value if execution.is_reopenable else DONE
