"""The shared store, as one worker has it.

Group commits go through the writer, one at a time. Everything else that changes something is a transaction on a
connection of a small pool, whose first statement asks whether this worker may still write and keeps it so to the end.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final, Self

from ropewalk.store.access import Batch, Rewind, Row, Value
from ropewalk.store.clock import SharedClock, ticks
from ropewalk.store.errors import StaleWriter, StoreDefect, StoreUnavailable, WentBack
from ropewalk.store.finishing import finished
from ropewalk.store.postgres.blobs import PostgresBlobs, with_blobs
from ropewalk.store.postgres.connection import CHANGING, Address, Connection, begun, closed, parsed, statements, undone
from ropewalk.store.postgres.faults import at_the_door
from ropewalk.store.postgres.heartbeat import HELD, Heartbeat, lock_key
from ropewalk.store.postgres.migrating import DATABASE_TIME, migrate
from ropewalk.store.postgres.notices import Notices
from ropewalk.store.postgres.reader import Pool, PostgresReader
from ropewalk.store.postgres.registration import Registration, checked_name, unique_name
from ropewalk.store.postgres.transaction import PostgresTransaction
from ropewalk.store.postgres.writer import PATIENCE_SECONDS, Writer, refused, taken_over

LEASE_SECONDS: Final = 15.0
BEAT_SECONDS: Final = 5.0
GRACE_SECONDS: Final = 1.5
_MIGRATION: Final = "ropewalk migration"


def _no_one(_: object) -> None:
    """The default of `on_lost` and `on_hint`: the engine has not asked to be called yet."""


class PostgresStore:
    """The store of one worker among others."""

    is_shared: Final = True

    def __init__(self, address: Address, worker: Registration, lease: float, beat: float, patience: float) -> None:
        """Not connected yet; use `open`."""
        self.path = address.place
        self.worker = worker.id
        self.lease_seconds = lease
        self.beat_seconds = beat
        self.epoch = 0
        self.load = 0
        self.stale_writes = 0
        self.rewinds: list[Rewind] = []
        self.on_lost: Callable[[str], None] = _no_one
        self.on_hint: Callable[[list[str]], None] = _no_one
        self.blobs = PostgresBlobs(self)
        self._address = address
        self._registration = worker
        self._patience = patience
        self._clock = SharedClock()
        self._loop = asyncio.get_running_loop()
        self._turn = asyncio.Lock()
        self._inside: set[asyncio.Task[object]] = set()
        self._lost: StaleWriter | None = None
        self._vanished: dict[str, int] = {}
        self._is_closed = False
        self._answered_last = 0
        self._reader = PostgresReader(address)
        self._pool = Pool(address, CHANGING, self._changes, is_bounded=True)
        self._writer: Writer | None = None
        self._heartbeat: Heartbeat | None = None
        self._notices: Notices | None = None

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        worker: str | None = None,
        version: str = "",
        pool: str = "default",
        slots: int = 0,
        lease_seconds: float = LEASE_SECONDS,
        beat_seconds: float = BEAT_SECONDS,
        notify: bool = True,
        pooled: bool = False,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> Self:
        """The store at this address, brought up to date, with this worker registered and alive until `close`.

        `pooled`: a transaction pooler is in between, so there is no session to keep anything in.
        """
        about = Registration(unique_name() if worker is None else checked_name(worker), version, pool, slots)
        store = cls(parsed(url, is_pooled=pooled), about, lease_seconds, beat_seconds, patience_seconds)
        try:
            await store._connect()
            await store._join()
        except BaseException:
            await store.close()
            raise
        if notify and not pooled:
            store._notices = Notices(store._address, store.worker, store._heard)
            store._notices.open()
        return store

    async def rejoin(self) -> None:
        """Comes back under another name: what the old one owned is left to the worker that takes over from it."""
        async with self._turn:
            self._require_open()
            await self._part()
            await self._look_back()
            self.worker, self.epoch = unique_name(), 0
            await self._pool.rename(self._changes)
            await self._join()
            self._lost = None

    async def _connect(self) -> None:
        with at_the_door(self.path):
            connection = await self._address.connect(CHANGING, _MIGRATION)
            try:
                self._address.require_version(connection)
                async with self._address.whole(connection, CHANGING, _MIGRATION):
                    await migrate(connection, self.path)
            finally:
                await closed(connection)
            await self._reader.connect()
            await self._pool.open()

    async def _join(self) -> None:
        """Registers the worker, and keeps it alive from now on."""
        async with self._pool.asking() as connection:
            now = await connection.fetchval(f"select {DATABASE_TIME}")
            self._clock.learn(now, ticks())
            about = self._registration.row(now)
            self.epoch = await connection.fetchval(statements()["register_worker"], self.worker, *about)
        self._writer = Writer(
            self._address, self.worker, self.epoch, self._require_usable,
            lease=self.lease_seconds, patience=self._patience,
        )  # fmt: skip
        with at_the_door(self.path):
            await self._writer.open()
        self._heartbeat = Heartbeat(
            self._address, self.worker, self.epoch, self._clock,
            lease=self.lease_seconds, beat=self.beat_seconds, load=lambda: self.load, answered=self._answered,
            lose=self._lose,
        )  # fmt: skip
        await self._heartbeat.open()

    def _answered(self) -> int:
        return self._writer.answered if self._writer is not None else self._answered_last

    def _refusal(self, row: Sequence[Any] | None) -> StaleWriter | None:
        return refused(row, self.worker, self.epoch, self._answered())

    async def _look_back(self) -> None:
        """What was committed under the old name must be there, for any reason the lease was lost."""
        if not self.epoch:
            return  # it tried to come back under this name, and never was
        async with self._pool.asking() as connection:
            why = self._refusal(await connection.fetchrow(statements()["last_commit"], self.worker))
        if isinstance(why, WentBack):
            self._note(why)

    def _note(self, why: WentBack) -> None:
        """The database went back; one loss is noted once."""
        if not self.rewinds or self.rewinds[-1].worker != self.worker:
            self.rewinds.append(Rewind(self.now(), self.worker, str(why)))

    async def _part(self) -> None:
        """Lets go of what belongs to the worker alone."""
        self._answered_last = self._answered()
        for part in (self._heartbeat, self._writer):
            if part is not None:
                await part.close()
        self._heartbeat = self._writer = None

    def now(self) -> int:
        """The database's time (µs) as this worker knows it, never going back."""
        return self._clock.now()

    async def tell_time(self) -> None:
        """From now on `now()` is not before this moment."""
        [[heard]] = await self._reader.ask(f"select {DATABASE_TIME}")
        self._clock.reach(heard)

    # Reading

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        """Every row the statement gives, of what is committed; waits for no writer."""
        return await self._reader.fetch(name, *arguments)

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        """The first row the statement gives, if any."""
        return await self._reader.fetch_one(name, *arguments)

    async def scan(self, name: str, *arguments: Value) -> list[Row]:
        """Like `fetch`, for what takes its time."""
        return await self._reader.scan(name, *arguments)

    async def departed(self) -> list[str]:
        """The workers whose session the database has seen end a while ago, though they never said that they leave.

        A worker that only lost its connection is back within a second or two, also after a restart of the database.
        """
        watched = [worker for (worker,) in await self._reader.fetch("watched_workers")]
        held = {key for (key,) in await self._reader.ask(HELD)}
        now = ticks()
        if self._heartbeat is None or not self._heartbeat.has_lock:
            # The cause that ended our own session may have ended theirs.
            held.update(map(lock_key, watched))
        self._vanished = {worker: self._vanished.get(worker, now) for worker in watched if lock_key(worker) not in held}
        return [worker for worker, since in self._vanished.items() if now - since >= GRACE_SECONDS * 1_000_000]

    # Writing

    def prepared(self, batch: Batch) -> Batch:
        """The same batch, ready to be sent."""
        return batch if self._writer is None else self._writer.prepared(batch)

    async def write(self, batch: Batch) -> None:
        """Writes the batch as one transaction, durable on return. Cancelling the wait does not undo the commit."""
        self._check_turn()
        worker = self.worker
        async with self._turn:
            if worker != self.worker:
                # Decided on what was owned under the old name, and may be another worker's by now.
                self.stale_writes += 1
                raise StoreUnavailable(f"{worker} has come back as {self.worker}: nothing of this was written")
            await finished(asyncio.ensure_future(self._write(batch)))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[PostgresTransaction]:
        """Several statements as one, durable at the end; undone by an exception. Others may write meanwhile."""
        self._check_turn()
        with self._counting_refusals(self.worker):
            self._require_usable()
        task = asyncio.current_task()
        assert task is not None, "a transaction is some task's"
        async with self._pool.connection() as connection:
            transaction = PostgresTransaction(connection, self.worker, self.path)
            self._inside.add(task)
            try:
                with self._counting_refusals(self.worker), at_the_door(self.path):
                    await self._begin(connection)
                yield transaction
                transaction.end()
                with at_the_door(self.path):
                    await finished(asyncio.ensure_future(self._commit(connection)))
            finally:
                self._inside.discard(task)
                transaction.end()
                await undone(connection)

    async def check(self) -> None:
        """Raises what keeps the store from being read or written now, if anything does."""
        await self.fetch_one("latest_mark")
        async with self.transaction():
            return

    async def keep(self, name: str, *arguments: Value) -> None:
        """Carries one statement out that any worker may, this one or the one that took over from it."""
        async with self._pool.asking() as connection:
            await connection.execute(statements()[name], *arguments)

    def hint(self, topic: str) -> None:
        """Tells the others, soon and perhaps never, that there is something to look at."""
        if self._notices is not None:
            self._notices.hint(topic)

    async def close(self) -> None:
        """Leaves: other workers can take this one's executions without waiting for its lease. Twice is once."""
        if self._is_closed:
            return
        async with self._turn:
            self._is_closed = True
        if self._notices is not None:
            await self._notices.close()
        await self._part()
        await self._pool.close()
        await self._reader.close()

    # One commit, step by step

    async def _write(self, batch: Batch) -> None:
        blobs = self.blobs.unwritten()
        with self._counting_refusals(self.worker):
            self._require_usable()
            assert self._writer is not None, "an open store has a writer"
            if blobs:
                # In a commit before: parts of one statement have no order, and the bytes may be about to go.
                await self._writer.write(self.blobs.marks(blobs))
            await self._writer.write(with_blobs(batch, blobs))
        self.blobs.written(blobs)

    @property
    def _changes(self) -> str:
        """The name by which others know where we change something."""
        return f"ropewalk {self.worker} changes"

    async def _begin(self, connection: Connection) -> None:
        """Opens the transaction and keeps the other workers from taking over until its end, in one round trip."""
        check = statements()["check_epoch"].replace("$1", f"'{self.worker}'").replace("$2", str(self.epoch))
        opening = self._address.beginning(CHANGING, self._changes)
        status = await begun(connection, f"{opening}; {check}")
        if status != "SELECT 1":
            row = await connection.fetchrow(statements()["last_commit"], self.worker)
            raise self._refusal(row) or StaleWriter(taken_over(self.worker))

    @contextmanager
    def _counting_refusals(self, worker: str) -> Iterator[None]:
        """What is refused to this worker is known to be lost, unless it has come back under another name since."""
        try:
            yield
        except StaleWriter as error:
            self.stale_writes += 1
            if worker == self.worker:
                self._lose(error)
            raise

    async def _commit(self, connection: Connection) -> None:
        # PostgreSQL answers a commit after a refused statement with a rollback, and calls that a success.
        if await connection.execute("commit") != "COMMIT":
            raise StoreDefect("a transaction went on after one of its statements was refused: nothing of it was kept")

    def _require_open(self) -> None:
        if self._is_closed:
            raise StoreUnavailable(f"{self.path} was closed: open it again")

    def _require_usable(self) -> None:
        self._require_open()
        if self._lost is not None:
            raise type(self._lost)(str(self._lost))

    def _check_turn(self) -> None:
        if asyncio.current_task() in self._inside:
            raise RuntimeError("this task is inside a transaction already: use that one")

    # What others tell us

    def _lose(self, why: StaleWriter) -> None:
        """Writes no more, and says so to the engine; from any thread."""
        if self._lost is None and not self._is_closed:
            self._lost = why
            if isinstance(why, WentBack):
                self._note(why)
            with suppress(RuntimeError):  # the loop has ended, and there is no engine to be told
                self._loop.call_soon_threadsafe(lambda: self.on_lost(str(why)))

    def _heard(self, topics: list[str]) -> None:
        self.on_hint(topics)
