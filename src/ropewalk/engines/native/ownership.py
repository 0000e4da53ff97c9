"""Whose an execution is: of several workers on one store, exactly one may move it.

On a store of its own a worker owns everything, and there is no other worker to ask.
"""

import asyncio
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol

from ropewalk.core.errors import NotFound, RopewalkError
from ropewalk.store import executions, live, suspicion
from ropewalk.store.access import Store
from ropewalk.store.suspicion import SET_ASIDE


class OwnedElsewhere(RopewalkError):
    """Another worker has the execution in hand; it can be told through the inbox."""

    def __init__(self, execution: str, owner: str) -> None:
        super().__init__(f"execution {execution} is in the hands of worker {owner}")
        self.execution = execution
        self.owner = owner


class Ownership(Protocol):
    """How a worker comes to own executions."""

    async def acquire(self, execution: str) -> None:
        """The execution is ours from now on; OwnedElsewhere if it is another's."""

    async def release(self, execution: str) -> None:
        """The execution has no owner, though nothing was written about it."""

    async def take_due(self, limit: int, told: Collection[str]) -> list[str]:
        """Parked executions whose time has come, ours from now on; without those that were `told` so a moment ago."""

    def set_aside(self, execution: str) -> None:
        """The execution belongs to no worker from now on."""

    def take_back(self, execution: str) -> None:
        """It does again."""

    def claiming(self) -> AbstractAsyncContextManager[Any]:
        """No caller acquires what is being claimed: it would read it as it was before the claim."""


class SoleOwner:
    """The one worker of an embedded store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._claiming = asyncio.Lock()
        # What is set aside: no other worker changes that, so it is asked for once.
        self._set_aside: set[str] | None = None

    async def acquire(self, execution: str) -> None:
        """Everything is ours but what is set aside, and what is being claimed is so only afterwards."""
        if self._set_aside is None:
            self._set_aside = set(await suspicion.all_set_aside(self._store))
        if execution in self._set_aside:
            raise OwnedElsewhere(execution, SET_ASIDE)
        async with self._claiming:
            return

    def set_aside(self, execution: str) -> None:
        if self._set_aside is not None:
            self._set_aside.add(execution)

    def take_back(self, execution: str) -> None:
        if self._set_aside is not None:
            self._set_aside.discard(execution)

    async def release(self, execution: str) -> None:
        """And stays so."""

    async def take_due(self, limit: int, told: Collection[str]) -> list[str]:
        # Until what they were told is written, their rows say that they are due.
        found = await live.due(self._store, self._store.now(), limit + len(told))
        return [execution for execution in found if execution not in told][:limit]

    def claiming(self) -> AbstractAsyncContextManager[Any]:
        return self._claiming


class OneOfMany:
    """A worker of a fleet: what it moves it has to own, and the store says who does."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def acquire(self, execution: str) -> None:
        async with self._store.transaction() as tx:
            owner = await live.acquire(tx, tx.worker, execution)
            if owner is None and await executions.load(tx, execution) is None:
                raise NotFound(f"there is no execution {execution}")
        if owner != tx.worker:
            raise OwnedElsewhere(execution, owner or "unknown")

    async def release(self, execution: str) -> None:
        async with self._store.transaction() as tx:
            await live.release(tx, tx.worker, execution)

    async def take_due(self, limit: int, told: Collection[str]) -> list[str]:
        async with self._store.transaction() as tx:
            return await live.take_due(tx, tx.worker, self._store.now(), limit)

    def set_aside(self, execution: str) -> None:
        """The store says so to everyone."""

    def take_back(self, execution: str) -> None:
        """The same."""

    def claiming(self) -> AbstractAsyncContextManager[Any]:
        """The store keeps them apart, row by row."""
        return nullcontext()
