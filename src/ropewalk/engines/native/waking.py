"""Wakes parked executions when their time has come: many at once, since many may be due in the same second.

A batch is taken in one transaction, its logs are read together, and what the machine decides is one commit, which is
written while the next batch is read. Where nothing limits a workspace, an execution that has something to start takes
its slot in that same commit; elsewhere it goes through the queue, and the claims see to the limit. Between two batches
the claims have their turn.
"""

import asyncio
import logging
from collections.abc import Sequence

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import NotFound, RopewalkError, Unavailable
from ropewalk.engines.background import Background
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.deciding import Deciding
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.ownership import OwnedElsewhere, Ownership
from ropewalk.engines.native.slot_limits import SlotLimits
from ropewalk.engines.settings import WorkerSettings
from ropewalk.store import live as stored
from ropewalk.store.access import Store

BATCH = 500
AT_A_TIME = 20
"""So many are told before other tasks of the loop have their turn."""
SAFETY_NET = 5.0
POSTPONED = 60 * SECOND
AGAIN = 1 * SECOND

_log = logging.getLogger("ropewalk.engine")


class Waking:
    """Knows when the next parked execution is due."""

    def __init__(self, store: Store, settings: WorkerSettings, background: Background, ownership: Ownership,
                 memory: Memory, commit: GroupCommit, deciding: Deciding, limits: SlotLimits) -> None:  # fmt: skip
        self._store = store
        self._settings = settings
        self._background = background
        self._ownership = ownership
        self._memory = memory
        self._commit = commit
        self._deciding = deciding
        self._limits = limits
        self._next_due: int | None = None
        # The last batch of a row of them: an execution that was told, and is due all the same, would never end the row.
        self._told: frozenset[str] = frozenset()
        # Done when what the last batch was told is written.
        self._writing: asyncio.Future[None] | None = None

    def parked(self, due: int) -> bool:
        """An execution is to be woken then; whether that is sooner than all that was known."""
        is_sooner = self._next_due is None or due < self._next_due
        if is_sooner:
            self._next_due = due
        return is_sooner

    @property
    def is_due(self) -> bool:
        """Whether the time of a parked execution has come, as far as is known."""
        return self._next_due is not None and self._next_due <= self._store.now()

    async def wake(self) -> float:
        """Wake executions whose time has come, a whole batch at most; how long until there may be more (s)."""
        if self._next_due is None or self.is_due:
            while found := await self._take_due():
                await self._wake_batch(found)
                if len(found) == BATCH:
                    return 0.0
            self._told = frozenset()
            soonest, latest = await stored.next_wake(self._store), self._store.now() + SAFETY_NET * SECOND
            self._next_due = round(latest if soonest is None else min(soonest, latest))
        return max(0.001, (self._next_due - self._store.now()) / SECOND)

    async def _take_due(self) -> list[str]:
        """Parked executions that are due and ours; none only when every batch before is written."""
        is_writing = self._writing is not None and not self._writing.done()
        found = await self._ownership.take_due(BATCH, self._told if is_writing else frozenset())
        if not found and is_writing:
            await self._written()
            found = await self._ownership.take_due(BATCH, frozenset())
        return found

    async def _wake_batch(self, executions: Sequence[str]) -> None:
        told = self._told
        woken = [execution for execution in executions if execution not in told]
        # Not those that are postponed: on a slow store they are due again by the next look, and would never be told.
        self._told = frozenset(woken)
        for execution in executions:
            if execution in told:
                await self._postpone(execution, AGAIN)
        loaded = await self._memory.load_in_pieces(woken, self._go_on)
        for execution in woken:
            if execution not in loaded:
                await self._wake_alone(execution)
        self._write()

    async def _go_on(self, lives: Sequence[Live]) -> None:
        """Tell executions that were read together, once those before are written; the next are read meanwhile."""
        await self._written()
        for first in range(0, len(lives), AT_A_TIME):
            for due in lives[first : first + AT_A_TIME]:
                is_limited = await self._is_limited(due.accepted.workspace)
                if self._background.is_closing:
                    self._deciding.let_go(due)
                elif self._memory.owns(due):
                    await self._tell(due, is_limited=is_limited)
            await asyncio.sleep(0)
        self._write()

    async def _is_limited(self, workspace: str) -> bool:
        """Whether a slot is for the claims to give; of a workspace that is gone they know what to do."""
        try:
            return await self._limits.of(workspace) is not None
        except NotFound:
            return True

    def _write(self) -> None:
        """Everything told so far is on its way to the disk."""
        self._writing = asyncio.ensure_future(self._commit.settled())
        self._writing.add_done_callback(_heard)

    async def _written(self) -> None:
        """Wait until it is there; raises what kept it from being so."""
        writing, self._writing = self._writing, None
        if writing is not None:
            await asyncio.shield(writing)

    async def _wake_alone(self, execution: str) -> None:
        """The same for one that is in memory already, or cannot be read: that keeps no other asleep."""
        try:
            due = await self._memory.load(execution, is_ours=True)
        except OwnedElsewhere:
            self._memory.suspect_strays()
            return
        except Unavailable:
            raise
        except RopewalkError as error:
            _log.error("execution %s cannot be woken; it is tried again later: %s", execution, error)
            await self._postpone(execution, POSTPONED)
            return
        await self._tell(due, is_limited=True)

    async def _tell(self, due: Live, *, is_limited: bool) -> None:
        try:
            self._deciding.resume(due, has_slot=not is_limited and self._may_take_slot(due))
        except Exception:  # noqa: BLE001 -- a fault of ours concerns one execution, not its neighbours
            _log.exception("execution %s cannot be woken; it is tried again later", due.id)
            self._deciding.drop(due)
            await self._postpone(due.id, POSTPONED)

    def _may_take_slot(self, due: Live) -> bool:
        """Whether it may start what it has without the queue, as a new start may where nothing limits the workspace."""
        has_room = self._settings.claims and len(self._memory.lives) <= self._settings.executions
        is_free = due.accepted.concurrency_key is None and due.written.queued is None
        return has_room and is_free

    async def _postpone(self, execution: str, pause: int) -> None:
        """The execution has no owner, and is not woken before then."""
        await self._memory.release(execution)
        self._commit.add_row("postpone_live", (self._store.now() + pause, execution))


def _heard(writing: asyncio.Future[None]) -> None:
    """Why it failed is told to the task that waits for it, if that has not gone away; and to the log in any case."""
    if not writing.cancelled():
        writing.exception()
