"""Grants slots to those who wait for one: workspaces in turn, the woken before the new, then priority, then age."""

import asyncio
import logging
from typing import TYPE_CHECKING

from ropewalk.core.commands import WakeAt
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import RopewalkError
from ropewalk.core.signals import Due
from ropewalk.store import live

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine

BATCH = 100
SAFETY_NET = 5.0

_log = logging.getLogger("ropewalk.engine")


class Claims:
    """Woken when there may be something to grant; also wakes what is parked when its time has come."""

    def __init__(self, engine: "NativeEngine") -> None:
        self._engine = engine
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.is_queue_empty = False
        self._next_due: int | None = None

    def open(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # Hints; the store is the truth, and is asked anyway every few seconds

    def asked(self) -> None:
        """Someone waits for a slot."""
        self.is_queue_empty = False
        self._wake.set()

    def freed(self) -> None:
        """A slot, a key or a place in memory is free."""
        if not self.is_queue_empty:
            self._wake.set()

    def parked(self, due: int) -> None:
        """An execution is to be woken then."""
        if self._next_due is None or due < self._next_due:
            self._wake.set()

    async def _run(self) -> None:
        while True:
            try:
                await self.claim()
                pause = await self.wake_parked()
            except RopewalkError as error:
                _log.warning("nothing can be claimed for now: %s", error)
                pause = SAFETY_NET
            # A timer that sets the event, and no `wait_for`: that one can swallow a cancellation.
            timer = asyncio.get_running_loop().call_later(pause, self._wake.set)
            await self._wake.wait()
            self._wake.clear()
            timer.cancel()

    async def claim(self) -> None:
        """Start what waits in the queue, as far as there are slots."""
        engine = self._engine
        workspaces = await engine.store.fetch("queued_workspaces")
        self.is_queue_empty = not workspaces
        for (workspace,) in workspaces:
            if engine.slots.has_room(workspace):
                await self._claim(workspace)

    async def _claim(self, workspace: str) -> None:
        engine = self._engine
        for (execution,) in await engine.store.fetch("queued_executions", workspace, engine.store.now(), BATCH):
            if len(engine.memory.lives) >= engine.settings.executions or not engine.slots.has_room(workspace):
                return
            await self._grant(execution)

    async def _grant(self, execution: str) -> None:
        engine = self._engine
        waiting = await engine.memory.load(execution)
        # No await from here on: the check and the taking are one. First the time that has passed since it was parked:
        # a retry that is due is no event, so a folded log does not know of it.
        engine.signal(waiting, Due())
        if waiting.execution.needs_slot and engine.slots.is_free(waiting.accepted):
            engine.take_slot(waiting)
            # So far its wake-up was for the claims to watch; the machine has told of it and does not repeat itself.
            waiting.commands.append(WakeAt(waiting.execution.wake_at))
        engine.commit.add(waiting)

    async def wake_parked(self) -> float:
        """Tell those whose time has come; how long until the next (s)."""
        engine = self._engine
        while rows := await engine.store.fetch("due_executions", engine.store.now(), BATCH):
            for (execution,) in rows:
                due = await engine.memory.load(execution)
                engine.signal(due, Due())
                # Also when nothing came of it, so that its row says so.
                engine.commit.add(due)
            await engine.commit.settled()
        self._next_due = await live.next_wake(engine.store)
        if self._next_due is None:
            return SAFETY_NET
        return min(SAFETY_NET, max(0.001, (self._next_due - engine.store.now()) / SECOND))
