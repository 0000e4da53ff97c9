"""API keys: each lets a caller in by a secret, of which only the hash is kept."""

from typing import Final

from msgspec import Struct

from ropewalk.store.access import Reader, Transaction

NEWEST: Final = "~"


class NewKey(Struct, frozen=True, kw_only=True):
    """A key to be kept; `scopes` and `pools` are JSON lists, None for no limit."""

    id: str
    workspace: str
    name: str
    hash: str
    role: str
    scopes: str | None = None
    pools: str | None = None
    is_root: int = 0
    created_at: int
    created_by: str
    expires_at: int | None = None


class ApiKey(Struct, frozen=True):
    """A key as it was kept."""

    id: str
    workspace: str
    name: str
    hash: str
    role: str
    scopes: str | None
    pools: str | None
    is_root: int
    created_at: int
    created_by: str
    expires_at: int | None
    last_used_at: int | None
    revoked_at: int | None


async def insert(tx: Transaction, key: NewKey) -> None:
    """The key opens from now on."""
    fields = (getattr(key, name) for name in NewKey.__struct_fields__)
    await tx.execute("insert_key", *fields)


async def get(reader: Reader, key: str) -> ApiKey | None:
    """The key of this id, revoked and expired ones included."""
    row = await reader.fetch_one("get_key", key)
    return None if row is None else ApiKey(*row)


async def listed(reader: Reader, workspace: str, *, before: str = NEWEST, limit: int = 50) -> list[ApiKey]:
    """The keys of a workspace, newest first; the last one's id is the cursor to go on."""
    return [ApiKey(*row) for row in await reader.fetch("list_keys", workspace, before, limit)]


async def has_any(reader: Reader) -> bool:
    """Whether a key was ever made."""
    return await reader.fetch_one("has_keys") is not None


async def lock_lasting_roots(tx: Transaction) -> list[str]:
    """The root keys that open for ever, kept from other revokers until the end of the transaction."""
    return [row[0] for row in await tx.fetch("lock_lasting_roots")]


async def revoke(tx: Transaction, workspace: str, key: str, now: int) -> bool:
    """The key opens nothing any more; whether it was this call that did it."""
    return await tx.execute("revoke_key", now, workspace, key) == 1


async def used(tx: Transaction, key: str, now: int) -> None:
    """The key was used."""
    await tx.execute("use_key", now, key)
