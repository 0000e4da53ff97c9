"""Events that come from outside an execution: everyone who waits for them is told, durably, in one transaction."""

from typing import TYPE_CHECKING, Any

import msgspec
import uuid_utils

from ropewalk.core.commands import StartChild
from ropewalk.core.expression import ExpressionError, Scope, compile_expression, is_true
from ropewalk.core.signals import Matched, Released, Signal
from ropewalk.core.subject import matches
from ropewalk.store import events
from ropewalk.store.access import Transaction
from ropewalk.store.events import NO_ITEM, WaitingForEvent

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine

Post = tuple[str, str, Signal | StartChild]


async def publish(engine: "NativeEngine", workspace: str, subject: str, payload: Any) -> int:
    """Write down for every matching wait that its event has come, then tell them; how many there were."""
    post: list[Post] = []
    async with engine.store.transaction() as tx:
        for wait in await events.waiting(tx, workspace):
            if _is_meant(wait, subject, payload):
                signal = Matched(wait.node, wait.attempt, payload, wait.item)
                post.append(await _written_down(tx, wait, signal, engine.store.now()))
    engine.letters.deliver(post)
    return len(post)


async def release(engine: "NativeEngine", workspace: str, target: str) -> None:
    """A breaker has closed: whomever it held goes on. Should that fail, they go on when their time has come."""
    post: list[Post] = []
    async with engine.store.transaction() as tx:
        for wait in await events.held(tx, workspace, target):
            signal = Released(wait.node, wait.attempt, wait.item)
            post.append(await _written_down(tx, wait, signal, engine.store.now()))
    engine.letters.deliver(post)


async def _written_down(tx: Transaction, wait: WaitingForEvent, signal: Signal, now: int) -> Post:
    letter = str(uuid_utils.uuid7())
    await tx.execute("insert_inbox", letter, wait.execution, msgspec.json.encode(signal).decode(), now)
    # Gone at once: the next such event finds who waits then, and not who was told already.
    item = NO_ITEM if wait.item is None else wait.item
    await tx.execute("delete_event_wait", wait.execution, wait.node, item)
    return letter, wait.execution, signal


def _is_meant(wait: WaitingForEvent, subject: str, payload: Any) -> bool:
    if not matches(wait.subject, subject):
        return False
    if wait.filter is None:
        return True
    try:
        return is_true(compile_expression(wait.filter).evaluate(Scope(item=payload)))
    except ExpressionError:
        return False  # an event the filter cannot be asked about is not the one waited for
