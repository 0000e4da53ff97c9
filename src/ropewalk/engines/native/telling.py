"""What an execution that is ours is told: by people, together with its parent if that concerns both, or by its inbox.

Decisions about dead letters are made one at a time, and each by the worker that owns the execution. A requeue and a fix
are facts of the execution's log; a discard is none, and changes the letter's row alone. So the log cannot tell that a
letter was discarded. Its owner can: it looks at the row before each decision, and makes the next decision about the
same execution only when the last one is durable.
"""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, nullcontext
from weakref import WeakValueDictionary

import uuid_utils

from ropewalk.core.canonical import content_hash
from ropewalk.core.definition.node_type import ARRIVED_PORT
from ropewalk.core.errors import Conflict, InvalidTransition, RopewalkError, Unreadable
from ropewalk.core.events import Blob, Event
from ropewalk.core.kinship import reopening_of_child
from ropewalk.core.signals import ChildEnded, Discard, Fix, Requeue, Retry, Signal
from ropewalk.core.state import ExecutionState, Resolution
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.deciding import Deciding
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.outbox import post
from ropewalk.engines.native.ownership import OwnedElsewhere
from ropewalk.engines.native.stored import admitted
from ropewalk.engines.run import Desk
from ropewalk.engines.runner import cache_key
from ropewalk.nodes.values import Output
from ropewalk.store import dlq
from ropewalk.store.access import Store

Decision = Requeue | Fix | Retry | Discard
"""What resolves dead letters."""

_log = logging.getLogger("ropewalk.engine")


class Telling:
    """Finds an execution and its parent, and tells them."""

    def __init__(self, store: Store, memory: Memory, commit: GroupCommit, deciding: Deciding, desk: Desk) -> None:
        self._store = store
        self._memory = memory
        self._commit = commit
        self._deciding = deciding
        self._desk = desk
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # Whom it concerns

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
        if not isinstance(signal, Decision):
            return await self.with_parent(execution)
        while True:
            pinned = await self._memory.load(execution)
            pinned.pins += 1
            try:
                # Asked once the execution is ours: no other worker resolves its letters from here on.
                await self._require_pending(signal)
                live, above = await self.with_parent(execution)
            except BaseException:
                pinned.pins -= 1
                self._deciding.let_go(pinned)
                raise
            pinned.pins -= 1
            if live is pinned:
                return live, above
            self._deciding.let_go(pinned)

    async def _require_pending(self, decision: Decision) -> None:
        letter = None if isinstance(decision, Retry) else decision.letter
        resolved = None if letter is None else await dlq.resolved(self._store, letter)
        if resolved is not None:
            raise Conflict(dlq.already(letter or "", *resolved))

    async def with_parent(self, execution: str) -> tuple[Live, Live | None]:
        """The execution and its parent, if it has one, both in memory at the same moment.

        A parent in the hands of another worker is left out: it is told by letter. So is one that cannot be read, once
        it can be.
        """
        while True:
            live = await self._memory.load(execution)
            parent = live.accepted.parent
            if parent is None:
                return live, None
            try:
                above = await self._memory.load(parent.execution)
            except (OwnedElsewhere, Unreadable):
                above = None
            except (RopewalkError, asyncio.CancelledError):
                self._deciding.let_go(live)
                raise
            if self._memory.owns(live):
                return live, above
            if above is not None:
                self._deciding.let_go(above)  # the other has left meanwhile, and may be another's when looked for again

    # By people

    def tell(self, live: Live, above: Live | None, signal: Signal | Discard, by: str) -> bool:
        """Tell an execution that is ours, and its parent if that is ours too; False if it changed nothing."""
        try:
            if isinstance(signal, Discard):
                self._discard(live, signal)
                return True
            events = self._tell_both(live, signal, above)
        finally:
            for loaded in (live, above):
                if loaded is not None:
                    self._deciding.let_go(loaded)
        if events:
            live.audit(by, type(signal).__name__.lower(), self._store.now())
        return bool(events)

    def _tell_both(self, live: Live, signal: Signal, parent: Live | None) -> list[Event]:
        """Tell an execution; one that is reopened by it takes its parent along, or the request is refused."""
        events = self._deciding.signal(live, signal)
        news = reopening_of_child(live.accepted, events)
        if news is None:
            return events
        if parent is None:
            post(live, *news)
            return events
        try:
            is_told = bool(self._deciding.signal(parent, news[1]))
        except InvalidTransition:
            self._deciding.drop(live)
            raise
        if is_told:
            self._commit.bind(live, parent)
        return events

    def _discard(self, live: Live, decision: Discard) -> None:
        """Close the letter with the execution's next commit."""
        workspace, now = live.accepted.workspace, self._store.now()
        by, letter = decision.by, decision.letter
        live.rows.append(("resolve_dead_letter", (Resolution.DISCARDED.value, now, by, None, letter)))
        if decision.note is not None:
            live.rows.append(("note_dead_letter", ("\n", decision.note, workspace, letter, dlq.MOST_NOTES)))
        about = (workspace, by, "discard", letter, None, None, decision.reason)
        live.rows.append(("insert_audit", (str(uuid_utils.uuid7()), now, *about)))
        self._commit.add(live)

    # By its inbox

    def hand_over(self, letter: str, live: Live, signal: Signal) -> None:
        """Tell an execution what is in its inbox, which goes from there with the same commit."""
        if isinstance(signal, ChildEnded):
            self._cache(live, signal)
        try:
            self._deciding.signal(live, admitted(live, signal, self._desk.most_stored))
        except InvalidTransition as refusal:
            _log.info("execution %s was told %s and refused: %s", live.id, type(signal).__name__, refusal)
        live.rows.append(("delete_inbox", (letter,)))
        self._commit.add(live)

    def _cache(self, live: Live, end: ChildEnded) -> None:
        """Keep the output of a child for others of its kind, if the node that waits for it says so.

        Before its parent is told: then the inputs the child was made from are forgotten.
        """
        plan, work = live.execution.plan, live.execution.work(end.node, end.item)
        if work is None or work.attempt != end.attempt or end.state is not ExecutionState.SUCCESS:
            return
        ttl = plan.cache_ttl[work.node]
        # As of any other node, large results are not kept.
        if ttl is not None and end.blob is None:
            inputs = {} if work.inputs is None else work.inputs
            digest = inputs.hash if isinstance(inputs, Blob) else content_hash(inputs)
            key = cache_key(plan.config_hash(work.node), digest, live.accepted.bounded_by)
            self._desk.shelf.cache(live.accepted.workspace, key, Output(end.output, (ARRIVED_PORT,)), ttl)
