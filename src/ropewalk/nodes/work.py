"""Where a node's code is carried out: on the loop, on a thread, or in a process of its own."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from enum import StrEnum
from queue import SimpleQueue
from typing import Any, Literal

from ropewalk.nodes.failure import NodeFailure, failure_of

MOST_ABANDONED = 256


class Placement(StrEnum):
    """Where the code of a node is carried out."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"


Place = Placement | Literal["loop", "thread", "process"]
"""The same as programs write it."""


class Threads:
    """Blocking calls, at most `most` awaited at a time.

    A call that is not awaited any more cannot be stopped. It keeps its thread and gives its place back, so a node that
    never ends costs a thread and not the worker; a daemon thread does not keep the process from ending either.
    """

    def __init__(self, most: int) -> None:
        self._room = asyncio.Semaphore(most)
        self._most_busy = most + MOST_ABANDONED
        self._busy = 0
        self._idle: list[_Thread] = []
        self._is_closed = False

    async def call(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """What the function returns or raises."""
        async with self._room:
            if self._busy >= self._most_busy:
                raise NodeFailure.transient(f"{self._busy} earlier calls never ended; the worker has no thread left")
            value, raised = await self._begin(function, arguments)
        if isinstance(raised, Exception) or raised is None:
            return _returned(value, raised)
        # A thread's SystemExit or CancelledError is not about the loop that hears of it.
        raise NodeFailure(failure_of(raised)) from raised

    def _begin(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> "asyncio.Future[_Outcome]":
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[_Outcome] = loop.create_future()
        thread = self._idle.pop() if self._idle else _Thread()
        context = copy_context()

        def work() -> None:
            outcome = context.run(_outcome, function, arguments)
            try:
                loop.call_soon_threadsafe(self._settle, thread, ended, outcome)
            except RuntimeError:
                # The loop is closed: the caller is gone, and the attempt is another worker's by now.
                thread.work.put(None)

        self._busy += 1
        thread.work.put(work)
        return ended

    def _settle(self, thread: "_Thread", ended: "asyncio.Future[_Outcome]", outcome: "_Outcome") -> None:
        self._busy -= 1
        if self._is_closed:
            thread.work.put(None)
        else:
            self._idle.append(thread)
        if not ended.done():
            ended.set_result(outcome)

    def close(self) -> None:
        """Ends every idle thread, and the others once they are done."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().work.put(None)


class _Thread(threading.Thread):
    """Does one piece of work after the other; None ends it."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="ropewalk-node")
        self.work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.start()

    def run(self) -> None:
        while (work := self.work.get()) is not None:
            work()


_Outcome = tuple[Any, BaseException | None]


def _outcome(function: Callable[..., Any], arguments: Mapping[str, Any]) -> _Outcome:
    """The call's end as a value: a future refuses to carry StopIteration, and its waiter would hang."""
    try:
        return function(**arguments), None
    except BaseException as raised:  # noqa: BLE001 -- any error belongs to the node and not to the thread
        return None, raised


def _returned(value: Any, raised: Exception | None) -> Any:
    if raised is not None:
        raise raised
    return value
