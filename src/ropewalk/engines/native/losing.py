"""Ends executions whose version is lost: they cannot go on, and nobody is to be kept by them for good."""

from typing import TYPE_CHECKING

from ropewalk.core.errors import Unavailable
from ropewalk.core.signals import Cancel
from ropewalk.core.skeleton import last_words
from ropewalk.engines.native.live import Live
from ropewalk.store import offers

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine


async def cancel_lost(
    engine: "NativeEngine", execution: str, request: Cancel, by: str, letter: str | None = None
) -> bool:
    """Cancel it, at once: what it had under way is nobody's. Durable when it returns; whether that changed anything.

    One that was ending ends as it was about to. `letter` asked for it, and is gone from the inbox with the same commit.
    """
    shared = await offers.of_executions(engine.store, [execution])

    has_changed = False

    def end(live: Live) -> None:
        nonlocal has_changed
        live.offered |= shared.get(execution, set())
        if live.execution.ending is None:
            engine.signal(live, request)
        for word in last_words(live.execution):
            engine.signal(live, word)
        has_changed = bool(live.events)
        if has_changed:
            engine.audit(live, by, "cancel")
        if letter is not None:
            live.rows.append(("delete_inbox", (letter,)))
            engine.commit.add(live)

    live = await engine.memory.end_without_plan(execution, end)
    await engine.commit.settled()
    if live.is_dropped:
        raise Unavailable("the store could not be written; nothing was done, try again")
    return has_changed
