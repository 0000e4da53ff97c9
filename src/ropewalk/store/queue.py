"""The queue: which executions wait for a slot, and which is next.

A claim takes only what has a slot and its key, so the limits are exact. Workspaces get turns: the room is shared out
evenly among those that wait, beginning after the one served last.
"""

from collections.abc import Callable
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.store.access import Reader, Transaction, json_list

CANDIDATES: Final = 4
"""How many waiting workspaces one claim looks at, or as many as it could serve; the next begins after these."""


def _anyone(execution: str) -> bool:
    """Every execution may be claimed."""
    return True


class QueueEntry(Struct, frozen=True):
    """An accepted start, or an execution that goes on; its id is the execution's."""

    id: str
    workspace: str
    state: str
    priority: int
    is_new: int
    enqueued_at: int
    not_before: int
    attempts: int
    claimed_by: str | None
    claimed_at: int | None
    error: str | None


class Claimed(Struct, frozen=True):
    """An execution the claimer owns now, with a slot and under this fence; `last_seq` events are in its log."""

    execution: str
    workspace: str
    workflow: str
    version: int
    fence: int
    last_seq: int
    priority: int
    is_new: int
    enqueued_at: int
    attempts: int
    concurrency_key: str | None
    first_entry: bytes | None = None
    has_key: int = 0


class Returned(Struct, frozen=True):
    """Where an entry stands that was claimed and could not be dispatched."""

    state: str
    not_before: int
    attempts: int
    error: str


async def get(reader: Reader, execution: str) -> QueueEntry | None:
    """The entry of this execution, if it is in the queue."""
    row = await reader.fetch_one("get_queue", execution)
    return None if row is None else QueueEntry(*row)


async def any_waiting(reader: Reader, now: int) -> bool:
    """Whether anything could go if it had a slot."""
    return await reader.fetch_one("any_waiting", now) is not None


async def unclaim(tx: Transaction, worker: str, claimed: Claimed, to: Returned) -> None:
    """What was claimed cannot be dispatched; slot and key are free again. Nothing, if another worker has it by now."""
    if await tx.execute("unclaim_live", claimed.execution, worker):
        await tx.execute("return_queue", to.state, to.not_before, to.attempts, to.error, claimed.execution)


async def claim(
    tx: Transaction, worker: str, now: int, limit: int, *, after: str = "", may: Callable[[str], bool] = _anyone
) -> tuple[list[Claimed], str]:
    """Gives the worker up to `limit` executions: ownership, slot and key at once; and the last workspace looked at.

    `after` is the one looked at last, so that a small limit reaches each in turn; no workspace is left: "".
    Those that the worker `may` not have now wait for the next claim.
    """
    offers, last = await _offers(tx, now, limit, after, may)
    taken = _in_turns(offers, limit)
    if not taken:
        return [], last
    free = [entry.execution for entry in taken if entry.concurrency_key is None]
    if free:
        await tx.execute("claim_live", json_list(free), worker)
    await tx.execute("claim_queue", json_list(entry.execution for entry in taken), worker, now)
    return [entry if entry.concurrency_key is None else await _with_key(tx, worker, entry) for entry in taken], last


async def _with_key(tx: Transaction, worker: str, entry: Claimed) -> Claimed:
    """The same with its key."""
    row = await tx.fetch_one("claim_keyed_live", worker, entry.execution)
    return replace(entry, has_key=0 if row is None else row[0])


async def _offers(
    tx: Transaction, now: int, limit: int, after: str, may: Callable[[str], bool]
) -> tuple[list[list[Claimed]], str]:
    """What each workspace has to start, for as many workspaces as can be served."""
    offers: list[list[Claimed]] = []
    last = ""
    for last, slots in await tx.fetch("lock_waiting_workspaces", now, after, max(limit, CANDIDATES)):
        if offer := [entry for entry in await _offer(tx, last, slots, now, limit) if may(entry.execution)]:
            offers.append(offer)
        if len(offers) == limit:
            break
    return offers, last


async def _offer(tx: Transaction, workspace: str, slots: int | None, now: int, limit: int) -> list[Claimed]:
    """What of one workspace may start now, in order: as many as it has slots, one per key."""
    room = limit if slots is None else min(limit, slots - await slots_taken(tx, workspace))
    if room <= 0:
        return []
    waiting = [Claimed(*row) for row in await tx.fetch("claimable", workspace, now, room)]
    first: dict[str | int, Claimed] = {}
    for place, entry in enumerate(waiting):
        # An entry without a key stands for itself.
        first.setdefault(place if entry.concurrency_key is None else entry.concurrency_key, entry)
    # The fence as it will be once the entry is taken.
    return [replace(entry, fence=entry.fence + 1) for entry in first.values()]


async def slots_taken(reader: Reader, workspace: str) -> int:
    """How many slots of a workspace are in use."""
    row = await reader.fetch_one("count_slots", workspace)
    return 0 if row is None else row[0]


def _in_turns(offers: list[list[Claimed]], limit: int) -> list[Claimed]:
    """One of each workspace, then the next of each, and so on."""
    longest = max(map(len, offers), default=0)
    dealt = (offer[place] for place in range(longest) for offer in offers if place < len(offer))
    return list(islice(dealt, limit))
