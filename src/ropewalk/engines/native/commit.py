"""Group commit: everything that became known while the last commit was under way goes into the next one.

Only after a commit are its commands carried out. So a node costs no commit of its own, and nothing runs
whose cause could be forgotten.
"""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Callable
from enum import Enum
from itertools import islice, takewhile
from operator import attrgetter

from ropewalk.core.errors import Conflict, Unavailable
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.parts import Committed, Part, Row, part_of
from ropewalk.engines.native.projecting import RowsByStatement
from ropewalk.store.access import Store
from ropewalk.store.errors import StoreUnavailable

LARGEST_BATCH = 500
"""So many executions are one commit at most. The store writes without the interpreter, on a thread or in another
process: while it does, the loop makes the next commit, if there is half of one to make."""
TURNS = 2
"""So many turns of the loop it takes a store to send what it is handed."""
MOST_TURNS = 10
"""So many at most is anyone kept by others who come first."""
_setbacks = attrgetter("setbacks")

_log = logging.getLogger("ropewalk.engine")


class Phase(Enum):
    """What the loop of commits is at; one of these at each moment, since a store writes one commit at a time."""

    RESTING = "there is nothing to write: a whole commit may begin at once, without waiting for the loop to come to it"
    WRITING = "the store has a commit: the next is made meanwhile, if it is worth while, and waits for this one"
    MAKING = "the store has none: the rows of a commit are made, or what the last one asks for is carried out"


class GroupCommit:
    """Gathers what executions have to say, writes it as one transaction, then lets them go on."""

    def __init__(
        self,
        store: Store,
        memory: Memory,
        carry_out: Callable[[list[Committed]], None],
        give_up: Callable[[list[Live], Exception], None],
    ) -> None:
        self._store = store
        self._memory = memory
        self._carry_out = carry_out
        self._give_up = give_up
        # Numbered in the order they came, which is the order they are taken in.
        self._dirty: dict[Live, int] = {}
        # Who must be written with whom.
        self._bound: dict[Live, list[Live]] = {}
        # Who must not be written with others.
        self._apart: dict[Live, None] = {}
        self._number = 0
        self._rows: list[tuple[str, Row]] = []
        self._wake = asyncio.Event()
        # Each waits for everyone up to that number.
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._phase = Phase.RESTING
        # Made while another was written; nothing of it is written unless that one is through.
        self._ready: Part | None = None
        # Handed to the store, which has begun with it, before the loop below has come to it.
        self._begun: Part | None = None
        # How many have yet to speak, and let a whole commit go first.
        self._giving_way = 0
        self.commits = 0
        self.limit(LARGEST_BATCH)
        # Whether an observer wants to see the rows once they are written; otherwise they are not kept so long.
        self.is_observed = False

    def limit(self, largest: int) -> None:
        """Write so many executions at most with one commit."""
        self.largest, self._half = largest, (largest + 1) // 2

    def open(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def add(self, live: Live) -> None:
        """This execution has something for the next commit."""
        if live.is_dirty or live.is_dropped:
            return
        live.is_dirty = True
        if not self._dirty:
            self._wake.set()
        self._number += 1
        self._dirty[live] = self._number
        if len(self._dirty) == self._half:
            asyncio.get_running_loop().call_soon(self._prepare)

    def add_row(self, statement: str, row: Row) -> None:
        """A row that belongs to no execution in particular."""
        self._rows.append((statement, row))
        self._wake.set()

    def bind(self, one: Live, other: Live) -> None:
        """What these two have for the next commit is true together, or not at all."""
        self._bound.setdefault(one, []).append(other)
        self._bound.setdefault(other, []).append(one)

    def set_apart(self, live: Live) -> None:
        """The first commit of this execution may be refused for a row that another server has written: it is made of
        such executions alone, and harms no other."""
        self._apart[live] = None

    def with_bound(self, lives: list[Live]) -> list[Live]:
        """These, and the executions bound to one of them that are not written yet; bound no more."""
        if not self._bound:
            return lives
        together = dict.fromkeys(lives)
        for live in (found := list(lives)):
            others = [other for other in self._bound.pop(live, ()) if other in self._dirty and other not in together]
            together |= dict.fromkeys(others)
            found += others
        return found

    def forget(self, live: Live) -> None:
        """What this execution had to say is not to be written."""
        self._dirty.pop(live, None)
        self._bound.pop(live, None)
        self._apart.pop(live, None)
        live.is_dirty = False

    async def settled(self) -> None:
        """Wait until everything said so far is durable; raises what kept it from being so."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append((self._number, waiter))
        self._wake.set()
        if len(self._dirty) >= self.largest:
            self._begin()
        await waiter

    @property
    def is_crowded(self) -> bool:
        """Whether there is a whole commit that has not been begun."""
        return len(self._dirty) >= self.largest and self._phase is Phase.RESTING

    @property
    def is_at_rest(self) -> bool:
        """Whether there is nothing to write, and nothing is being written."""
        waiting = self._dirty or self._rows or self._ready or self._begun or self._waiters
        return self._phase is Phase.RESTING and not waiting and not self._wake.is_set()

    async def give_way(self) -> None:
        """Let a whole commit be sent before more is said: a crowd that comes in one turn keeps itself waiting."""
        self._giving_way += 1
        try:
            for _ in range(MOST_TURNS):
                if not self.is_crowded:
                    break
                await asyncio.sleep(0)
        finally:
            self._giving_way -= 1
        for _ in range(TURNS):
            await asyncio.sleep(0)

    def _begin(self) -> None:
        """Let a whole commit begin while others have yet to speak in the same turn of the loop, if the store can.

        The caller that waits has said everything, and so have those before it.
        """
        if self._phase is Phase.RESTING and self._begun is None and not self._store.is_shared:
            self._begun = self._next()
            self._begun.writing = self._store.write(self._begun.batch)
            self._wake.set()

    async def _run(self) -> None:
        while True:
            self._phase = Phase.RESTING
            await self._wake.wait()
            # One turn of the loop, so that signals that came together are committed together.
            await asyncio.sleep(0)
            self._phase = Phase.MAKING
            await self._write_on()

    async def _write_on(self) -> None:
        """One commit after another, until there is nothing more to write."""
        create_task = asyncio.get_running_loop().create_task
        # What is left over is made ready while this much is written.
        asyncio.get_running_loop().call_soon(self._prepare)
        part, self._begun = self._begun or self._next(self._first_share()), None
        written = await self._commit(part)
        while self._ready is not None or self._wake.is_set():
            part, self._ready = self._ready or self._next(), None
            # What came meanwhile is on its way to the disk while we do what the last commit asks for.
            writing = create_task(self._commit(part))
            for _ in range(TURNS):
                await asyncio.sleep(0)
            self._finish(written)
            # To take apart the executions that are over takes a while: now, while the next are written,
            del written
            self._prepare()
            written = await writing
        self._finish(written)
        # and the last when the callers that waited for them have gone on.
        await asyncio.sleep(0)

    def _first_share(self) -> int:
        """How many go first: half of a crowd, which goes on while the others are written, unless more are to come."""
        count = len(self._dirty)
        return self.largest if count < self._half or self._giving_way else min(self.largest, (count + 1) // 2)

    def _prepare(self) -> None:
        """Have the next transaction ready when the one under way is through, if that is worth while already."""
        if self._phase is Phase.WRITING and self._ready is None and len(self._dirty) >= self._half:
            self._ready = self._next()

    async def _commit(self, part: Part) -> Part:
        self._phase = Phase.WRITING
        try:
            if part.batch:
                self._check_name(part)
                await (part.writing or self._store.write(part.batch))
                self.commits += 1
        except Exception as error:  # noqa: BLE001 -- the store has refused it: none of this has happened
            self._undo(part, error)
        finally:
            if self._phase is Phase.WRITING:
                self._phase = Phase.MAKING
        return part

    def _check_name(self, part: Part) -> None:
        """A worker that lost its lease comes back under another name; its executions may be another's by now."""
        if part.worker != self._store.worker:
            raise StoreUnavailable(f"{part.worker} has come back as {self._store.worker}: nothing of this was written")

    def _undo(self, part: Part, error: Exception) -> None:
        """Neither this has happened nor what was decided on top of it and would have been written next.

        What belongs to no execution is tried again with the next commit, unless it is itself what was refused.
        """
        parts = [part] if self._ready is None or part.is_apart else [part, self._ready]
        if not part.is_apart:
            self._ready = None
        lives: dict[Live, None] = {}
        for undone in reversed(parts):
            for each in undone.committed:
                live = each.live
                live.commands = [*each.commands, *live.commands]
                live.unwritten = [*each.reports, *live.unwritten]
                lives[live] = None
            if undone is not part or isinstance(error, Unavailable):
                self._rows[:0] = undone.rows
        self._give_up(list(lives), error)
        for undone in parts:
            undone.committed, undone.error = [], error
        if part.is_apart and isinstance(error, Conflict):
            # Those who wait may wait for others: each finds out whether its own execution was dropped.
            part.error = None
        part.waiters += [waiter for undone in parts[1:] for waiter in undone.waiters]

    def _finish(self, part: Part) -> None:
        """The commit is through: the callers that wait for it are told, and what it asks for is done."""
        part.batch = ()  # what is on the disk need not be in memory while the next is made
        for each in part.committed:
            each.live.commits -= 1
            each.live.setbacks = 0
        part.answer()
        self._carry_out(part.committed)

    def _next(self, most: int | None = None) -> Part:
        """The next transaction, of so many executions at most, and what is to be done after it.

        An execution whose rows cannot be made is given up alone; none of its rows are written.
        """
        self._wake.clear()
        rows, self._rows = self._rows, []
        batch: RowsByStatement = defaultdict(list)
        for statement, row in rows:
            batch[statement].append(row)
        committed: list[Committed] = []
        lives = self._take_dirty(most or self.largest)
        is_apart = bool(self._apart) and self._are_apart(lives)
        for live in lives:
            try:
                committed.append(part_of(live, batch, self._store, self._memory, self.is_observed))
            except Exception as error:  # noqa: BLE001 -- a fault of ours concerns one execution, not its neighbours
                _log.exception("execution %s: its rows cannot be made", live.id)
                self._give_up([live], error)
        # Inserts first: what one execution changes, another may have come to be with. Otherwise by name, so that the
        # store knows the same kind of commit again.
        ordered = sorted(batch.items(), key=lambda item: (not item[0].startswith("insert"), item[0]))
        part = Part(self._store.worker, rows, committed, self._store.prepared(ordered), [], is_apart=is_apart)
        self._take_waiters(part)
        return part

    def _take_dirty(self, most: int) -> list[Live]:
        """Those whose turn it is; they wait for it no more.

        Those whose last commit failed are by themselves: what the store refuses of one is refused of all it is with.
        """
        lives = list(islice(self._dirty, most))
        if self._apart and lives:
            is_apart = lives[0] in self._apart
            lives = [live for live in lives if (live in self._apart) is is_apart]
        if any(map(_setbacks, lives)):
            is_failed = bool(lives[0].setbacks)
            lives = list(takewhile(lambda live: bool(live.setbacks) is is_failed, lives))
        if self._bound:
            lives = self.with_bound(lives)
        if len(lives) == len(self._dirty):
            self._dirty = {}
        else:
            for live in lives:
                del self._dirty[live]
        return lives

    def _are_apart(self, lives: list[Live]) -> bool:
        """Whether these were set apart; they are no longer."""
        found = [live for live in lives if live in self._apart]
        for live in found:
            del self._apart[live]
        return bool(found)

    def _take_waiters(self, part: Part) -> None:
        """Those for whom nothing is left to be written after this."""
        first_left = next(iter(self._dirty.values()), self._number + 1)
        while self._waiters and self._waiters[0][0] < first_left:
            part.waiters.append(self._waiters.popleft()[1])
        if self._dirty:
            self._wake.set()

    async def close(self) -> None:
        """Write what is left, then stop."""
        try:
            # What is being written has left all of these already.
            is_under_way = self._phase is not Phase.RESTING
            while is_under_way or self._dirty or self._rows or self._ready or self._begun:
                is_under_way = False
                await self.settled()
        finally:
            self._phase = Phase.RESTING
            if self._task is not None:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)
