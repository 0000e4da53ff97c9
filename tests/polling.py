"""Waiting for what sends no signal: another process, another thread, rows that another worker writes.

This is the one place where tests sleep. Wherever there is an event, a future or a gate, a test awaits that instead.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, Final

PATIENCE: Final = 120.0
"""What has not come true by then never will, also on a machine that has ten times as much to do as it can (s)."""
LOOK_EVERY: Final = 0.01


class Overdue(AssertionError):
    """What a test waits for has not come true in time."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"not within {seconds:g} s: {what}")


async def until(is_so: Callable[[], Any | Awaitable[Any]], what: str, seconds: float = PATIENCE) -> Any:
    """Asks until the answer is true, and gives it. `what` completes the sentence: it is awaited that …"""
    deadline = time.monotonic() + seconds
    while True:
        answer = is_so()
        if isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise Overdue(what, seconds)
        await asyncio.sleep(LOOK_EVERY)


def blocking_until(is_so: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """The same without ever letting a loop of this thread go on."""
    deadline = time.monotonic() + seconds
    while not (answer := is_so()):
        if time.monotonic() > deadline:
            raise Overdue(what, seconds)
        time.sleep(LOOK_EVERY)
    return answer
