"""What nodes keep by key: in one workspace and one space of it, until it expires.

A caller that changes a value locks its row first, which is made if there is none: a row that is not there cannot be
locked. A row whose time is over counts as none. A version is the time of the write, so that no version comes twice,
also if the value was removed meanwhile.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ropewalk.core.errors import Unavailable
from ropewalk.store.access import Reader, Transaction

ATTEMPTS: Final = 5
GONE: Final = 0
"""When the time of a value is over that was removed."""


class KeptValue(Struct, frozen=True):
    """A value as JSON, its version, and until when it is kept; None for good."""

    value: str
    version: int
    expires_at: int | None


async def get(reader: Reader, workspace: str, space: str, key: str, now: int) -> KeptValue | None:
    """What is kept under the key, if it has not expired."""
    row = await reader.fetch_one("get_kept_value", workspace, space, key, now)
    return None if row is None else KeptValue(*row)


async def lock(tx: Transaction, workspace: str, space: str, key: str, now: int) -> tuple[KeptValue | None, int]:
    """What is kept under the key, and the version of the next write; no other worker changes it meanwhile."""
    for _ in range(ATTEMPTS):
        await tx.execute("ensure_kept_value", workspace, space, key)
        row = await tx.fetch_one("lock_kept_value", workspace, space, key)
        # A sweep may remove an expired row between the two statements.
        if row is not None:
            found = KeptValue(*row)
            is_there = found.expires_at is None or found.expires_at > now
            return found if is_there else None, max(now, found.version + 1)
    raise Unavailable("the value is removed again and again: try again")


async def put(tx: Transaction, workspace: str, space: str, key: str, value: KeptValue) -> None:
    """Keeps a value in a row that is locked."""
    await tx.execute("set_kept_value", value.value, value.version, value.expires_at, workspace, space, key)


async def claim(tx: Transaction, workspace: str, space: str, keys: Sequence[str], claimer: str, now: int, until: int
                ) -> list[bool]:  # fmt: skip
    """Whether the claimer has each of these keys now: no other had it, or its time was over."""
    # In one order, so that two workers never wait for each other.
    order = sorted(range(len(keys)), key=keys.__getitem__)
    claimed = [False] * len(keys)
    for at in order:
        claimed[at] = await tx.execute("claim_kept_value", workspace, space, keys[at], claimer, now, until) > 0
    return claimed


async def forget_expired(tx: Transaction, now: int, limit: int) -> int:
    """At most `limit` expired values go; how many did."""
    return await tx.execute("forget_kept_values", now, limit)
