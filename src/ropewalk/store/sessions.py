"""Sessions: who came in by a browser, under the hash of what its cookie says."""

from msgspec import Struct

from ropewalk.store.access import Reader, Transaction


class Session(Struct, frozen=True):
    """A person who has logged in; `actor` is JSON."""

    hash: str
    actor: str
    csrf_hash: str
    created_at: int
    expires_at: int


async def insert(tx: Transaction, session: Session) -> None:
    """A person logged in."""
    about = (session.hash, session.actor, session.csrf_hash)
    await tx.execute("insert_session", *about, session.created_at, session.expires_at)


async def get(reader: Reader, digest: str, now: int) -> Session | None:
    """The session, unless it is over."""
    row = await reader.fetch_one("get_session", digest, now)
    return None if row is None else Session(*row)


async def remove(tx: Transaction, digest: str) -> bool:
    """It is over; whether it was not before."""
    return await tx.execute("delete_session", digest) == 1


async def forget_expired(tx: Transaction, now: int, limit: int) -> int:
    """At most `limit` of those that are over go; how many did."""
    return await tx.execute("forget_sessions", now, limit)
