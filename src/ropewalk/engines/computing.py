"""Work that takes long, done beside the loop: by one thread, a piece at a time, in fair turns.

The loop and the thread share the interpreter, which changes hands every half a millisecond: work that takes a second
here keeps no other execution waiting there. Workspaces take turns, and within one its executions and callers. What
computes for an execution has half of each second: after a piece it rests as long as that has taken.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ropewalk.engines.fair_turns import FairTurns

LONGEST_REST = 1.0
Made = TypeVar("Made")


class Computing:
    """The thread that computes, and who is next."""

    def __init__(self) -> None:
        self._turns = FairTurns()
        self._thread = ThreadPoolExecutor(1, "computing")

    async def of_execution(self, workspace: str, execution: str, work: Callable[[], Made]) -> Made:
        """What the work gives; the execution rests afterwards."""
        async with self._turns.turn(workspace, execution) as turn:
            made, taken = await self._done(lambda: _timed(work))
            turn.rest = min(taken, LONGEST_REST)
            if isinstance(made, Exception):
                raise made
            return made

    async def of_caller(self, workspace: str, caller: str, work: Callable[[], Made]) -> Made:
        """The same for a caller, whose requests are limited at the door."""
        async with self._turns.turn(workspace, caller):
            return await self._done(work)

    async def _done(self, work: Callable[[], Made]) -> Made:
        """The thread is not free again before it is done, also if the caller waits for the result no more."""
        making = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            await asyncio.wait([making])
            raise

    def close(self) -> None:
        """Nothing more begins."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _timed(work: Callable[[], Made]) -> tuple[Made | Exception, float]:
    """What it gives or raises, and how long it has computed (s)."""
    began = time.thread_time()
    try:
        made: Made | Exception = work()
    except Exception as error:  # noqa: BLE001 -- raised again where it is waited for
        made = error
    return made, time.thread_time() - began
