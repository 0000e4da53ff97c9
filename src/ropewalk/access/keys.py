"""API keys: `rw_<id>_<secret>`, 256 random bits of which only the hash is kept.

A key that was looked up is believed for a few seconds, so that a busy caller costs no read per request; a revoked one
is out within that time.
"""

import hashlib
import hmac
import logging
import re
import secrets
from typing import Final

import msgspec
import uuid_utils
from msgspec import Struct

from ropewalk.access.actor import Actor
from ropewalk.access.cache import MOST, Cache
from ropewalk.access.granting import SUBJECT, Giver
from ropewalk.access.rights import NOTHING, Right, Role
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import Conflict, NotFound, Unavailable
from ropewalk.store import audit, keys
from ropewalk.store.access import Store, Transaction
from ropewalk.store.rows import AuditEntry

USE_NOTED_EVERY: Final = 60 * SECOND
PREFIX: Final = "rw_"
_TOKEN: Final = re.compile(r"rw_([0-9a-f]{32})_([A-Za-z0-9_-]{43})")
_log = logging.getLogger("ropewalk.access")


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
    """A new key: its id, and the token, which cannot be read again."""
    # No hyphens: the id stands between the underscores of the token.
    new_id, secret = uuid_utils.uuid7().hex, secrets.token_urlsafe(32)
    row = keys.NewKey(
        id=new_id,
        workspace=wanted.workspace,
        name=wanted.name,
        hash=digest(secret),
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


async def revoke(tx: Transaction, giver: Giver, key: str, now: int) -> keys.ApiKey:
    """The key opens nothing any more. A root key is for root to revoke, and one without end and scopes remains."""
    found = await keys.get(tx, key)
    if found is None or found.workspace != giver.workspace:
        raise NotFound(f"there is no key {key}")
    giver.require(_actor(found).rights_at_home(found.workspace) or NOTHING)
    # Locked: two callers who each revoke one of the last two keys must not both see the other key.
    if found.is_root and await keys.lock_lasting_roots(tx) == [key]:
        raise Conflict("this is the last root key without an end and without scopes: make another one first")
    if not await keys.revoke(tx, giver.workspace, key, now):
        return found
    await audit.append(tx, giver.entry(now, "revoke-key", key, before=found.role, detail=found.name))
    return msgspec.structs.replace(found, revoked_at=now)


class KeyRing:
    """Tells whose a token is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache: Cache[str, Actor] = Cache(store.now)
        self._noted: dict[str, int] = {}

    async def actor(self, token: str) -> Actor | None:
        """Whose key this is; None if it opens nothing (any more)."""
        known = self.believed(token)
        if known is not None:
            return known
        now, found = self._store.now(), await self._look_up(token)
        if found is not None:
            self._cache.put(digest(token), found, now, found.expires_at)
        return found

    def believed(self, token: str) -> Actor | None:
        """Whose key this was a moment ago."""
        return self._cache.get(digest(token))

    def has_known(self, token: str) -> bool:
        """Whether this token was good once."""
        return self._cache.has_known(digest(token))

    async def of_id(self, key_id: str) -> Actor | None:
        """Who comes by this key, as of now; None if it opens nothing any more."""
        key = await keys.get(self._store, key_id)
        return None if key is None or not _is_good(key, self._store.now()) else _actor(key)

    def forget(self) -> None:
        """Every key is looked up again."""
        self._cache.forget()

    async def _look_up(self, token: str) -> Actor | None:
        parts = _TOKEN.fullmatch(token)
        if parts is None:
            return None
        now, key = self._store.now(), await keys.get(self._store, parts[1])
        # Compared also where there is none, so that the time taken tells nothing.
        is_right = hmac.compare_digest(digest(parts[2]), "" if key is None else key.hash)
        if key is None or not is_right or not _is_good(key, now):
            return None
        await self._note_use(key.id, now)
        return _actor(key)

    async def _note_use(self, key: str, now: int) -> None:
        """Once a minute is often enough to tell an idle key from a busy one; if it fails, the caller is let in."""
        if now - self._noted.get(key, 0) < USE_NOTED_EVERY:
            return
        if len(self._noted) >= MOST:
            self._noted.clear()
        self._noted[key] = now
        try:
            async with self._store.transaction() as tx:
                await keys.used(tx, key, now)
        except Unavailable as error:
            _log.warning("when the key %s was used cannot be noted for now: %s", key, error)


def _is_good(key: keys.ApiKey, now: int) -> bool:
    return key.revoked_at is None and (key.expires_at is None or now < key.expires_at)


def _actor(key: keys.ApiKey) -> Actor:
    return Actor(
        subject=f"{SUBJECT}{key.id}",
        home=key.workspace,
        role=Role(key.role),
        scopes=None if key.scopes is None else frozenset(msgspec.json.decode(key.scopes, type=list[Right])),
        pools=None if key.pools is None else frozenset(msgspec.json.decode(key.pools, type=list[str])),
        is_root=bool(key.is_root),
        expires_at=key.expires_at,
    )


def digest(secret: str) -> str:
    """What is kept of a secret; it has too many bits to be guessed from this."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _json(values: tuple[str, ...] | None) -> str | None:
    return None if values is None else msgspec.json.encode(values).decode()
