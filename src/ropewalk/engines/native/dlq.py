"""Decisions about dead letters: one at a time, and each made by the worker that owns the execution.

A requeue and a fix are facts of the execution's log; a discard is none, and changes the letter's row alone. So the log
cannot tell that a letter was discarded. Its owner can: it looks at the row before each decision, and makes the next
decision about the same execution only when the last one is durable.
"""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import uuid_utils

from ropewalk.core.errors import Conflict
from ropewalk.core.signals import Discard, Fix, Requeue, Retry, Signal
from ropewalk.core.state import Resolution
from ropewalk.engines.native.live import Live
from ropewalk.store import dlq

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine


Decision = Requeue | Fix | Retry | Discard
"""What resolves dead letters."""


class LetterDecisions:
    """Makes decisions about dead letters, those of one execution one after another."""

    def __init__(self, engine: "NativeEngine") -> None:
        self._engine = engine
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def turn(self, execution: str, signal: Signal | Discard) -> AbstractAsyncContextManager[None]:
        """Held from the look at the letter until the decision is durable; other signals need not wait for it."""
        if not isinstance(signal, Decision):
            return nullcontext()
        lock = self._turns.get(execution)
        if lock is None:
            lock = self._turns[execution] = asyncio.Lock()
        return lock

    async def addressees(self, execution: str, signal: Signal | Discard) -> tuple[Live, Live | None]:
        """The execution and its parent, both in memory; Conflict if the letter to decide about was resolved already."""
        engine = self._engine
        if not isinstance(signal, Decision):
            return await engine.with_parent(execution)
        while True:
            pinned = await engine.memory.load(execution)
            pinned.pins += 1
            try:
                # Asked once the execution is ours: no other worker resolves its letters from here on.
                await self._require_pending(signal)
                live, above = await engine.with_parent(execution)
            except BaseException:
                pinned.pins -= 1
                engine.let_go(pinned)
                raise
            pinned.pins -= 1
            if live is pinned:
                return live, above
            engine.let_go(pinned)

    async def _require_pending(self, decision: Decision) -> None:
        letter = None if isinstance(decision, Retry) else decision.letter
        resolved = None if letter is None else await dlq.resolved(self._engine.store, letter)
        if resolved is not None:
            raise Conflict(dlq.already(letter or "", *resolved))

    def discard(self, live: Live, decision: Discard) -> None:
        """Close the letter with the execution's next commit."""
        workspace, now = live.accepted.workspace, self._engine.store.now()
        by, letter = decision.by, decision.letter
        live.rows.append(("resolve_dead_letter", (Resolution.DISCARDED.value, now, by, None, letter)))
        if decision.note is not None:
            live.rows.append(("note_dead_letter", ("\n", decision.note, workspace, letter, dlq.MOST_NOTES)))
        about = (workspace, by, "discard", letter, None, None, decision.reason)
        live.rows.append(("insert_audit", (str(uuid_utils.uuid7()), now, *about)))
        self._engine.commit.add(live)
