"""An event loop in virtual time: when nothing is ready, the clock jumps to the next timer."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

MOST_TURNS = 300_000

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class Livelock(Exception):
    """The loop goes round and round, or nothing will ever happen again."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Waits for nothing but its own timers: no threads, no sockets, no time that passes by itself."""

    def __init__(self) -> None:
        super().__init__()
        self._moment = 0.0
        self.turns_left = MOST_TURNS
        # The base loop asks its selector to wait; here that is the loop itself.
        self._selector = self

    def time(self) -> float:
        return self._moment

    def select(self, timeout: float | None) -> list[Any]:
        """Nothing comes from outside: let the time pass until the next timer."""
        self.turns_left -= 1
        if timeout is None or self.turns_left < 0:
            raise Livelock("nothing is on the agenda" if timeout is None else f"no end after {MOST_TURNS} turns")
        self._moment += timeout
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Arguments]], Result], *args: *Arguments
    ) -> asyncio.Future[Result]:
        """What would be done by a thread is done here and now."""
        done: asyncio.Future[Result] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done
