"""Whether an engine has anything to do before time passes, and when the next thing is due: what tests skip time by."""

import asyncio
from typing import TYPE_CHECKING

from ropewalk.store import live

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine


def is_quiet(engine: "NativeEngine") -> bool:
    """Whether no node runs, nothing is to be committed, and nothing is on its way between executions."""
    is_running = engine.hands.busy or engine.hands.promised or engine.reports.has_any
    return not is_running and engine.background.is_idle and engine.claims.is_at_rest and engine.commit.is_at_rest


async def quiet(engine: "NativeEngine") -> None:
    """Wait until the engine has nothing to do before time passes or it is told something."""
    while not is_quiet(engine):
        await engine.hands.idle()
        await engine.commit.settled()
        await engine.background.idle()
        await asyncio.sleep(0)


async def next_due(engine: "NativeEngine") -> int | None:
    """The next moment at which time alone changes something, of executions in memory and of parked ones."""
    moments = [each.execution.wake_at for each in engine.memory.lives.values()]
    return min((at for at in (*moments, await live.next_wake(engine.store)) if at is not None), default=None)
