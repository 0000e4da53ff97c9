"""What one commit is made of: the part of each execution, the rows of none, and those who wait for it."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

from msgspec import Struct

from ropewalk.core.commands import Command, StartChild
from ropewalk.core.signals import Signal
from ropewalk.engines.base import Appended
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.projecting import RowsByStatement, put_rows
from ropewalk.store.access import Batch, Store
from ropewalk.telemetry.failures import Told

Row = tuple[Any, ...]


class Committed(Appended, frozen=True, gc=False):
    """What one commit made durable for one execution."""

    live: Live
    commands: Sequence[Command]
    post: Sequence[tuple[str, str, Signal | StartChild]]
    has_slot: bool
    leaves: bool
    runs: Sequence[Row]
    """The rows of its runs that were written; kept only for an observer."""
    reports: Sequence[Signal]
    """What its attempts have reported; told again if the commit fails."""
    failures: Sequence[Told] = ()
    """What there is to log; nothing unless something failed."""


class Part(Struct):
    """What goes into one commit, under which name it was decided, and who waits for it."""

    worker: str
    rows: list[tuple[str, Row]]
    committed: list[Committed]
    batch: Batch
    waiters: list[asyncio.Future[None]]
    error: Exception | None = None
    writing: Awaitable[None] | None = None
    is_apart: bool = False

    def answer(self) -> None:
        """Tell those who wait that it is durable, or why it is not."""
        for waiter in self.waiters:
            if waiter.done():
                continue
            if self.error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(self.error)


def part_of(live: Live, batch: RowsByStatement, store: Store, memory: Memory, is_observed: bool) -> Committed:
    """What one execution has for a commit that is made now; its rows are put into the batch."""
    live.is_dirty = False
    x, post = live.execution, live.post or ()
    # One that has a slot stays: nothing else need be asked.
    leaves = not x.has_slot and live.may_leave
    if live.is_unconfirmed:
        # It was taken in a transaction, which has no number: this commit finds it ours, or writes nothing.
        live.is_unconfirmed = False
        if store.is_shared:
            batch["expect_live"].append((live.id, store.worker))
    runs = put_rows(live, None if leaves else store.worker, batch)
    if leaves:
        memory.leaves(live)
    if not is_observed:
        runs = ()
    each = Committed(
        live.accepted, x, x.seq, live.events, x.is_ended, live, live.commands, post, x.has_slot, leaves, runs,
        live.unwritten, live.failures,
    )  # fmt: skip
    live.events = live.commands = live.unwritten = live.failures = ()
    if post:
        live.post = []
    live.commits += 1
    return each
