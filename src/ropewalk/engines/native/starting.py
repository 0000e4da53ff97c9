"""Accepting executions: one with the next commit, or many inside the caller's transaction."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from ropewalk.core.commands import NeedSlot
from ropewalk.core.errors import Unavailable
from ropewalk.engines.background import Background
from ropewalk.engines.base import AT_ONCE, Remember, StartRequest
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.deciding import Deciding
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.projecting import RowsByStatement, put_rows
from ropewalk.engines.native.slot_limits import SlotLimits
from ropewalk.engines.settings import WorkerSettings
from ropewalk.store import executions
from ropewalk.store.access import Store, Transaction


class Starting:
    """Accepts executions, and starts those that need not wait for a slot."""

    def __init__(self, store: Store, settings: WorkerSettings, background: Background, memory: Memory,
                 commit: GroupCommit, deciding: Deciding, limits: SlotLimits) -> None:  # fmt: skip
        self._store = store
        self._settings = settings
        self._background = background
        self._memory = memory
        self._commit = commit
        self._deciding = deciding
        self._limits = limits

    async def start(self, request: StartRequest, letter: str | None = None, remember: Remember | None = None) -> str:
        """Accept an execution durably; it starts in the same commit if there is a slot for it.

        `letter` asked for it, and is gone from the inbox with the same commit. `remember` gives the
        rows that are written with it, such as that of its idempotency key; Unavailable also if another server has
        written one.
        """
        store, commit = self._store, self._commit
        if commit.is_crowded:
            await commit.give_way()
        if self._background.is_closing:
            raise Unavailable("this worker is shutting down; start it again elsewhere or later")
        is_limited = await self._limits.of(request.workspace) is not None
        live = await self._memory.accept(request, store.now())
        live.audit(request.actor, "start", store.now())
        if letter is not None:
            live.rows.append(("delete_inbox", (letter,)))
        if remember is not None:
            live.rows += remember(live.id)
            if store.is_shared:
                commit.set_apart(live)
        has_room = self._settings.claims and len(self._memory.lives) <= self._settings.executions
        if has_room and not is_limited and live.accepted.concurrency_key is None:
            self._deciding.take_slot(live)
        else:
            live.commands = (NeedSlot(),)
            commit.add(live)
        await commit.settled()
        # Dropped before its first commit, it was never accepted; after it, it goes on from its log.
        if live.is_dropped and await executions.load(store, live.id) is None:
            raise Unavailable("the start could not be written; nothing was done, try again")
        return live.id

    async def accept(self, tx: Transaction, requests: Sequence[StartRequest]) -> list[str]:
        """Write executions that wait for their turn; accepted with the transaction, all or none."""
        batch: RowsByStatement = defaultdict(list)
        ids = []
        for place, request in enumerate(requests):
            if place % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
            live = self._memory.new(request, self._store.now())
            live.audit(request.actor, "start", self._store.now())
            put_rows(live, None, batch)
            ids.append(live.id)
        for statement, some in batch.items():
            await tx.execute_many(statement, some)
        return ids
