"""Writing the store: one connection, one turn at a time, group commits.

Every transaction takes the turn (first come, first served), starts by asking whether this process may still write, and
is on the disk when it returns. A small one is committed on the calling thread, since a hop to another costs more than
the commit; a large one on the writer's thread, so that the loop lives on.

A COMMIT that fails is rolled back, and that is definite: the next one overwrites whatever reached the write-ahead log.
The exception is a sync that failed: nobody knows what is on the disk, so the store refuses to write until it is opened
anew, and recovery tells. A store in which damage was found, in reading or in writing, is not written any more either,
nor is one whose files are no longer at their path. That is asked after every commit and before it is acknowledged.
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
from ropewalk.core.errors import RopewalkError
from ropewalk.store.access import Batch, Rewind, Row, Value
from ropewalk.store.blobs import BlobFiles
from ropewalk.store.clock import TICKING, ticks
from ropewalk.store.errors import StaleWriter, StoreDamaged, StoreUnavailable
from ropewalk.store.finishing import finished
from ropewalk.store.sqlite.bulk import Commits, Message, carry_out
from ropewalk.store.sqlite.connection import check_path, connect_writer, statements
from ropewalk.store.sqlite.faults import at_the_door, is_stale, is_unsure, translated
from ropewalk.store.sqlite.ownership import Ownership
from ropewalk.store.sqlite.reader import SqliteReader
from ropewalk.store.sqlite.soundness import Soundness
from ropewalk.store.texts import normal, normal_rows

WORKER: Final = "local"
INLINE_ROWS: Final = 256
"""So many rows are written, in about a millisecond, before a thread gets its turn beside a busy loop."""
INLINE_BYTES: Final = 64 * 1024
"""So much of log entries is written without a thread."""
SLOW: Final = 5_000
"""A disk that takes longer over a commit (µs) is waited for by the thread, until it is faster again."""
MUCH_AHEAD: Final = 5_000_000
"""How far (µs) store time may be ahead of the machine's before anybody is told."""
MARK_EVERY: Final = 50_000
"""Store time is left in the database at most this often (µs), with a commit that happens anyway."""

_log = logging.getLogger("ropewalk.store")


class SqliteTransaction:
    """One transaction, between `async with store.transaction()` and its end."""

    def __init__(self, store: "SqliteStore") -> None:
        self.worker = store.worker
        self._store: SqliteStore | None = store

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        """Every row the statement gives, what was written before in this transaction included."""
        return self._opened().execute(name, arguments).fetchall()

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        """The first row the statement gives, if any."""
        rows = await self.fetch(name, *arguments)
        return rows[0] if rows else None

    async def execute(self, name: str, *arguments: Value) -> int:
        """Carries the statement out; how many rows it touched."""
        return self._opened().execute(name, arguments).rowcount

    async def execute_many(self, name: str, rows: Sequence[Sequence[Value]]) -> None:
        """Carries the statement out once per row."""
        await self._opened().execute_many(name, rows)

    def end(self) -> None:
        """Nothing more may be done with it."""
        self._store = None

    def _opened(self) -> "SqliteStore":
        if self._store is None:
            raise RuntimeError("the transaction is over")
        return self._store


class SqliteStore:
    """The store of the process that owns it."""

    def __init__(self, path: str, worker: str, version: str, inline_rows: int, wall: int | None,
                 is_thrown_away: bool) -> None:  # fmt: skip
        """Takes ownership and brings the database up to date; use `open`."""
        self.path = path
        self.worker = worker
        self.inline_rows = inline_rows
        self._is_thrown_away = is_thrown_away
        self.stale_writes = 0
        # A process that owns its store hears of nobody, and loses it only by a write that is refused.
        self.load = 0
        self.on_hint: Callable[[list[str]], None] = lambda topics: None
        self.on_lost: Callable[[str], None] = lambda why: None
        self.blobs = BlobFiles(f"{os.path.realpath(path)}.blobs")
        self._statements = statements()
        # Whether the disk took long over the last commit: the loop does not wait for the next one.
        self._is_slow = False
        self._turn = asyncio.Lock()
        self._holder: asyncio.Task[object] | None = None
        # What the thread has begun with before anyone had the turn; whoever gets it waits for that.
        self._begun: asyncio.Future[None] | None = None
        self._is_closed = False
        self._soundness = Soundness(path)
        with ExitStack() as undo:
            self._ownership = Ownership(path, _time_of_day(wall))
            undo.callback(self._ownership.release, is_closed=False)
            left = self._ownership.left
            self._connection = connect_writer(path, _time_of_day(wall), left, is_synced=not is_thrown_away)
            undo.callback(self._connection.close)
            # Asked anew: opening may take a second, and whoever goes by the time of day would be ahead of us for good.
            self._start_clock(_time_of_day(wall))
            self.epoch = self._register(version)
            self._commits = Commits(self._connection, worker, self.epoch)
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
        self._marked = self._now = self._began_at

    def _register(self, version: str) -> int:
        row = (self.worker, writable(socket.gethostname()), os.getpid(), version, "default", 0, self._began_at)
        epoch: int = self._connection.execute(self._statements["register_worker"], row).fetchone()[0]
        return epoch

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
        """There is nobody else to tell."""

    async def tell_time(self) -> None:
        """There is one clock."""

    async def departed(self) -> list[str]:
        """There is nobody who could."""
        return []

    async def rejoin(self) -> None:
        """Whoever lost an embedded store has lost it to another process."""
        raise StaleWriter(f"{self.path} was taken over by another process; this one writes no more")

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

        A large one is begun with at once if it is nobody else's turn.
        """
        message = self.prepared(batch)
        is_small = self._is_brief(message.rows) and message.size <= INLINE_BYTES
        if not is_small and self._is_at_rest():
            self._begun = asyncio.get_running_loop().run_in_executor(self._thread, self._write, message)
            return finished(self._begun)
        return self._write_in_turn(message, is_small)

    async def _write_in_turn(self, message: Message, is_small: bool) -> None:
        self._check_turn()
        async with self._turn:
            await self._rest()
            if is_small:
                self._write(message)
            else:
                await self._in_thread(partial(self._write, message))

    def _is_brief(self, rows: int) -> bool:
        """Whether writing so many rows keeps the loop for less time than it takes to ask the thread."""
        return rows <= self.inline_rows and not self._is_slow

    def _is_at_rest(self) -> bool:
        """Whether it is nobody's turn, and the thread has nothing to do."""
        is_idle = self._begun is None or self._begun.done()
        return is_idle and not self._turn.locked() and self._soundness.stopped is None

    async def _rest(self) -> None:
        """Waits for what was begun with before this turn."""
        while self._begun is not None and not self._begun.done():
            await asyncio.wait((self._begun,))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SqliteTransaction]:
        """Several statements as one, durable at the end; undone by an exception. Nobody else writes meanwhile."""
        self._check_turn()
        async with self._turn:
            await self._rest()
            self._soundness.require_usable()
            self._holder = asyncio.current_task()
            transaction = SqliteTransaction(self)
            try:
                self._begin()
                changes = self._connection.total_changes
                yield transaction
                await self._finish(self._connection.total_changes - changes)
            except sqlite3.Error as error:
                raise self._ours(error) from error
            finally:
                self._undo()
                transaction.end()
                self._holder = None

    def execute(self, name: str, arguments: Sequence[Value]) -> sqlite3.Cursor:
        """For a transaction: one statement, here and now."""
        try:
            return self._connection.execute(self._statements[name], normal(arguments))
        except sqlite3.Error as error:
            raise self._ours(error) from error

    async def execute_many(self, name: str, rows: Sequence[Sequence[Value]]) -> None:
        """For a transaction: one statement for many rows, where there is room for it."""
        work = partial(self._execute_many, name, rows)
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

    # One transaction, step by step

    def _write(self, message: Message) -> None:
        self._soundness.require_usable()
        try:
            self._now = self.now()
            if message.forms:
                mark = self._now if self._is_to_be_marked() else None
                self._commits.write(message, mark)
                self._marked = mark or self._marked
            else:
                self._write_row_by_row(message)
            self._soundness.require_files()
            self._is_slow = self.now() - self._now > SLOW
        except sqlite3.Error as error:
            raise self._ours(error) from error
        finally:
            self._undo()

    def _write_row_by_row(self, batch: Batch) -> None:
        self._begin()
        for name, rows in batch:
            self._connection.executemany(self._statements[name], normal_rows(rows))
        self._commit()

    def _begin(self) -> None:
        """Opens the transaction, and refuses to go on if another process has raised the epoch."""
        self._connection.execute("begin immediate")
        self._now = self.now()
        if not self._is_current():
            raise self._stale()

    def _stale(self) -> StaleWriter:
        self.stale_writes += 1
        return StaleWriter(f"{self.path} was taken over by another process; this one writes no more")

    def _is_to_be_marked(self) -> bool:
        return self._now - self._marked >= MARK_EVERY

    def _is_current(self) -> bool:
        if not self._is_to_be_marked():
            asked = self._connection.execute(self._statements["check_epoch"], (self.worker, self.epoch))
            return asked.fetchone() is not None
        marked = self._connection.execute(self._statements["mark_time"], (self._now, self.worker, self.epoch))
        return marked.rowcount == 1

    def _commit(self) -> None:
        began = self.now()
        self._connection.execute("commit")
        self._is_slow = self.now() - began > SLOW
        if self._is_to_be_marked():
            self._marked = self._now

    async def _finish(self, changes: int) -> None:
        if self._is_brief(changes):
            self._commit()
        else:
            await self._in_thread(self._commit)
        self._soundness.require_files()

    def _undo(self) -> None:
        """Rolls back what was not committed, if anything."""
        if self._connection.in_transaction:
            self._connection.execute("rollback")

    def _execute_many(self, name: str, rows: Sequence[Sequence[Value]]) -> None:
        try:
            carry_out(self._connection, name, self._statements[name], rows)
        except sqlite3.Error as error:
            raise self._ours(error) from error

    def _ours(self, error: sqlite3.Error) -> RopewalkError:
        if is_stale(error):
            return self._stale()
        ours = translated(error, self.path, is_ours=True)
        self._soundness.note_damage(ours)
        if is_unsure(error):
            self._soundness.note_failed_sync()
        return ours

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
