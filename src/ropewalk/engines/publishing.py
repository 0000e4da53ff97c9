"""Events that come from outside an execution: everyone who waits for them is told, durably, in one transaction."""

import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Any

import msgspec
import uuid_utils

from ropewalk.core.errors import RopewalkError
from ropewalk.core.events import RunWaiting
from ropewalk.core.expression import ExpressionError, Scope, compile_expression, is_true
from ropewalk.core.signals import Matched, Released, Signal
from ropewalk.core.subject import matches
from ropewalk.core.waits import BreakerWait, TypeWait
from ropewalk.engines import once
from ropewalk.engines.background import Background
from ropewalk.engines.base import Appended, Breakers
from ropewalk.engines.computing import Computing
from ropewalk.engines.reporting import Deliver, Message
from ropewalk.nodes.base import Registry
from ropewalk.store import audit, events
from ropewalk.store.access import Store, Transaction
from ropewalk.store.events import WaitingForEvent, breaker_subject, place_of, type_subject
from ropewalk.store.rows import AuditEntry

FILTERS_AT_ONCE = 20
"""How many filters are one piece of work beside the loop."""

_log = logging.getLogger("ropewalk.engine")


class Publishing:
    """Ends waits for what comes from outside: for events that are published, for breakers that close, and one by one
    for those that want to be probed, for node types that this worker learns.

    Should one of the last two fail, those who wait go on when their time has come.
    """

    def __init__(self, store: Store, types: Registry, computing: Computing, background: Background,
                 deliver: Deliver, missed: Callable[[], None]) -> None:  # fmt: skip
        self._store = store
        self._types = types
        self._computing = computing
        self._background = background
        self._deliver = deliver
        # Messages may be in inboxes that were not delivered.
        self._missed = missed
        self._doubtful: dict[tuple[str, str], None] = {}

    async def publish(self, workspace: str, subject: str, payload: Any, by: str, work: str | None = None) -> int:
        """Write down who published it and, for every matching wait, that its event has come; then tell them.

        How many there were. No execution is told without a word in the audit log, and there is none of what none could
        be told. What is the work of a run is published once, and told the same count again.
        """
        post: list[Message] = []
        about = (workspace, by, "publish", subject, None, None, None)
        passing = await self._passing(workspace, subject, payload, by)
        async with self._writing() as tx:
            done = None if work is None else await once.lock(tx, workspace, work, self._store.now())
            if done is not None and done.answer is not None:
                return int(done.answer)
            await audit.append(tx, AuditEntry(str(uuid_utils.uuid7()), self._store.now(), *about))
            for wait in await events.waiting(tx, workspace):
                if matches(wait.subject, subject) and (wait.filter is None or _place(wait) in passing):
                    signal = Matched(wait.node, wait.attempt, payload, wait.item, subject)
                    post += await _written_down(tx, wait, signal, self._store.now())
            if done is not None:
                await done.remember(str(len(post)))
        self._deliver(post)
        return len(post)

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[Transaction]:
        """A transaction that writes to inboxes. One whose end was not heard of may be through: they are looked at."""
        try:
            async with self._store.transaction() as tx:
                yield tx
        except BaseException:
            self._missed()
            raise

    async def _passing(self, workspace: str, subject: str, payload: Any, by: str) -> dict["Place", None]:
        """The waits for this event whose filter it passes; who begins to wait later waits for a later event.

        Before the transaction and beside the loop, some at a time: there may be many filters, and each may take long.
        """
        waits = await events.waiting(self._store, workspace)
        asked = [wait for wait in waits if wait.filter is not None and matches(wait.subject, subject)]
        passing: dict[Place, None] = {}
        for first in range(0, len(asked), FILTERS_AT_ONCE):
            some = asked[first : first + FILTERS_AT_ONCE]
            found = await self._computing.of_caller(workspace, by, partial(_filtered, some, payload))
            passing |= dict.fromkeys(found)
        return passing

    def may_go(self, workspace: str, target: str, most: int | None = None) -> None:
        """The breaker of this target lets so many of them go on, or all."""
        self._spawn(self._release(workspace, breaker_subject(target), most))

    async def let_go(self, workspace: str, target: str) -> None:
        """The breaker of this target was closed by hand: all attempts that it holds go on. Durable when it returns."""
        await self._release(workspace, breaker_subject(target), None)

    def learnt(self, workspace: str, node_type: str) -> None:
        """The type is known here from now on."""
        self._spawn(self._release(workspace, type_subject(node_type), None))

    def doubt(self, appended: Appended, breakers: Breakers) -> None:
        """A release before this commit has overlooked the runs whose wait is in it: ask once more."""
        for event in appended.events:
            if type(event) is not RunWaiting:
                continue
            workspace, wait = appended.accepted.workspace, event.wait
            if isinstance(wait, BreakerWait) and (workspace, wait.target) not in self._doubtful:
                self._doubtful[workspace, wait.target] = None
                self._spawn(self._ask_again(workspace, wait.target, breakers))
            elif isinstance(wait, TypeWait) and self._types.get(wait.type) is not None:
                self.learnt(workspace, wait.type)

    def _spawn(self, step: Coroutine[Any, Any, None]) -> None:
        """One that is about to go leaves it to the time."""
        if self._background.is_closing:
            step.close()
        else:
            self._background.spawn(step)

    async def _ask_again(self, workspace: str, target: str, breakers: Breakers) -> None:
        # Before the question: a run that is held after it asks for itself.
        del self._doubtful[workspace, target]
        if (most := await breakers.places(workspace, target)) != 0:
            await self._release(workspace, breaker_subject(target), most)

    async def _release(self, workspace: str, subject: str, most: int | None) -> None:
        try:
            self._deliver(await self._released(workspace, subject, most))
        except RopewalkError as error:
            _log.warning("those who wait for %s go on when their time comes: %s", subject, error)

    async def _released(self, workspace: str, subject: str, most: int | None) -> list[Message]:
        async with self._writing() as tx:
            return [
                letter
                for wait in (await events.held(tx, workspace, subject))[:most]
                for letter in await _written_down(
                    tx, wait, Released(wait.node, wait.attempt, wait.item), self._store.now()
                )
            ]


async def _written_down(tx: Transaction, wait: WaitingForEvent, signal: Signal, now: int) -> list[Message]:
    """The letter that ends the wait; none if another event has ended it since the waits were listed."""
    # Gone at once: the next such event finds who waits then, and not who was told already.
    if not await tx.execute("delete_event_wait", wait.execution, wait.node, place_of(wait.item)):
        return []
    letter = str(uuid_utils.uuid7())
    await tx.execute("insert_inbox", letter, wait.execution, msgspec.json.encode(signal).decode(), now)
    return [(letter, wait.execution, signal)]


Place = tuple[str, str, int | None, int]


def _place(wait: WaitingForEvent) -> Place:
    return wait.execution, wait.node, wait.item, wait.attempt


def _filtered(waits: list[WaitingForEvent], payload: Any) -> list[Place]:
    return [_place(wait) for wait in waits if _passes(wait, payload)]


def _passes(wait: WaitingForEvent, payload: Any) -> bool:
    if wait.filter is None:
        return True
    try:
        known = {} if wait.scope is None else msgspec.json.decode(wait.scope)
        return is_true(_compiled(wait.filter).evaluate(Scope(item=payload, **known)))
    except ExpressionError:
        return False  # an event the filter cannot be asked about is not the one waited for


# Waits of one workflow have the same filter.
_compiled = lru_cache(maxsize=1_000)(compile_expression)
