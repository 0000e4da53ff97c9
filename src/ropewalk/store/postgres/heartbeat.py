"""The heartbeat: proof of life from a thread, a loop and a connection of its own.

So a blocked event loop does not cost a worker its lease. Every beat renews the lease and learns the time. A worker that
cannot renew for a whole lease, or whose epoch has been raised, gives up by itself: others take over from then on. So
does one that finds an older beat than its last, or fewer commits than were answered: the database went back in time.

The connection also holds a lock of its session, which the database releases the moment it sees the connection go: a
second sign of death, faster than the lease. Behind a pooler there is no session to hold it.
"""

import asyncio
import hashlib
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ropewalk.store.clock import SharedClock, ticks
from ropewalk.store.errors import StaleWriter, WentBack
from ropewalk.store.loops import tell_in_a_line
from ropewalk.store.postgres.connection import BEATING, Address, Connection, closed, statements
from ropewalk.store.postgres.faults import DRIVER_ERRORS
from ropewalk.store.postgres.migrating import DATABASE_TIME
from ropewalk.store.postgres.writer import GONE_BACK, refused, taken_over

HELD: Final = (
    "select (cast(classid as bigint) << 32) | cast(objid as bigint) from pg_locks "
    "where locktype = 'advisory' and objsubid = 1 and granted "
    "and database = (select oid from pg_database where datname = current_database())"
)
"""The numbers of the locks that sessions of this database hold."""

_BEAT: Final = (
    "with before as (select heartbeat_at as beat from worker where id = $3 and epoch = $4 for no key update) "
    f"update worker set heartbeat_at = {DATABASE_TIME}, load = $1, has_lock = $2 from before "
    "where id = $3 and epoch = $4 returning heartbeat_at, before.beat, commits"
)
"""Tells the time of this beat and of the one before, and the number of the worker's last commit."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_JOIN_SECONDS: Final = 15.0
_log = logging.getLogger("ropewalk.store")


def lock_key(worker: str) -> int:
    """The number of the lock a worker's session holds."""
    return int.from_bytes(hashlib.sha256(f"ropewalk worker {worker}".encode()).digest()[:8], "big", signed=True)


class Heartbeat:
    """Renews the lease of one worker until told to leave."""

    def __init__(self, address: Address, worker: str, epoch: int, clock: SharedClock, *, lease: float, beat: float,
                 load: Callable[[], int], answered: Callable[[], int],
                 lose: Callable[[StaleWriter], None]) -> None:  # fmt: skip
        """`answered` tells the number of the last commit that was answered; `lose` hears why the lease is lost."""
        self._address = address
        self._worker = worker
        self._epoch = epoch
        self._name = f"ropewalk {worker} heartbeat"
        self._clock = clock
        self._lease = int(lease * 1_000_000)
        self._beat_seconds = beat
        self._load = load
        self._answered = answered
        self._lose = lose
        # The time of the last beat that was answered.
        self._beaten_at = 0
        self._renewed_at = ticks()
        self._connection: Connection | None = None
        self.has_lock = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._is_leaving = self._has_left = False
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ropewalk-heartbeat", daemon=True)
        self.beats = 0

    async def open(self) -> None:
        """Starts beating; the first beat has been tried on return."""
        self._thread.start()
        await asyncio.to_thread(self._is_up.wait)

    async def close(self) -> None:
        """Says that the worker is gone, so that the others do not wait for its lease, and ends the thread."""
        self._is_leaving = True
        if self._loop is not None and self._thread.is_alive():
            with suppress(RuntimeError):  # it ended by itself this very moment
                self._loop.call_soon_threadsafe(self._wake.set)
        await asyncio.to_thread(self._thread.join, _JOIN_SECONDS)

    # On the thread

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            try:
                runner.run(self._live())
            except Exception:  # noqa: BLE001 -- after any failure the worker gives up, and the log says why
                _log.exception("the heartbeat of %s failed", self._worker)
            finally:
                if not self._has_left:
                    self._lose(StaleWriter(f"the heartbeat of {self._worker} failed: it has given up its executions"))
                self._is_up.set()

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(tell_in_a_line)
        pause = _FIRST_PAUSE
        while not self._is_leaving:
            is_renewed = await self._try_to_renew()
            self._is_up.set()
            if is_renewed is None or self._has_run_out():
                break
            await self._rest(self._beat_seconds if is_renewed else min(pause, self._left()))
            pause = _FIRST_PAUSE if is_renewed else min(2 * pause, _LONGEST_PAUSE)
        await self._leave()
        self._has_left = True

    async def _rest(self, seconds: float) -> None:
        """Until the next beat is due, the connection is lost, or it is time to leave."""
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return
        self._wake.clear()

    async def _try_to_renew(self) -> bool | None:
        """Whether the lease is renewed; None if another worker has taken over."""
        asked_at = ticks()
        try:
            # A second try on another connection is worth more than a long wait on this one.
            async with asyncio.timeout(max(0.05, min(self._left(), max(self._beat_seconds, 2.0)))):
                loss = await self._renew()
        except DRIVER_ERRORS:
            self._hang_up()
            return False
        if loss is not None:
            self._lose(loss)
            return None
        self._renewed_at = asked_at
        self.beats += 1
        return True

    async def _renew(self) -> StaleWriter | None:
        """Renews the lease; why not, if it is not ours to renew."""
        connection = await self._connected()
        # Asked before the beat: what is answered later need not be known to it.
        answered = self._answered()
        async with self._address.whole(connection, BEATING, self._name):
            beat = await connection.fetchrow(_BEAT, self._load(), int(self.has_lock), self._worker, self._epoch)
            if beat is None:
                row = await connection.fetchrow(statements()["last_commit"], self._worker)
                return refused(row, self._worker, self._epoch, answered) or StaleWriter(taken_over(self._worker))
        now, before, commits = beat
        if (loss := refused((self._epoch, commits), self._worker, self._epoch, answered)) is not None:
            return loss
        if before < self._beaten_at:
            return WentBack(f"{GONE_BACK} the last heartbeat of worker {self._worker} is not there")
        self._clock.learn(now, ticks())
        self._beaten_at = now
        return None

    def _left(self) -> float:
        """Seconds until the lease runs out."""
        return max(0.0, (self._renewed_at + self._lease - ticks()) / 1_000_000)

    def _has_run_out(self) -> bool:
        if self._left() > 0:
            return False
        self._lose(
            StaleWriter(
                f"{self._worker} could not renew its lease at {self._address.place}: it has given up its executions"
            )
        )
        return True

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._hang_up()
            self._connection = await self._address.connect(BEATING, self._name)
            self._connection.add_termination_listener(self._cut_off)
        if not (self.has_lock or self._address.is_pooled):
            # Not ours yet as long as the server has not noticed that the last connection is gone: then the next beat.
            self.has_lock = await self._connection.fetchval("select pg_try_advisory_lock($1)", lock_key(self._worker))
        return self._connection

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        self.has_lock = False
        if connection is not None:
            connection.remove_termination_listener(self._cut_off)
            connection.terminate()

    def _cut_off(self, _: Connection) -> None:
        """The lock went with the connection: get both back before the other workers believe this one dead."""
        self.has_lock = False
        self._wake.set()

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(5):
                connection = await self._connected()
                async with self._address.whole(connection, BEATING, self._name):
                    await connection.execute(statements()["leave_worker"], self._worker, self._epoch)
                await closed(connection)
        except DRIVER_ERRORS:
            # The others cannot be told: they find out by the lease.
            self._hang_up()
