"""The health of the targets that nodes call.

A worker alone on its store keeps it in memory and writes every change with the next commit. Workers that share a store
share the breakers in it: what may change one is decided on its locked row, so that of all workers one probes at a time,
and every failure counts. While nothing is wrong neither costs a question to the store.
"""

import logging
from collections.abc import Callable
from typing import Any

from ropewalk.core.breaker import Breaker, BreakerPolicy, BreakerState, Wait, admit, record
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, RopewalkError
from ropewalk.store import breakers
from ropewalk.store.access import Store

Key = tuple[str, str]
Write = Callable[[str, tuple[Any, ...]], None]
Loosened = Callable[[str, str, int | None], None]
"""Told the workspace and the target of a breaker, and how many of those it held may go on by now (None: all)."""

KNOWN_FOR = 1 * SECOND

_log = logging.getLogger("ropewalk.engine")


class WorkerBreakers:
    """Admits calls and learns from how they end, for a worker that has its store to itself."""

    def __init__(self, store: Store, write: Write, policy: BreakerPolicy, loosened: Loosened) -> None:
        self._store = store
        self._write = write
        self._policy = policy
        self._loosened = loosened
        self._known: dict[Key, Breaker] = {}

    async def load(self) -> None:
        """Take over what the store knows."""
        self._known = await _all(self._store)

    async def admit(self, workspace: str, target: str, now: int) -> Wait | None:
        """None: call; else until when not to."""
        before = self._known.get((workspace, target))
        if before is None:
            return None
        after, admission = admit(before, self._policy, now)
        self._keep((workspace, target), before, after)
        return admission if isinstance(admission, Wait) else None

    async def places(self, workspace: str, target: str) -> int | None:
        """How many of those it holds may go on by now; None: all."""
        return places(self._known.get((workspace, target), Breaker()))

    async def record(self, workspace: str, target: str, outcome: ErrorType | None) -> None:
        before = self._known.get((workspace, target), Breaker())
        self._keep((workspace, target), before, record(before, self._policy, outcome, self._store.now()))

    def _keep(self, key: Key, before: Breaker, after: Breaker) -> None:
        if after == before:
            return
        self._known[key] = after
        self._write("upsert_breaker", breakers.entry(*key, after))
        if has_loosened(before, after):
            self._loosened(*key, places(after))


class SharedBreakers:
    """The same for a worker among others."""

    def __init__(self, store: Store, policy: BreakerPolicy, loosened: Loosened) -> None:
        self._store = store
        self._policy = policy
        self._loosened = loosened
        self._known: dict[Key, Breaker] = {}
        self._known_at = 0

    async def load(self) -> None:
        self._known, self._known_at = await _all(self._store), self._store.now()

    async def admit(self, workspace: str, target: str, now: int) -> Wait | None:
        """None: call; else until when not to. A store that cannot be asked now keeps nobody from calling."""
        try:
            return await self._admit(workspace, target, now)
        except RopewalkError as error:
            _log.warning("the breaker of %s cannot be asked: %s", target, error)
            return None

    async def _admit(self, workspace: str, target: str, now: int) -> Wait | None:
        """A probe is granted by the store, to one at a time."""
        if self._store.now() - self._known_at > KNOWN_FOR:
            await self.load()
        known = self._known.get((workspace, target), Breaker())
        _, admission = admit(known, self._policy, now)
        if known.state is BreakerState.CLOSED or isinstance(admission, Wait):
            return admission if isinstance(admission, Wait) else None
        async with self._store.transaction() as tx:
            before = await breakers.lock(tx, workspace, target)
            after, admission = admit(before, self._policy, now)
            await breakers.put(tx, workspace, target, after)
        self._known[workspace, target] = after
        return admission if isinstance(admission, Wait) else None

    async def places(self, workspace: str, target: str) -> int | None:
        """How many of those it holds may go on, as the store has it (None: all); none if that cannot be asked."""
        try:
            known = self._known[workspace, target] = await breakers.get(self._store, workspace, target)
        except RopewalkError as error:
            _log.warning("the breaker of %s cannot be asked: %s", target, error)
            return 0
        return places(known)

    async def record(self, workspace: str, target: str, outcome: ErrorType | None) -> None:
        known = self._known.get((workspace, target), Breaker())
        if record(known, self._policy, outcome, self._store.now()) == known:
            return
        try:
            await self._record(workspace, target, outcome)
        except RopewalkError as error:
            _log.warning("the breaker of %s was not told how a call ended: %s", target, error)

    async def _record(self, workspace: str, target: str, outcome: ErrorType | None) -> None:
        async with self._store.transaction() as tx:
            before = await breakers.lock(tx, workspace, target)
            after = record(before, self._policy, outcome, self._store.now())
            await breakers.put(tx, workspace, target, after)
        self._known[workspace, target] = after
        if has_loosened(before, after):
            self._loosened(workspace, target, places(after))


async def _all(store: Store) -> dict[Key, Breaker]:
    rows = await store.fetch("every_breaker")
    return {(row[0], row[1]): Breaker(BreakerState(row[2]), *row[3:]) for row in rows}


def places(breaker: Breaker) -> int | None:
    """How many of those it holds may go on: all (None) if it is closed, one if the next probe is to be sent."""
    if breaker.state is BreakerState.CLOSED:
        return None
    return int(breaker.state is BreakerState.HALF_OPEN and breaker.probe_until is None)


def has_loosened(before: Breaker, after: Breaker) -> bool:
    return places(after) != 0 and places(after) != places(before)
