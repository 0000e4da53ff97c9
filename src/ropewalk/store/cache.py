"""Cached results: reused for the same inputs and configuration in one workspace until they expire."""

from ropewalk.store.access import Reader, Transaction
from ropewalk.store.rows import CachedResult


async def get(reader: Reader, workspace: str, key: str, now: int) -> CachedResult | None:
    """The result to reuse, if it has not expired."""
    row = await reader.fetch_one("get_cached_result", workspace, key, now)
    return None if row is None else CachedResult(*row)


async def forget_expired(tx: Transaction, now: int, limit: int) -> int:
    """At most `limit` expired results go; how many did."""
    return await tx.execute("forget_cached_results", now, limit)
