"""Ends executions whose version is lost: they cannot go on, and nobody is to be kept by them for good."""

from typing import TYPE_CHECKING

from ropewalk.core.signals import Cancel
from ropewalk.core.skeleton import last_words
from ropewalk.engines.native.live import Live
from ropewalk.store import offers

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine


async def cancel_lost(engine: "NativeEngine", execution: str, request: Cancel) -> tuple[Live, bool]:
    """Cancel it, at once: what it had under way is nobody's. In the next commit; whether that changes anything.

    One that was ending ends as it was about to.
    """
    live = await engine.memory.load_without_plan(execution)
    shared = await offers.of_executions(engine.store, [execution])
    live.offered |= shared.get(execution, set())
    x, seq = live.execution, live.execution.seq
    try:
        if x.ending is None:
            engine.signal(live, request)
        for word in last_words(x):
            engine.signal(live, word)
    finally:
        engine.let_go(live)
    return live, x.seq > seq
