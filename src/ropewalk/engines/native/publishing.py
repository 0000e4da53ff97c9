"""Published events: everyone who waits for such an event is told, durably, in one transaction."""

from typing import TYPE_CHECKING, Any

import msgspec
import uuid_utils

from ropewalk.core.commands import StartChild
from ropewalk.core.expression import ExpressionError, Scope, compile_expression, is_true
from ropewalk.core.signals import Matched, Signal
from ropewalk.core.subject import matches
from ropewalk.store import events
from ropewalk.store.events import NO_ITEM, WaitingForEvent

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine


async def publish(engine: "NativeEngine", workspace: str, subject: str, payload: Any) -> int:
    """Write down for every matching wait that its event has come, then tell them; how many there were."""
    post: list[tuple[str, str, Signal | StartChild]] = []
    async with engine.store.transaction() as tx:
        for wait in await events.waiting(tx, workspace):
            if _is_meant(wait, subject, payload):
                letter = str(uuid_utils.uuid7())
                signal = Matched(wait.node, wait.attempt, payload, wait.item)
                text = msgspec.json.encode(signal).decode()
                await tx.execute("insert_inbox", letter, wait.execution, text, engine.store.now())
                # Gone at once: the next such event finds who waits then, and not who was told already.
                item = NO_ITEM if wait.item is None else wait.item
                await tx.execute("delete_event_wait", wait.execution, wait.node, item)
                post.append((letter, wait.execution, signal))
    engine.children.deliver(post)
    return len(post)


def _is_meant(wait: WaitingForEvent, subject: str, payload: Any) -> bool:
    if not matches(wait.subject, subject):
        return False
    if wait.filter is None:
        return True
    try:
        return is_true(compile_expression(wait.filter).evaluate(Scope(item=payload)))
    except ExpressionError:
        return False  # an event the filter cannot be asked about is not the one waited for
