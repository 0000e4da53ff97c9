"""Claims what waits in the queue as far as there are slots; in its loop, what is parked is woken as well (`waking.py`).

The store is the truth about slots and keys: claim, slot, key and ownership are one transaction there, so the limits are
exact however many workers claim. Hints only say when it may be worth asking.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import (
    InvalidTransition,
    NotFound,
    RopewalkError,
    Unavailable,
    UnknownVersion,
    Unreadable,
    VersionLost,
)
from ropewalk.engines.base import Observer
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.deciding import Deciding, GiveUp
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.losing import Losing
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.ownership import OwnedElsewhere, Ownership
from ropewalk.engines.native.waking import Waking
from ropewalk.engines.settings import WorkerSettings
from ropewalk.store import queue
from ropewalk.store.access import Store
from ropewalk.store.queue import Claimed, Returned
from ropewalk.telemetry.facts import Undispatched

SAFETY_NET = 5.0
PAUSES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
"""How long to wait while something waits that cannot be claimed; another claimer may have been at it (s)."""
BACKOFFS = (1 * SECOND, 10 * SECOND, 60 * SECOND)

_log = logging.getLogger("ropewalk.engine")


class Claims:
    """Woken when there may be something to claim."""

    def __init__(self, store: Store, settings: WorkerSettings, ownership: Ownership, memory: Memory,
                 commit: GroupCommit, deciding: Deciding, losing: Losing, waking: Waking,
                 find_strays: Callable[[], Awaitable[None]], give_up: GiveUp) -> None:  # fmt: skip
        self._store = store
        self._settings = settings
        self._ownership = ownership
        self._memory = memory
        self._commit = commit
        self._deciding = deciding
        self._losing = losing
        self.waking = waking
        self._find_strays = find_strays
        self._give_up = give_up
        self.observer: Observer | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # What was claimed and has not begun, and the name it was claimed under.
        self._owed: dict[str, Claimed] = {}
        self._claimed_as = ""
        self._looked_at_last = ""
        self._in_vain = 0
        self._is_anyone_waiting = True
        # Whether a hint has said so since the last claim began: then the store need not be asked.
        self._is_asked = False
        self._is_resting = False

    def open(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # Hints; the store is the truth, and is asked anyway every few seconds

    def asked(self) -> None:
        """Someone waits for a slot."""
        self._is_anyone_waiting = self._is_asked = True
        self._in_vain = 0
        self._wake.set()

    def freed(self) -> None:
        """A slot, a key or a place in memory is free.

        An execution that came since the last look has made itself known, or will be seen.
        """
        if self._is_anyone_waiting:
            self.asked()

    def parked(self, due: int) -> None:
        """An execution is to be woken then."""
        if self.waking.parked(due):
            self._wake.set()

    def owes(self, execution: str) -> bool:
        """Whether it was claimed and is about to begin."""
        return execution in self._owed

    def forget(self) -> None:
        """What was claimed is others': the lease is lost."""
        self._owed.clear()

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is being claimed or woken, and no hint has come since."""
        return self._is_resting and not self._wake.is_set() and not self._owed

    # The loop

    async def _run(self) -> None:
        while True:
            pause = await self._pause()
            # A timer that sets the event, and no `wait_for`: that one can swallow a cancellation.
            timer = asyncio.get_running_loop().call_later(pause, self._wake.set)
            self._is_resting = True
            await self._wake.wait()
            self._is_resting = False
            self._wake.clear()
            timer.cancel()

    async def _pause(self) -> float:
        """Do what can be done; how long until something may be to do again (s)."""
        try:
            await self._find_strays()
            return min(await self.claim(), await self.waking.wake())
        except RopewalkError as error:
            _log.warning("nothing can be claimed for now: %s", error)
            self._memory.suspect_strays()
        except Exception:  # noqa: BLE001 -- a fault of ours must not keep everyone waiting for good
            _log.exception("claiming failed; it is tried again in %s s", SAFETY_NET)
        return SAFETY_NET

    # Claiming

    async def claim(self) -> float:
        """Start what waits in the queue, as far as there are slots; a round at a time while others are to be woken."""
        while await self._dispatch_owed() and await self._claim():
            self._in_vain = 0
            await self._dispatch_owed()
            # What was decided about them before they were claimed is written by now, and nothing is uncounted.
            await self._commit.settled()
            if self.waking.is_due:
                return 0.0
        return self._until_worth_asking()

    async def _claim(self) -> bool:
        """Make something ours, with a slot; whether there may be more to claim."""
        self._memory.departed = {}
        room = min(self._settings.claim_batch, self._settings.executions - len(self._memory.lives))
        now = self._store.now()
        # Before the question: an execution that comes meanwhile is not overlooked.
        is_asked, self._is_asked, self._is_anyone_waiting = self._is_asked, False, False
        if not (is_asked and room > 0) and not await self._look_for_waiting(now, room):
            return False
        began_at = self._looked_at_last
        async with self._ownership.claiming(), self._store.transaction() as tx:
            claimed, last = await queue.claim(tx, tx.worker, now, room, after=began_at, may=self._memory.lets_go)
        self._owed |= {entry.execution: entry for entry in claimed}
        self._claimed_as = tx.worker
        self._looked_at_last = last
        if not claimed:
            is_held_up = not is_asked or await self._look_for_waiting(now, room)
            if is_held_up and self.observer is not None:
                self.observer.at_capacity()
        else:
            # What begins now is dated after the end that freed its slot, though another worker dated that.
            await self._store.tell_time()
        return bool(claimed) or last > began_at

    async def _look_for_waiting(self, now: int, room: int) -> bool:
        """Whether an execution waits, and there is room; if not, nothing need be tried before there is a hint."""
        self._is_anyone_waiting |= await queue.any_waiting(self._store, now)
        if room > 0 and self._is_anyone_waiting:
            return True
        self._in_vain = len(PAUSES)
        return False

    def _until_worth_asking(self) -> float:
        if self._owed:
            return PAUSES[-1]
        if self._in_vain >= len(PAUSES):
            return SAFETY_NET
        self._in_vain += 1
        return PAUSES[self._in_vain - 1]

    async def _dispatch_owed(self) -> bool:
        """Begin what was claimed, each for itself; whether nothing is left over."""
        with suppress(Unavailable):  # each is tried by itself below, and tells why not
            begun = [entry.execution for entry in self._owed.values() if entry.first_entry is None]
            await self._memory.load_together(begun)
        for entry in list(self._owed.values()):
            try:
                await self._dispatch(entry)
            except Unavailable as error:
                # The engine cannot get at it now; that is not the execution's fault.
                _log.warning("execution %s cannot be dispatched yet: %s", entry.execution, error)
                continue
            self._owed.pop(entry.execution, None)
        return not self._owed

    async def _dispatch(self, entry: Claimed) -> None:
        if self.observer is not None:
            self.observer.dispatching(entry.execution, entry.workspace)
        try:
            claimed = await self._memory.load_claimed(entry, self._claimed_as)
        except OwnedElsewhere:
            self._memory.suspect_strays()  # the lease was lost, and perhaps it is ours again by another claim
            return
        except Unavailable:
            raise
        except UnknownVersion as error:
            await self._leave_to_others(entry, error)
            return
        except RopewalkError as error:
            await self._undispatched(entry, error)
            return
        if claimed.written.live is None or not claimed.written.live[2]:
            self._deciding.let_go(
                claimed
            )  # told something, and let go of, before its turn came: it is in the queue again
            return
        try:
            self._begin(claimed, entry)
        except Exception as error:  # noqa: BLE001 -- a fault of ours concerns one execution, not its neighbours
            _log.exception("execution %s cannot begin", claimed.id)
            self._give_up([claimed], error)

    def _begin(self, claimed: Live, entry: Claimed) -> None:
        claimed.has_key = entry.has_key
        self._deciding.resume(claimed)

    async def _leave_to_others(self, entry: Claimed, error: UnknownVersion) -> None:
        """A newer Ropewalk has written it, and goes on with it; here it is no failure, and uses no attempt."""
        _log.warning("execution %s is left to a newer worker: %s", entry.execution, error)
        again = Returned("PENDING", self._store.now() + BACKOFFS[0], entry.attempts, str(error))
        async with self._store.transaction() as tx:
            await queue.unclaim(tx, tx.worker, entry, again)

    async def _undispatched(self, entry: Claimed, error: RopewalkError) -> None:
        """It cannot be loaded: try again later, at most a few times; what it needs and is gone does not come back."""
        attempts = entry.attempts + 1
        _log.error("execution %s cannot be dispatched (attempt %d): %s", entry.execution, attempts, error)
        is_given_up = isinstance(error, NotFound | VersionLost) or attempts >= self._settings.dispatch_attempts
        if self.observer is not None:
            about = (entry.execution, entry.workspace, attempts, str(error))
            self.observer.undispatched(Undispatched(*about, is_given_up))
        if is_given_up:
            await self._abandon(entry, attempts, error)
            return
        pause = BACKOFFS[min(attempts, len(BACKOFFS)) - 1]
        again = Returned("PENDING", self._store.now() + pause, attempts, str(error))
        async with self._store.transaction() as tx:
            await queue.unclaim(tx, tx.worker, entry, again)

    async def _abandon(self, entry: Claimed, attempts: int, error: RopewalkError) -> None:
        """Queue entry and execution fail together, if the log lets us write the end."""
        with suppress(Unreadable, InvalidTransition):  # one that has begun is left for a person to end
            await self._losing.abandon(entry.execution, str(error))
            return
        failed = Returned("FAILED", entry.enqueued_at, attempts, str(error))
        async with self._store.transaction() as tx:
            await queue.unclaim(tx, tx.worker, entry, failed)
