"""Idempotency keys: the same request under the same key gets the same answer for a day."""

from typing import Final

from ropewalk.core.errors import Conflict
from ropewalk.store.access import Reader, Transaction
from ropewalk.store.rows import IdempotencyEntry

KEPT: Final = 24 * 3600 * 1_000_000


async def answer(reader: Reader, workspace: str, route: str, key: str, body_hash: str, now: int) -> str | None:
    """The answer this request got before, if it did; Conflict if the key came with another body."""
    row = await reader.fetch_one("get_idempotency", workspace, route, key, now - KEPT)
    if row is None:
        return None
    if row[0] != body_hash:
        raise Conflict(f"the idempotency key {key!r} was used for another request: use a new one")
    return str(row[1])


async def is_free(reader: Reader, workspace: str, route: str, key: str) -> bool:
    """Whether the key has no answer, not even one that has expired."""
    return await reader.fetch_one("get_idempotency", workspace, route, key, -1) is None


async def remember(tx: Transaction, entry: IdempotencyEntry) -> None:
    """The key has its answer for a day; Conflict if it has one already."""
    await tx.execute("delete_idempotency", entry.workspace, entry.route, entry.key, entry.created_at - KEPT)
    await tx.execute("insert_idempotency", *entry)


async def forget_expired(tx: Transaction, now: int, limit: int) -> int:
    """At most `limit` answers older than a day go; how many did."""
    return await tx.execute("forget_idempotency", now - KEPT, limit)
