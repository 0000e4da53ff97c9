"""Removing what is old: executions that ended long ago with everything that speaks of them, then what nothing uses.

Ids have the time of acceptance in them, so the oldest executions are found by walking ids from the beginning with a
cursor; nothing is indexed for it, and an execution's own commits cost no more than without. Children go before their
parents: reopening a child needs its parent, and so on up. But not while anything keeps what is above them: reopening
a parent comes back to its children, and what they have done must not be done again.
"""

from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

from ropewalk.core.duration import DAY, HOUR
from ropewalk.core.events import Blob
from ropewalk.store import files, idempotency
from ropewalk.store.access import Reader, Transaction
from ropewalk.store.blobs import record
from ropewalk.store.ids import first_id

HELD: Final = HOUR
"""How long an execution stays after a caller set out to reopen it, or told it something."""

RELEASED: Final = DAY
"""How long a blob is kept after nothing names it any more."""

EXECUTIONS: Final = "executions"
KEYS: Final = "keys"
AUDIT: Final = "audit"
"""What is removed and leaves a note of up to when: a check of the store would call it missing otherwise."""

MOST_EVENTS: Final = 50_000
"""One step removes logs of no more events together, unless a single one is longer."""

_PAGE: Final = 500
_OF_EXECUTION: Final = (
    "delete_offers", "delete_suspicion", "remove_log", "remove_runs", "remove_dead_letters", "remove_inbox",
    "remove_event_waits",
    "delete_queue", "remove_execution",
)  # fmt: skip


@runtime_checkable
class RemovableBlobs(Protocol):
    """Where values can be removed again. Blobs of a store without this are kept."""

    async def remove(self, tx: Transaction, digest: str) -> bool:
        """The value goes together with its row; false if a worker has just written or found it."""


class Cutoffs(Struct, frozen=True, kw_only=True):
    """The moments before which things are old."""

    now: int
    executions: int
    letters: int
    blobs: int


async def hold(tx: Transaction, execution: str, now: int) -> bool:
    """Keeps the execution for as long as reopening it may take; false if it is gone."""
    return await tx.execute("hold_execution", now + HELD, execution) == 1


async def forget_holds(tx: Transaction, now: int) -> None:
    """Forgets callers who set out to reopen something long ago: they have done so or never will."""
    await tx.execute("forget_holds", now)


async def note(tx: Transaction, what: str, before: int) -> None:
    """What was there before then may be gone; noted in the audit log, of no workspace."""
    await tx.execute("note_forgotten", f"forgot {what}", before, what)


async def forgotten(reader: Reader) -> dict[str, int]:
    """Up to when what was removed."""
    return dict(await reader.fetch("forgotten"))


# Executions


async def remove_executions(tx: Transaction, after: str, cut: Cutoffs, limit: int) -> tuple[list[str], str | None]:
    """Removes what nothing keeps of the next `limit` old executions; which, and where to go on (None: at the end).

    Locked first, judged in a second statement: what the first one waited for is seen only by the next.
    """
    locked = [row[0] for row in await tx.fetch("lock_old_executions", after, _horizon(cut), cut.executions, limit)]
    if not locked:
        return [], None
    ours = frozenset(locked)
    removable = [row for row in await _removable(tx, after, locked[-1], cut) if row[0] in ours]
    chosen = _light_enough(removable)
    await _remove(tx, chosen, cut)
    if len(chosen) < len(removable):
        return chosen, chosen[-1]
    return chosen, locked[-1] if len(locked) == limit else None


async def count_executions(reader: Reader, cut: Cutoffs) -> int:
    """How many executions nothing keeps; those with children do not count yet."""
    found, after = 0, ""
    while page := await reader.fetch("old_executions", after, _horizon(cut), cut.executions, _PAGE):
        found += len(await _removable(reader, after, page[-1][0], cut))
        after = page[-1][0]
    return found


async def _removable(reader: Reader, after: str, last: str, cut: Cutoffs) -> list[tuple[str, int]]:
    told = cut.now - HELD
    rows = await reader.fetch("removable_executions", after, last, cut.executions, cut.letters, cut.now, told)
    return [(execution, events) for execution, events in rows]


def _light_enough(removable: list[tuple[str, int]]) -> list[str]:
    """As many as one step can take, at least one."""
    total = 0
    chosen: list[str] = []
    for execution, events in removable:
        total += events
        if chosen and total > MOST_EVENTS:
            break
        chosen.append(execution)
    return chosen


async def _remove(tx: Transaction, executions: list[str], cut: Cutoffs) -> None:
    if not executions:
        return
    now = cut.now
    await note(tx, EXECUTIONS, cut.executions)
    # A rerun may be about to take a blob over: it has read the log, and not yet written its own.
    await tx.execute_many("release_blobs", [(now + RELEASED, execution) for execution in executions])
    for statement in _OF_EXECUTION:
        await tx.execute_many(statement, [(execution,) for execution in executions])


def _horizon(cut: Cutoffs) -> str:
    """What was accepted later cannot have ended before."""
    return first_id(cut.executions)


# The rest


async def forget_keys(tx: Transaction, now: int, limit: int) -> int:
    """At most `limit` answers to idempotency keys older than a day go; how many did."""
    count = await idempotency.forget_expired(tx, now, limit)
    if count:
        await note(tx, KEYS, now - idempotency.KEPT)
    return count


async def forget_letters(tx: Transaction, before: int, limit: int) -> int:
    """At most `limit` dead letters that were requeued or fixed before then go; how many did."""
    return await tx.execute("forget_dead_letters", before, limit)


async def forget_audit(tx: Transaction, before: int, limit: int) -> int:
    """At most `limit` entries of the audit log older than that go; how many did."""
    count = await tx.execute("forget_audit", first_id(before), before, limit)
    if count:
        await note(tx, AUDIT, before)
    return count


async def count(reader: Reader, statement: str, before: int) -> int:
    """How many rows one of the counting statements finds."""
    row = await reader.fetch_one(statement, before)
    return 0 if row is None else row[0]


async def remove_blobs(
    tx: Transaction, blobs: RemovableBlobs, after: str, cut: Cutoffs, limit: int
) -> tuple[int, str | None]:
    """Removes what nothing names of the next `limit` blobs; how many, and where to go on (None: at the end)."""
    await tx.execute("forget_blob_references", cut.now, limit)
    page = await tx.fetch("walk_blobs", after, cut.blobs, limit)
    removed = 0
    for digest, size, is_unused in page:
        if is_unused:
            removed += await _remove_blob(tx, blobs, Blob(digest, size), cut)
    return removed, page[-1][0] if len(page) == limit else None


async def _remove_blob(tx: Transaction, blobs: RemovableBlobs, blob: Blob, cut: Cutoffs) -> bool:
    """The row first: a writer of the same value waits for it, and finds either both or neither."""
    if await tx.execute("remove_blob", blob.hash, cut.blobs) == 0:
        return False
    if await blobs.remove(tx, blob.hash):
        await files.forget(tx, blob.hash)
        return True
    await record(tx, blob, cut.now)
    return False
