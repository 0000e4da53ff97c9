"""The store of the process that owns it: one connection writes, in one turn at a time, group commits.

Every transaction takes the turn (first come, first served), starts by asking whether this process may still write, and
is on the disk when it returns (`writer`). A small one is committed on the calling thread, since a hop to another costs
more than the commit; a large one on the writer's thread, so that the loop lives on.
"""

import asyncio
import logging
import os
import socket
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from time import clock_gettime_ns
from typing import Final, Self

from ropewalk.core.canonical import writable
from ropewalk.store.access import Batch, Rewind, Row, Value
from ropewalk.store.blobs import BlobFiles
from ropewalk.store.clock import TICKING, ticks
from ropewalk.store.errors import StaleWriter, StoreDamaged, StoreUnavailable
from ropewalk.store.finishing import finished
from ropewalk.store.sqlite.bulk import Message
from ropewalk.store.sqlite.connection import check_path, connect_writer, statements
from ropewalk.store.sqlite.faults import at_the_door
from ropewalk.store.sqlite.ownership import Ownership
from ropewalk.store.sqlite.reader import SqliteReader
from ropewalk.store.sqlite.soundness import Soundness
from ropewalk.store.sqlite.transaction import SqliteTransaction
from ropewalk.store.sqlite.writer import MARK_EVERY, Writer, taken_over

WORKER: Final = "local"
INLINE_ROWS: Final = 256
"""So many rows are written, in about a millisecond, before a thread gets its turn beside a busy loop."""
INLINE_BYTES: Final = 64 * 1024
"""So much of log entries is written without a thread."""
MUCH_AHEAD: Final = 5_000_000
"""How far (µs) store time may be ahead of the machine's before a warning says so."""

_log = logging.getLogger("ropewalk.store")


class SqliteStore:
    """The store of the process that owns it."""

    def __init__(self, path: str, worker: str, version: str, inline_rows: int, wall: int | None,
                 is_thrown_away: bool) -> None:  # fmt: skip
        """Takes ownership and brings the database up to date; use `open`."""
        self.path = path
        self.worker = worker
        self.inline_rows = inline_rows
        self._is_thrown_away = is_thrown_away
        # A process that owns its store hears of no others, and loses it only by a write that is refused.
        self.load = 0
        self.on_hint: Callable[[list[str]], None] = lambda topics: None
        self.on_lost: Callable[[str], None] = lambda why: None
        self.blobs = BlobFiles(f"{os.path.realpath(path)}.blobs")
        self._statements = statements()
        self._turn = asyncio.Lock()
        self._holder: asyncio.Task[object] | None = None
        # What the thread has begun with before any task had the turn; the next task with the turn waits for that.
        self._begun: asyncio.Future[None] | None = None
        self._is_closed = False
        self._soundness = Soundness(path)
        with ExitStack() as undo:
            self._ownership = Ownership(path, _time_of_day(wall))
            undo.callback(self._ownership.release, is_closed=False)
            left = self._ownership.left
            self._connection = connect_writer(path, _time_of_day(wall), left, is_synced=not is_thrown_away)
            undo.callback(self._connection.close)
            # Asked anew: opening may take a second, and a process that goes by the time of day would stay ahead of us.
            self._start_clock(_time_of_day(wall))
            self.epoch = self._register(version)
            self._writer = Writer(self._connection, path, worker, self.epoch, self._soundness, self.now, self._began_at)
            self._reader = SqliteReader(path)
            self._reader.on_trouble = self._soundness.note_reading
            self._ownership.set_files(self._soundness.watch())
            self.blobs.sweep()
            undo.pop_all()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ropewalk-store")

    @classmethod
    async def open(
        cls,
        path: str,
        *,
        create: bool = True,
        worker: str = WORKER,
        version: str = "",
        inline_rows: int = INLINE_ROWS,
        wall: int | None = None,
        is_thrown_away: bool = False,
    ) -> Self:
        """The store at `path`, owned by this process until `close`; `wall` is the time of day in µs, by default now.

        One that is thrown away after a test is not synced to the disk, and its time can be moved by `skip`.
        """
        with at_the_door(path):
            check_path(path, create=create)
            return cls(path, worker, version, inline_rows, wall, is_thrown_away)

    def _start_clock(self, wall: int) -> None:
        latest = self._connection.execute(self._statements["latest_mark"]).fetchone()[0]
        # What was committed after the last mark is less than one interval younger.
        self._began_at = wall if latest is None else max(wall, latest + MARK_EVERY)
        if self._began_at - wall > MUCH_AHEAD:
            _log.warning(
                "the time of %s is %s s ahead of this machine's clock, which was ahead once or is behind now; waits "
                "until a moment end that much early: `ropewalk doctor` says more, `ropewalk reset-clock` mends it",
                self.path, f"{(self._began_at - wall) // 1_000_000:,}",
            )  # fmt: skip
        self._offset = self._began_at - ticks()

    def _register(self, version: str) -> int:
        row = (self.worker, writable(socket.gethostname()), os.getpid(), version, "default", 0, self._began_at)
        epoch: int = self._connection.execute(self._statements["register_worker"], row).fetchone()[0]
        return epoch

    @property
    def stale_writes(self) -> int:
        """How many writes were refused because another process had taken the store over."""
        return self._writer.stale_writes

    def now(self) -> int:
        """Store time (µs): never before anything the store has recorded, and never going back."""
        # As `ticks` says; asked several times for every execution.
        return self._offset + clock_gettime_ns(TICKING) // 1000

    def skip(self, length: int) -> None:
        """Move store time forward by so many µs; only a store that is thrown away after a test may do that."""
        if not self._is_thrown_away or length < 0:
            raise ValueError("time is moved forward only, and only of a store that is thrown away")
        self._offset += length

    # There is one worker

    is_shared = False
    lease_seconds = 0.0
    rewinds: Sequence[Rewind] = ()

    def hint(self, topic: str) -> None:
        """There is no other worker to tell."""

    async def tell_time(self) -> None:
        """There is one clock."""

    async def departed(self) -> list[str]:
        """There is no other worker that could be gone."""
        return []

    async def rejoin(self) -> None:
        """A process that lost an embedded store has lost it to another process."""
        raise StaleWriter(taken_over(self.path))

    def set_socket(self, path: str | None) -> None:
        """Says in the lock file where this process can be spoken to."""
        self._ownership.set_socket(path)

    # Reading

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        """Every row the statement gives, of what is committed; waits for no writer."""
        return await self._reader.fetch(name, *arguments)

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        """The first row the statement gives, if any."""
        rows = await self._reader.fetch(name, *arguments)
        return rows[0] if rows else None

    async def scan(self, name: str, *arguments: Value) -> list[Row]:
        """Like `fetch`, for what takes its time: in a thread."""
        return await self._reader.scan(name, *arguments)

    # Writing

    def prepared(self, batch: Batch) -> Message:
        """The same batch in the words it is written in, which a thread would need the interpreter for."""
        return batch if isinstance(batch, Message) else Message(batch)

    def write(self, batch: Batch) -> Awaitable[None]:
        """Writes the batch as one transaction, durable on return. Cancelling the wait does not undo the commit.

        A large one is begun with at once if no task has the turn.
        """
        message = self.prepared(batch)
        is_small = self._is_brief(message.rows) and message.size <= INLINE_BYTES
        if not is_small and self._is_at_rest():
            self._begun = asyncio.get_running_loop().run_in_executor(self._thread, self._writer.write, message)
            return finished(self._begun)
        return self._write_in_turn(message, is_small)

    async def _write_in_turn(self, message: Message, is_small: bool) -> None:
        self._check_turn()
        async with self._turn:
            await self._rest()
            if is_small:
                self._writer.write(message)
            else:
                await self._in_thread(partial(self._writer.write, message))

    def _is_brief(self, rows: int) -> bool:
        """Whether writing so many rows keeps the loop for less time than it takes to ask the thread."""
        return rows <= self.inline_rows and not self._writer.is_slow

    def _is_at_rest(self) -> bool:
        """Whether no task has the turn, and the thread has nothing to do."""
        is_idle = self._begun is None or self._begun.done()
        return is_idle and not self._turn.locked() and self._soundness.stopped is None

    async def _rest(self) -> None:
        """Waits for what was begun with before this turn."""
        while self._begun is not None and not self._begun.done():
            await asyncio.wait((self._begun,))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SqliteTransaction]:
        """Several statements as one, durable at the end; undone by an exception. No other task writes meanwhile."""
        self._check_turn()
        async with self._turn:
            await self._rest()
            self._soundness.require_usable()
            self._holder = asyncio.current_task()
            transaction = SqliteTransaction(self._writer, self._execute_many)
            try:
                self._writer.begin()
                changes = self._connection.total_changes
                yield transaction
                await self._finish(self._connection.total_changes - changes)
            except sqlite3.Error as error:
                raise self._writer.ours(error) from error
            finally:
                self._writer.undo()
                transaction.end()
                self._holder = None

    async def _execute_many(self, name: str, rows: Sequence[Sequence[Value]]) -> None:
        """For a transaction: one statement for many rows, on the thread if they are more than the loop has time for."""
        work = partial(self._writer.execute_many, name, rows)
        if len(rows) <= self.inline_rows:
            work()
        else:
            await self._in_thread(work)

    async def close(self) -> None:
        """Gives the store up, whole and in one file. Twice is once."""
        async with self._turn:
            await self._rest()
            if self._is_closed:
                return
            self._is_closed = True
            is_sound = self._soundness.is_sound()
            self._soundness.stopped = self._soundness.stopped or StoreUnavailable(
                f"{self.path} was closed: open it again"
            )
            try:
                if isinstance(self._soundness.stopped, StoreDamaged):
                    # While readers are there, SQLite does not apply the log: the file may be a restored one.
                    self._connection.close()
                await self._reader.close()
                await asyncio.to_thread(self._thread.shutdown)
                self._connection.close()
            finally:
                self._ownership.release(is_closed=is_sound)

    async def _finish(self, changes: int) -> None:
        if self._is_brief(changes):
            self._writer.commit()
        else:
            await self._in_thread(self._writer.commit)
        self._soundness.require_files()

    async def check(self) -> None:
        """Raises what keeps the store from being read or written now, if anything does."""
        self._soundness.require_read()
        await self.fetch_one("latest_mark")
        # Nothing of its own: it leaves the time there, asks whether we may write, and where the files are.
        async with self.transaction():
            return

    def check_files(self) -> None:
        """Raises StoreReplaced if other files are at the path than those that are open here."""
        self._soundness.require_usable()
        self._soundness.require_files()

    def _check_turn(self) -> None:
        if self._holder is not None and self._holder is asyncio.current_task():
            raise RuntimeError("this task is inside a transaction already: use that one")

    async def _in_thread(self, work: Callable[[], None]) -> None:
        """Does the work on the writer's thread; waits for its end even when cancelled: the turn is kept till then."""
        await finished(asyncio.get_running_loop().run_in_executor(self._thread, work))


def _time_of_day(wall: int | None) -> int:
    """In µs; as it is now, unless a test says which."""
    return time.time_ns() // 1000 if wall is None else wall
