"""The health of the targets that nodes call.

A worker alone on its store counts calls in memory, and writes a breaker with the next commit when a call fails or the
breaker changes. Workers that share a store share the breakers in it: what may change one is decided on its locked row,
by the calls that all of them have counted. Each worker adds its own counts with every failure, and once a second all of
them in one transaction. So a call that succeeds costs no question to the store.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from ropewalk.core.breaker import (
    Breaker,
    BreakerPolicies,
    BreakerPolicy,
    BreakerState,
    Calls,
    Counted,
    Wait,
    admit,
    is_failure,
    places,
    record,
)
from ropewalk.core.duration import MINUTE, SECOND
from ropewalk.core.errors import ErrorType, RopewalkError
from ropewalk.store import breakers
from ropewalk.store.access import Store

Key = tuple[str, str]
Write = Callable[[str, tuple[Any, ...]], None]
Loosened = Callable[[str, str, int | None], None]
"""Told the workspace and the target of a breaker, and how many of those it held may go on by now (None: all)."""

KNOWN_FOR = 1 * SECOND
COUNTS_EVERY = 1.0
"""How often a worker adds what it has counted to the store (s)."""

_log = logging.getLogger("ropewalk.engine")


class WorkerBreakers:
    """Admits calls and learns from how they end, for a worker that has its store to itself."""

    def __init__(self, store: Store, write: Write, policies: BreakerPolicies, loosened: Loosened) -> None:
        self._store = store
        self._write = write
        self._policies = policies
        self._loosened = loosened
        self._known: dict[Key, Breaker] = {}
        self._calls: dict[Key, Calls] = {}
        self._tidied_at = 0

    async def load(self) -> None:
        """Take over what the store knows."""
        self._known = await breakers.every(self._store)

    def forget_calls(self, workspace: str, target: str) -> None:
        """Count the calls to the target anew."""
        self._calls.pop((workspace, target), None)

    async def close(self) -> None:
        """Nothing is left to be written: failures and changes go with the commits."""

    async def admit(self, workspace: str, target: str, now: int) -> Wait | None:
        """None: call; else until when not to."""
        before = self._known.get((workspace, target))
        if before is None:
            return None
        policy = self._policies.of(target)
        after, admission = admit(before, policy, now)
        self._keep((workspace, target), policy, before, after)
        return admission if isinstance(admission, Wait) else None

    async def places(self, workspace: str, target: str) -> int | None:
        """How many of those it holds may go on by now; None: all."""
        return places(self._known.get((workspace, target), Breaker()), self._policies.of(target))

    async def record(self, workspace: str, target: str, outcome: ErrorType | None) -> None:
        if outcome is ErrorType.CIRCUIT_OPEN:
            return
        key, policy, now = (workspace, target), self._policies.of(target), self._store.now()
        counted = self._count(key, policy, outcome, now)
        before = self._known.get(key, Breaker())
        if before.state is not BreakerState.CLOSED or is_failure(outcome):
            self._keep(key, policy, before, record(before, policy, outcome, counted, now))

    def _count(self, key: Key, policy: BreakerPolicy, outcome: ErrorType | None, now: int) -> Counted:
        if now - self._tidied_at > MINUTE:
            self._tidy(now)
        calls = self._calls.get(key)
        if calls is None:
            calls = self._calls[key] = Calls()
        calls.count(policy, now, has_failed=is_failure(outcome))
        return calls.within(policy, now)

    def _tidy(self, now: int) -> None:
        """Forget the counts of targets that were not called for a window."""
        self._tidied_at = now
        policy = self._policies.of
        self._calls = {key: each for key, each in self._calls.items() if each.within(policy(key[1]), now).calls}

    def _keep(self, key: Key, policy: BreakerPolicy, before: Breaker, after: Breaker) -> None:
        if after == before:
            return
        self._known[key] = after
        self._write("upsert_breaker", breakers.entry(*key, after))
        if after.state is BreakerState.CLOSED and before.state is not BreakerState.CLOSED:
            self.forget_calls(*key)
        if has_loosened(before, after, policy):
            self._loosened(*key, places(after, policy))


class SharedBreakers:
    """The same for a worker among others."""

    def __init__(self, store: Store, policies: BreakerPolicies, loosened: Loosened) -> None:
        self._store = store
        self._policies = policies
        self._loosened = loosened
        self._known: dict[Key, Breaker] = {}
        self._known_at = 0
        # What was counted here and is not in the store yet.
        self._calls: dict[Key, Calls] = {}
        # The targets whose breaker is being told of a failure, and whether there were more meanwhile.
        self._failing: dict[Key, bool] = {}
        self._adding: asyncio.Task[None] | None = None
        self._tidied_at = 0

    async def load(self) -> None:
        self._known, self._known_at = await breakers.every(self._store), self._store.now()

    def forget_calls(self, workspace: str, target: str) -> None:
        """Count the calls to the target anew."""
        self._calls.pop((workspace, target), None)

    async def close(self) -> None:
        """Counts that are not in the store yet are of no use to a worker that leaves."""
        if self._adding is not None:
            self._adding.cancel()
            await asyncio.gather(self._adding, return_exceptions=True)

    async def admit(self, workspace: str, target: str, now: int) -> Wait | None:
        """None: call; else until when not to. A store that cannot be asked now keeps no attempt from calling."""
        try:
            return await self._admit(workspace, target, now)
        except RopewalkError as error:
            _log.warning("the breaker of %s cannot be asked: %s", target, error)
            return None

    async def _admit(self, workspace: str, target: str, now: int) -> Wait | None:
        """A probe is granted by the store, to a few at a time."""
        if self._store.now() - self._known_at > KNOWN_FOR:
            await self.load()
        known, policy = self._known.get((workspace, target), Breaker()), self._policies.of(target)
        if known.state is BreakerState.CLOSED:
            return None
        _, admission = admit(known, policy, now)
        if isinstance(admission, Wait):
            return admission
        async with self._store.transaction() as tx:
            before = await breakers.lock(tx, workspace, target)
            after, admission = admit(before, policy, now)
            await breakers.put(tx, workspace, target, after)
        self._learn((workspace, target), policy, before, after)
        return admission if isinstance(admission, Wait) else None

    def _learn(self, key: Key, policy: BreakerPolicy, before: Breaker, after: Breaker) -> None:
        self._known[key] = after
        if has_loosened(before, after, policy):
            self._loosened(*key, places(after, policy))

    async def places(self, workspace: str, target: str) -> int | None:
        """How many of those it holds may go on, as the store has it (None: all); none if that cannot be asked."""
        try:
            known = self._known[workspace, target] = await breakers.get(self._store, workspace, target)
        except RopewalkError as error:
            _log.warning("the breaker of %s cannot be asked: %s", target, error)
            return 0
        return places(known, self._policies.of(target))

    async def record(self, workspace: str, target: str, outcome: ErrorType | None) -> None:
        if outcome is ErrorType.CIRCUIT_OPEN:
            return
        key = (workspace, target)
        self._count(key, outcome)
        is_closed = self._known.get(key, Breaker()).state is BreakerState.CLOSED
        if is_closed and not is_failure(outcome):
            return
        if is_closed and key in self._failing:
            self._failing[key] = True
            return
        self._failing[key] = False
        try:
            await self._record(key, outcome)
            while self._failing.get(key):
                # The failures that came meanwhile are counted, and judged together.
                self._failing[key] = False
                await self._record(key, ErrorType.TRANSIENT)
        except RopewalkError as error:
            _log.warning("the breaker of %s was not told how a call ended: %s", target, error)
        finally:
            self._failing.pop(key, None)

    async def _record(self, key: Key, outcome: ErrorType | None) -> None:
        policy, mine = self._policies.of(key[1]), self._calls.pop(key, Calls())
        async with self._store.transaction() as tx:
            before = await breakers.lock(tx, *key)
            await breakers.count(tx, {key: mine})
            now = self._store.now()
            counted = await breakers.counted(tx, *key, policy.oldest_span(now))
            after = record(before, policy, outcome, counted, now)
            await breakers.put(tx, *key, after)
            if after.state is BreakerState.CLOSED and before.state is not BreakerState.CLOSED:
                await breakers.forget_calls(tx, *key)
        self._learn(key, policy, before, after)

    # Counts

    def _count(self, key: Key, outcome: ErrorType | None) -> None:
        calls = self._calls.get(key)
        if calls is None:
            calls = self._calls[key] = Calls()
        calls.count(self._policies.of(key[1]), self._store.now(), has_failed=is_failure(outcome))
        if self._adding is None:
            self._adding = asyncio.get_running_loop().create_task(self._add_soon())

    async def _add_soon(self) -> None:
        """Add what is counted meanwhile to the store; what it cannot take now is counted nowhere."""
        try:
            await asyncio.sleep(COUNTS_EVERY)
            calls, self._calls = self._calls, {}
            if not calls:
                return
            async with self._store.transaction() as tx:
                await breakers.count(tx, calls)
                if (now := self._store.now()) - self._tidied_at > MINUTE:
                    self._tidied_at = now
                    await breakers.forget_old_calls(tx, now - self._policies.longest_window)
        except RopewalkError as error:
            _log.warning("calls of the last second are not counted for breakers: %s", error)
        finally:
            self._adding = None


def has_loosened(before: Breaker, after: Breaker, policy: BreakerPolicy) -> bool:
    """Whether more of those it holds may go on than before."""
    then, now = places(before, policy), places(after, policy)
    return then is not None and (now is None or now > then)
