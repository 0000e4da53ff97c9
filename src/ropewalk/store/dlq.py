"""Dead letters: runs that gave up, kept for a person."""

from typing import Final

from msgspec import Struct

from ropewalk.core.state import Resolution
from ropewalk.store.access import Reader, Transaction
from ropewalk.store.rows import DeadLetterEntry, DeadLetterResolution

_NEWEST: Final = "~"


class DeadLetter(Struct, frozen=True):
    """A run that gave up, why, and with what."""

    id: str
    workspace: str
    run: str
    execution: str
    workflow: str
    node: str
    item: int | None
    attempt: int
    failure_type: str
    error_type: str
    reason: str
    fingerprint: str
    inputs: str | None
    config: str | None
    created_at: int
    resolution: str
    resolved_at: int | None
    reviewed_by: str | None
    notes: str | None


class Group(Struct, frozen=True):
    """Unresolved dead letters that failed alike; the newest speaks for all."""

    fingerprint: str
    count: int
    first_at: int
    last_at: int
    workflow: str
    node: str
    reason: str


async def put(tx: Transaction, letter: DeadLetterEntry) -> None:
    """The dead letter is as it is said here, unless a person has resolved it before."""
    await tx.execute("upsert_dead_letter", *letter)


async def resolve(tx: Transaction, resolution: DeadLetterResolution) -> bool:
    """Resolves a dead letter; false if it was resolved before, so of two who try one does it."""
    return await tx.execute("resolve_dead_letter", *resolution) == 1


async def note(tx: Transaction, workspace: str, letter: str, notes: str | None) -> bool:
    """Keeps what people have to say about it; whether there is such a dead letter."""
    return await tx.execute("note_dead_letter", notes, workspace, letter) == 1


async def get(reader: Reader, workspace: str, letter: str) -> DeadLetter | None:
    """The dead letter of this id, if it is the workspace's."""
    row = await reader.fetch_one("get_dead_letter", workspace, letter)
    return None if row is None else DeadLetter(*row)


async def listed(
    reader: Reader,
    workspace: str,
    *,
    resolution: Resolution = Resolution.PENDING,
    fingerprint: str | None = None,
    before: str = _NEWEST,
    limit: int = 50,
) -> list[DeadLetter]:
    """The dead letters of a workspace, newest first; the last one's id is the cursor to go on."""
    if fingerprint is None:
        rows = await reader.fetch("list_dead_letters", workspace, resolution, before, limit)
    else:
        rows = await reader.fetch("list_alike_dead_letters", workspace, resolution, before, fingerprint, limit)
    return [DeadLetter(*row) for row in rows]


async def of_execution(reader: Reader, execution: str, *, limit: int = 1000) -> list[DeadLetter]:
    """The dead letters of one execution, oldest first."""
    return [DeadLetter(*row) for row in await reader.fetch("list_execution_dead_letters", execution, limit)]


async def groups(reader: Reader, workspace: str, *, limit: int = 50) -> list[Group]:
    """What lies unresolved, gathered by fingerprint, the most frequent first."""
    return [Group(*row) for row in await reader.fetch("dead_letter_groups", workspace, limit)]
