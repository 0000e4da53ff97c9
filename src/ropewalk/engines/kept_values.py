"""What nodes keep by key, in the store of the worker: every change is one transaction, exact across workers."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import isfinite
from typing import Any, Final

import msgspec

from ropewalk.core.canonical import LARGEST_INTEGER
from ropewalk.core.errors import RopewalkError
from ropewalk.engines import once
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.keeping import Change, Condition, Kept
from ropewalk.store import kept_values
from ropewalk.store.access import Store, Transaction
from ropewalk.store.kept_values import GONE, KeptValue

SPACE: Final = "kv"

_changes: Final = msgspec.json.Decoder(Change)
Chosen = Callable[[Kept, int, int], KeptValue | None]
"""What is kept from now on, of what is kept, the version of the next write and the time; None changes nothing."""


class StoredValues:
    """The values in one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, workspace: str, key: str) -> Kept:
        async with _reached():
            return _kept(await kept_values.get(self._store, workspace, SPACE, key, self._store.now()))

    async def put(self, workspace: str, key: str, value: Any, ttl: int | None, condition: Condition, work: str
                  ) -> Change:  # fmt: skip
        text = msgspec.json.encode(value).decode()

        def chosen(kept: Kept, version: int, now: int) -> KeptValue | None:
            return KeptValue(text, version, None if ttl is None else now + ttl) if condition.holds(kept) else None

        return await self._change(workspace, key, work, chosen)

    async def remove(self, workspace: str, key: str, condition: Condition, work: str) -> Change:
        def chosen(kept: Kept, version: int, now: int) -> KeptValue | None:
            return KeptValue("null", version, GONE) if kept.is_there and condition.holds(kept) else None

        return await self._change(workspace, key, work, chosen)

    async def add(self, workspace: str, key: str, amount: float, ttl: int | None, work: str) -> Change:
        def chosen(kept: Kept, version: int, now: int) -> KeptValue | None:
            total = _sum(kept.value if kept.is_there else 0, amount)
            # The time of a counter begins with its first count: what counts per hour starts anew each hour.
            until = kept.expires_at if kept.is_there else None if ttl is None else now + ttl
            return KeptValue(msgspec.json.encode(total).decode(), version, until)

        return await self._change(workspace, key, work, chosen)

    async def claim(self, workspace: str, space: str, keys: list[str], ttl: int, work: str) -> list[bool]:
        async with _reached(), self._store.transaction() as tx:
            now = self._store.now()
            return await kept_values.claim(tx, workspace, space, keys, work, now, now + ttl)

    async def _change(self, workspace: str, key: str, work: str, chosen: Chosen) -> Change:
        async with _reached(), self._store.transaction() as tx:
            now = self._store.now()
            done = await once.lock(tx, workspace, work, now)
            if done.answer is not None:
                return _changes.decode(done.answer)
            change = await self._changed(tx, workspace, key, now, chosen)
            await done.remember(msgspec.json.encode(change).decode())
        return change

    async def _changed(self, tx: Transaction, workspace: str, key: str, now: int, chosen: Chosen) -> Change:
        found, version = await kept_values.lock(tx, workspace, SPACE, key, now)
        kept = _kept(found)
        new = chosen(kept, version, now)
        if new is None:
            return Change(kept, is_made=False)
        await kept_values.put(tx, workspace, SPACE, key, new)
        return Change(Kept() if new.expires_at == GONE else _kept(new), is_made=True)


@asynccontextmanager
async def _reached() -> AsyncIterator[None]:
    """A store that cannot be reached is a failure that may go by."""
    try:
        yield
    except NodeFailure:
        raise
    except RopewalkError as error:
        raise NodeFailure.transient(f"the kept values cannot be reached: {error}") from error


def _kept(found: KeptValue | None) -> Kept:
    if found is None:
        return Kept()
    return Kept(True, msgspec.json.decode(found.value), found.version, found.expires_at)


def _sum(value: Any, amount: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NodeFailure.permanent("with.key: what is kept there is no number")
    total = value + amount
    if not isfinite(total) or (isinstance(total, int) and abs(total) > LARGEST_INTEGER):
        raise NodeFailure.permanent("with.by: gives a number out of range")
    return total
