"""API keys: `rw_<id>_<secret>`, 256 random bits of which only the hash is kept.

A key that was looked up is believed for a few seconds, so that a busy caller costs no read per request; a revoked one
is out within that time.
"""

import hashlib
import hmac
import secrets
from typing import Final

import msgspec
import uuid_utils
from msgspec import Struct

from ropewalk.access.actor import Actor
from ropewalk.access.rights import Right, Role
from ropewalk.core.duration import SECOND
from ropewalk.store import audit, keys
from ropewalk.store.access import Store, Transaction
from ropewalk.store.rows import AuditEntry

BELIEVED: Final = 4 * SECOND
USE_NOTED_EVERY: Final = 60 * SECOND
MOST_BELIEVED: Final = 10_000
PREFIX: Final = "rw_"


class Wanted(Struct, frozen=True, kw_only=True):
    """A key to be made."""

    workspace: str
    name: str
    role: Role
    scopes: tuple[Right, ...] | None = None
    pools: tuple[str, ...] | None = None
    is_root: bool = False
    expires_at: int | None = None


async def make(tx: Transaction, wanted: Wanted, by: str, now: int) -> tuple[str, str]:
    """A new key: its id, and the token that nobody can read again."""
    # No hyphens: the id stands between the underscores of the token.
    new_id, secret = uuid_utils.uuid7().hex, secrets.token_urlsafe(32)
    row = keys.NewKey(
        id=new_id,
        workspace=wanted.workspace,
        name=wanted.name,
        hash=_hash(secret),
        role=wanted.role,
        scopes=_json(wanted.scopes),
        pools=_json(wanted.pools),
        is_root=int(wanted.is_root),
        created_at=now,
        created_by=by,
        expires_at=wanted.expires_at,
    )
    await keys.insert(tx, row)
    about = (wanted.workspace, by, "create-key", new_id)
    await audit.append(tx, AuditEntry(str(uuid_utils.uuid7()), now, *about, None, wanted.role, wanted.name))
    return new_id, f"{PREFIX}{new_id}_{secret}"


class KeyRing:
    """Tells whose a token is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._believed: dict[str, tuple[int, Actor]] = {}
        self._noted: dict[str, int] = {}

    async def actor(self, token: str) -> Actor | None:
        """Whose key this is; None if it opens nothing (any more)."""
        now, digest = self._store.now(), _hash(token)
        known = self._believed.get(digest)
        if known is not None and now < known[0]:
            return known[1]
        found = await self._look_up(token, now)
        if found is not None:
            self._believe(digest, now, found)
        return found

    async def _look_up(self, token: str, now: int) -> Actor | None:
        key_id, _, secret = token.removeprefix(PREFIX).partition("_")
        if not token.startswith(PREFIX) or not secret:
            return None
        key = await keys.get(self._store, key_id)
        # Compared also where there is none, so that the time taken tells nothing.
        is_right = hmac.compare_digest(_hash(secret), "" if key is None else key.hash)
        if key is None or not is_right or key.revoked_at is not None:
            return None
        if key.expires_at is not None and key.expires_at <= now:
            return None
        await self._note_use(key.id, now)
        return _actor(key)

    def _believe(self, digest: str, now: int, actor: Actor) -> None:
        if len(self._believed) >= MOST_BELIEVED:
            self._believed.clear()
        self._believed[digest] = (now + BELIEVED, actor)

    async def _note_use(self, key: str, now: int) -> None:
        """Once a minute is often enough to tell an idle key from a busy one."""
        if now - self._noted.get(key, 0) < USE_NOTED_EVERY:
            return
        self._noted[key] = now
        async with self._store.transaction() as tx:
            await keys.used(tx, key, now)


def _actor(key: keys.ApiKey) -> Actor:
    return Actor(
        subject=f"key:{key.id}",
        home=key.workspace,
        role=Role(key.role),
        scopes=None if key.scopes is None else frozenset(msgspec.json.decode(key.scopes, type=list[Right])),
        pools=None if key.pools is None else frozenset(msgspec.json.decode(key.pools, type=list[str])),
        is_root=bool(key.is_root),
    )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _json(values: tuple[str, ...] | None) -> str | None:
    return None if values is None else msgspec.json.encode(values).decode()
