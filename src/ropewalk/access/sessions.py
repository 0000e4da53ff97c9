"""Sessions: a browser shows an opaque cookie of which only the hash is kept, and proves with a second secret that a
request is meant.

A session is never more than what opened it: the key behind it is looked up anew, and a person's session ends with the
token that proved who they are.
"""

import hmac
import secrets
from typing import Final

import msgspec
import uuid_utils
from msgspec import Struct

from ropewalk.access.actor import Actor
from ropewalk.access.cache import Cache
from ropewalk.access.granting import SUBJECT
from ropewalk.access.keys import KeyRing, digest
from ropewalk.core.duration import HOUR
from ropewalk.store import audit, sessions
from ropewalk.store.access import Store
from ropewalk.store.rows import AuditEntry

LASTS: Final = 12 * HOUR
FORGOTTEN_AT_ONCE: Final = 100
LONGEST_COOKIE: Final = 64


class Visit(Struct, frozen=True, kw_only=True):
    """A person in a browser. `csrf` is what its unsafe requests have to say."""

    actor: Actor
    csrf: str
    expires_at: int

    def is_meant(self, said: str) -> bool:
        """Whether a request that says this comes from our own pages."""
        return hmac.compare_digest(self.csrf.encode(), said.encode())


class Sessions:
    """Who is in by a browser."""

    def __init__(self, store: Store, keys: KeyRing) -> None:
        self._store = store
        self._keys = keys
        self._cache: Cache[str, Visit] = Cache(store.now)

    async def open(self, actor: Actor) -> tuple[str, Visit]:
        """A new session of this actor: what the cookie says, and the visit."""
        now, cookie = self._store.now(), secrets.token_urlsafe(32)
        ends = now + LASTS if actor.expires_at is None else min(now + LASTS, actor.expires_at)
        visit = Visit(actor=actor, csrf=_csrf(cookie), expires_at=ends)
        row = sessions.Session(digest(cookie), msgspec.json.encode(actor).decode(), digest(visit.csrf), now, ends)
        async with self._store.transaction() as tx:
            await sessions.forget_expired(tx, now, FORGOTTEN_AT_ONCE)
            await sessions.insert(tx, row)
            await audit.append(tx, _entry(actor, "open-session", row.hash, now))
        return cookie, visit

    async def find(self, cookie: str) -> Visit | None:
        """Whose cookie this is; None if the session is over."""
        if len(cookie) > LONGEST_COOKIE:
            return None
        hashed = digest(cookie)
        known = self._cache.get(hashed)
        if known is not None:
            return known
        now, found = self._store.now(), await self._look_up(cookie, hashed)
        if found is not None:
            self._cache.put(hashed, found, now, found.expires_at)
        return found

    def has_known(self, cookie: str) -> bool:
        """Whether this cookie was good once."""
        return self._cache.has_known(digest(cookie))

    async def close(self, cookie: str, actor: Actor) -> bool:
        """The session is over; whether it was not before."""
        hashed, now = digest(cookie), self._store.now()
        async with self._store.transaction() as tx:
            was_open = await sessions.remove(tx, hashed)
            if was_open:
                await audit.append(tx, _entry(actor, "close-session", hashed, now))
        self.forget()
        return was_open

    def forget(self) -> None:
        """Every session is looked up again."""
        self._cache.forget()

    async def _look_up(self, cookie: str, hashed: str) -> Visit | None:
        row = await sessions.get(self._store, hashed, self._store.now())
        csrf = _csrf(cookie)
        if row is None or not hmac.compare_digest(row.csrf_hash, digest(csrf)):
            return None
        actor = await self._still(msgspec.json.decode(row.actor, type=Actor))
        return None if actor is None else Visit(actor=actor, csrf=csrf, expires_at=row.expires_at)

    async def _still(self, actor: Actor) -> Actor | None:
        """The actor as of now: a key that was revoked takes its sessions with it."""
        return await self._keys.of_id(actor.subject.removeprefix(SUBJECT)) if actor.is_key else actor


def _csrf(cookie: str) -> str:
    """Made from the cookie, so that a page that was loaded anew can be told; the cookie cannot be made from it."""
    return hmac.digest(cookie.encode(), b"csrf", "sha256").hex()


def _entry(actor: Actor, verb: str, session: str, now: int) -> AuditEntry:
    # The first digits tell sessions apart; people have no home, so theirs are in no workspace's log.
    return AuditEntry(
        str(uuid_utils.uuid7()), now, actor.home or "", actor.subject, verb, f"session:{session[:12]}", None, None, None
    )
