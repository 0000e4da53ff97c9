"""Group commit: everything that became known while the last commit was under way goes into the next one.

Only after a commit are its commands carried out. So a node costs no commit of its own, and nothing runs
whose cause could be forgotten.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ropewalk.core.commands import Command, StartChild
from ropewalk.core.errors import Unavailable
from ropewalk.core.events import Event
from ropewalk.core.signals import Signal
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.projecting import Batch, put_rows
from ropewalk.store.access import Store

LARGEST_BATCH = 1_000
Row = tuple[Any, ...]

_log = logging.getLogger("ropewalk.engine")


class Committed(Struct, frozen=True):
    """What one commit made durable for one execution."""

    live: Live
    first_seq: int
    events: list[Event]
    commands: list[Command]
    post: list[tuple[str, str, Signal | StartChild]]
    has_slot: bool
    is_ended: bool
    rows: Batch | None


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
        self._dirty: dict[str, Live] = {}
        self._rows: list[tuple[str, Row]] = []
        self._wake = asyncio.Event()
        self._waiters: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        self.commits = 0
        # Whether anyone wants to see the rows once they are written; nobody else keeps them so long.
        self.is_observed = False

    def open(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def add(self, live: Live) -> None:
        """This execution has something for the next commit."""
        if not (live.is_dirty or live.is_dropped):
            live.is_dirty = True
            self._dirty[live.id] = live
            self._wake.set()

    def add_row(self, statement: str, row: Row) -> None:
        """A row that belongs to no execution in particular."""
        self._rows.append((statement, row))
        self._wake.set()

    def forget(self, live: Live) -> None:
        """What this execution had to say is not to be written."""
        # By identity: one that was dropped twice may have been taken up again in between, and that one has its say.
        if self._dirty.get(live.id) is live:
            del self._dirty[live.id]
        live.is_dirty = False

    async def settled(self) -> None:
        """Wait until everything said so far is durable; raises what kept it from being so."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._wake.set()
        await waiter

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            # One turn of the loop, so that signals that came together are committed together.
            await asyncio.sleep(0)
            self._wake.clear()
            await self._commit()

    async def _commit(self) -> None:
        lives = list(self._dirty.values())[:LARGEST_BATCH]
        waiters: list[asyncio.Future[None]] = []
        if len(lives) == len(self._dirty):
            waiters, self._waiters = self._waiters, []
        else:
            self._wake.set()
        rows, self._rows = self._rows, []
        committed: list[Committed] = []
        try:
            batch = self._take(lives, rows, committed)
            if batch:
                await self._store.write(batch)
                self.commits += 1
        except Exception as error:  # noqa: BLE001 -- whatever the store says, none of this has happened
            self._undo(committed, rows, error)
            self._give_up([each.live for each in committed], error)
            _answer(waiters, error)
        else:
            for each in committed:
                each.live.is_writing = False
            _answer(waiters, None)
            self._carry_out(committed)

    def _undo(self, committed: list[Committed], rows: list[tuple[str, Row]], error: Exception) -> None:
        """What belongs to no execution is tried again with the next commit, unless it is itself what was refused."""
        for each in committed:
            each.live.commands[:0] = each.commands
        if isinstance(error, Unavailable):
            self._rows[:0] = rows

    def _take(
        self, lives: list[Live], rows: list[tuple[str, Row]], committed: list[Committed]
    ) -> list[tuple[str, list[Row]]]:
        """The next transaction; what is to be done after it is put into `committed`.

        An execution whose rows cannot be made is given up alone; none of its rows are written.
        """
        batch: Batch = defaultdict(list)
        for statement, row in rows:
            batch[statement].append(row)
        for live in lives:
            try:
                each, its_rows = self._rows_of(live)
            except Exception as error:  # noqa: BLE001 -- a fault of ours concerns one execution, not its neighbours
                _log.exception("execution %s: its rows cannot be made", live.id)
                self._give_up([live], error)
                continue
            committed.append(each)
            for statement, some in its_rows.items():
                batch[statement] += some
        # Inserts first: what one execution changes, another may have come to be with.
        return sorted(batch.items(), key=lambda item: not item[0].startswith("insert"))

    def _rows_of(self, live: Live) -> tuple[Committed, Batch]:
        """What one execution has for this commit, apart from the others: it may fail half-way."""
        del self._dirty[live.id]
        live.is_dirty, live.is_writing = False, True
        first_seq, x = live.first_seq, live.execution
        rows: Batch = defaultdict(list)
        leaves = live.may_leave
        put_rows(live, None if leaves else self._store.worker, rows)
        if leaves:
            self._memory.leaves(live)
        kept = rows if self.is_observed else None
        each = Committed(live, first_seq, live.events, live.commands, live.post, x.has_slot, x.is_ended, kept)
        live.events, live.commands, live.post = [], [], []
        return each, rows

    async def close(self) -> None:
        """Write what is left, then stop."""
        try:
            while self._dirty or self._rows:
                await self.settled()
        finally:
            if self._task is not None:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)


def _answer(waiters: list[asyncio.Future[None]], error: Exception | None) -> None:
    for waiter in waiters:
        if waiter.done():
            continue
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)
