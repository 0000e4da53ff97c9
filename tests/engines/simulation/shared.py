"""A store that several workers share, in virtual time: what PostgreSQL promises a fleet, kept by one SQLite file.

All workers of a history are in one process here, so one connection serves them in turns; a transaction's statements
follow each other without a pause, which is the strictest of all isolations. Everything else is as it is in a fleet:
calls take their time, every write asks first whether its worker may still write, the lease is renewed by a heartbeat
that goes on while the loop is blocked, and hints come late, twice or never.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from random import Random

from msgspec import Struct

from ropewalk.store.access import Batch, Rewind, Row, Value
from ropewalk.store.blobs import BlobFiles
from ropewalk.store.errors import StaleWriter, StoreUnavailable
from ropewalk.store.sqlite.connection import connect_writer, statements
from ropewalk.store.sqlite.faults import translated
from tests.engines.simulation.faults import Faults
from tests.engines.simulation.heartbeat import Heartbeat
from tests.engines.simulation.loop import Actor
from tests.engines.simulation.watch import Watch

EPOCH = 1_750_000_000_000_000
LEASE = 15.0
GRACE = 3.0
LATENCIES = (0, 0, 0, 0.0005, 0.02)
HINT_DELAYS = (0, 0.001, 0.3, 4)
HINTS_LOST = 0.2
HINTS_DOUBLED = 0.1


class Database:
    """The one file, who is connected to it, and who watches over it."""

    def __init__(self, path: str, chance: Random, slots: dict[str, int | None], sometimes: Counter[str]) -> None:
        self.path = path
        self.chance = chance
        self.connection = connect_writer(path, EPOCH)
        self.connection.execute("pragma synchronous = off")
        # The workers whose session the database sees; behind a pooler, none.
        self.sessions: dict[str, None] = {}
        self.is_pooled = chance.random() < 0.3
        self.stores: list[SharedStore] = []
        limits = {name: limit for name, limit in slots.items() if limit is not None}
        self.watch = Watch(self.connection, limits, sometimes)
        for workspace, limit in slots.items():
            self.connection.execute(statements()["ensure_workspace"], (workspace, "ENTERPRISE", limit, EPOCH))

    def now(self) -> int:
        """The only time that counts (µs)."""
        return EPOCH + round(asyncio.get_running_loop().time() * 1_000_000)

    def ask(self, name: str, *arguments: Value) -> list[Row]:
        """Every row the statement gives, of what is committed: nobody is in the middle of anything."""
        assert not self.connection.in_transaction, "a transaction has let others run"
        return self.connection.execute(statements()[name], arguments).fetchall()

    def epoch_of(self, worker: str) -> int:
        """Under which epoch the worker may write; 0 for one that is not registered."""
        found = self.ask("last_commit", worker)
        return int(found[0][0]) if found else 0

    def owner_of(self, execution: str) -> str | None:
        """Whose the execution is."""
        found = self.ask("get_live", execution)
        return found[0][2] if found else None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside counts together, or not at all."""
        try:
            self.connection.execute("begin immediate")
            yield
            self.connection.execute("commit")
        except sqlite3.Error as error:
            raise translated(error, self.path) from error
        finally:
            if self.connection.in_transaction:
                self.connection.execute("rollback")

    def spread(self, topic: str) -> None:
        """Tell everyone, perhaps."""
        for store in self.stores:
            if self.chance.random() >= HINTS_LOST:
                self._hint(store, topic)

    def _hint(self, store: "SharedStore", topic: str) -> None:
        for _ in range(2 if self.chance.random() < HINTS_DOUBLED else 1):
            delay = self.chance.choice(HINT_DELAYS)
            asyncio.get_running_loop().call_later(delay, store.hear, topic, context=store.actor.context)

    def close(self) -> None:
        self.connection.close()


class Clock(Struct):
    """Store time as a worker knows it: what it last heard, plus what its clock says has passed; never going back."""

    error: int
    drift: float
    offset: int = 0
    latest: int = 0

    def learn(self, heard: int) -> None:
        self.offset = heard + self.error - self._ticks()

    def reach(self, heard: int) -> None:
        self.latest = max(self.latest, heard)

    def now(self) -> int:
        self.reach(self.offset + self._ticks())
        return self.latest

    def _ticks(self) -> int:
        return round(asyncio.get_running_loop().time() * 1_000_000 * (1 + self.drift))


class SharedTransaction:
    """One transaction of one worker."""

    def __init__(self, store: "SharedStore") -> None:
        self.worker = store.worker
        self._store = store

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        return self._store.carry_out(name, arguments).fetchall()

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        rows = await self.fetch(name, *arguments)
        return rows[0] if rows else None

    async def execute(self, name: str, *arguments: Value) -> int:
        return self._store.carry_out(name, arguments).rowcount

    async def execute_many(self, name: str, rows: Sequence[Sequence[Value]]) -> None:
        for row in rows:
            self._store.carry_out(name, row)


class SharedStore:
    """The shared store, as one worker has it."""

    is_shared = True
    lease_seconds = LEASE

    def __init__(self, database: Database, faults: Faults, about: "Registration", actor: Actor, clock: Clock) -> None:
        self.database = database
        self.faults = faults
        self.about = about
        self.actor = actor
        self.path = database.path
        self.worker = about.name
        self.epoch = 0
        self.load = 0
        self.stale_writes = 0
        self.rewinds: Sequence[Rewind] = ()
        self.on_lost: Callable[[str], None] = lambda why: None
        self.on_hint: Callable[[list[str]], None] = lambda topics: None
        self.blobs = BlobFiles(f"{database.path}.blobs")
        self.clock = clock
        self.heartbeat: Heartbeat | None = None
        self._turn = asyncio.Lock()
        self._lost: str | None = None
        self._names = 1
        self._is_closed = False
        self._vanished: dict[str, int] = {}

    # Coming and going

    async def open(self) -> None:
        await self._join()
        self.database.stores.append(self)

    async def _join(self) -> None:
        fate = await self.faults.before()
        now, about = self.database.now(), self.about
        with self.database.transaction():
            row = (self.worker, "host", 1, "", about.pool, about.slots, now)
            self.epoch = self.database.connection.execute(statements()["register_worker"], row).fetchone()[0]
        self.clock.learn(now)
        await self.faults.after(fate)
        self.heartbeat = Heartbeat(self)
        self.heartbeat.open()

    async def rejoin(self) -> None:
        """Comes back under another name."""
        async with self._turn:
            await self._part()
            self._names += 1
            self.worker = f"{self.about.name}.{self._names}"
            await self._join()
            self._lost = None

    async def _part(self) -> None:
        heartbeat, self.heartbeat = self.heartbeat, None
        if heartbeat is not None:
            await heartbeat.leave()

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            if self in self.database.stores:
                self.database.stores.remove(self)
            await self._part()

    def lose(self, why: str) -> None:
        """Writes no more, and says so to the engine."""
        if self._lost is None and not self._is_closed:
            self._lost = why
            asyncio.get_running_loop().call_soon(lambda: self.on_lost(why), context=self.actor.context)

    def now(self) -> int:
        return self.clock.now()

    async def check(self) -> None:
        async with self.transaction():
            return

    async def tell_time(self) -> None:
        await self._travel()
        await self.faults.asked()
        self.clock.reach(self.database.now())

    # Hints

    def hint(self, topic: str) -> None:
        self.database.spread(topic)

    def hear(self, topic: str) -> None:
        if not self._is_closed:
            self.on_hint([topic])

    async def departed(self) -> list[str]:
        """The workers whose session is gone for a while, though they never said that they leave."""
        await self.faults.asked()
        now, sessions = self.database.now(), self.database.sessions
        watched = [row[0] for row in self.database.ask("watched_workers")]
        if self.database.is_pooled or self.worker not in sessions:
            watched = []
        self._vanished = {each: self._vanished.get(each, now) for each in watched if each not in sessions}
        return [each for each, since in self._vanished.items() if now - since >= GRACE * 1_000_000]

    # Reading

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        await self._travel()
        await self.faults.asked()
        rows = self.database.ask(name, *arguments)
        await self._travel()
        await self.faults.asked()
        return rows

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        rows = await self.fetch(name, *arguments)
        return rows[0] if rows else None

    async def scan(self, name: str, *arguments: Value) -> list[Row]:
        return await self.fetch(name, *arguments)

    # Writing

    def prepared(self, batch: Batch) -> Batch:
        return batch

    async def write(self, batch: Batch) -> None:
        worker = self.worker
        async with self._turn:
            if worker != self.worker:
                self.stale_writes += 1
                raise StoreUnavailable(f"{worker} has come back as {self.worker}: nothing of this was written")
            async with self._committing():
                # What is expected is so before anything is written.
                for name, rows in sorted(batch, key=lambda each: each[0] != "expect_live"):
                    self.database.watch.look_at(self.worker, name, rows)
                    if name != "expect_live":
                        self.database.connection.executemany(statements()[name], rows)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SharedTransaction]:
        async with self._committing():
            yield SharedTransaction(self)

    @asynccontextmanager
    async def _committing(self) -> AsyncIterator[None]:
        await self._travel()
        fate = await self.faults.before()
        with self._refusals_counted(), self.database.transaction():
            self._check_epoch()
            self.database.watch.begin()
            yield
            self.database.watch.before_commit(self.worker, self.epoch)
        await self._travel()
        await self.faults.after(fate)

    def _check_epoch(self) -> None:
        """The fence: first in every transaction."""
        if self._is_closed:
            raise StoreUnavailable(f"{self.path} was closed: open it again")
        if self._lost is not None:
            raise StaleWriter(self._lost)
        if not self.database.connection.execute(statements()["check_epoch"], (self.worker, self.epoch)).fetchone():
            raise StaleWriter(f"worker {self.worker} was taken over from; it writes no more")

    @contextmanager
    def _refusals_counted(self) -> Iterator[None]:
        try:
            yield
        except StaleWriter as error:
            self.stale_writes += 1
            self.lose(str(error))
            raise

    def carry_out(self, name: str, arguments: Sequence[Value]) -> sqlite3.Cursor:
        """For a transaction: one statement, here and now."""
        self.database.watch.look_at(self.worker, name, [arguments])
        try:
            return self.database.connection.execute(statements()[name], arguments)
        except sqlite3.Error as error:
            raise translated(error, self.path) from error

    async def _travel(self) -> None:
        """Every call is a round trip: others go on meanwhile."""
        await asyncio.sleep(self.database.chance.choice(LATENCIES))


class Registration(Struct, frozen=True):
    """What others are told of a worker."""

    name: str
    pool: str
    slots: int
