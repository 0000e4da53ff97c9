"""Those who wait for an execution's end, or follow its events."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from ropewalk.core import log
from ropewalk.core.errors import NotFound, RopewalkError, Unavailable
from ropewalk.core.events import (
    Event,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionSucceeded,
    ExecutionTimedOut,
)
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import Ended
from ropewalk.engines.native.commit import Committed
from ropewalk.store import log as stored_log
from ropewalk.store.access import Reader

TERMINAL = {
    ExecutionSucceeded: ExecutionState.SUCCESS,
    ExecutionFailed: ExecutionState.FAILED,
    ExecutionCancelled: ExecutionState.CANCELLED,
    ExecutionTimedOut: ExecutionState.TIMEOUT,
}
Item = tuple[int, Event] | None
EVERY = 0.1
"""How often the logs of those followed are looked at, without a hint (s)."""

_log = logging.getLogger("ropewalk.engine")


class Followers:
    """Tells whoever listens what became durable, and nothing earlier."""

    def __init__(self, reader: Reader, is_under_way: Callable[[str], bool]) -> None:
        self._reader = reader
        self._is_under_way = is_under_way
        self._waiting: dict[str, list[asyncio.Future[Ended]]] = {}
        self._queues: dict[str, list[asyncio.Queue[Item]]] = {}
        # How far the log of each was read here: entries before are known.
        self._seen: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def publish(self, committed: Committed) -> None:
        execution = committed.live.id
        if execution in self._queues:
            numbered = enumerate(committed.events, committed.first_seq)
            for seq, event in numbered:
                self._put(execution, (seq, event))
        if committed.is_ended and committed.events:
            self._put(execution, None)
            self._tell_end(execution, committed.events[-1])

    def _tell_end(self, execution: str, last: Event) -> None:
        for waiting in self._waiting.pop(execution, ()):
            if not waiting.done():
                waiting.set_result(ending(execution, last))

    def _put(self, execution: str, item: Item) -> None:
        for queue in self._queues.get(execution, ()):
            queue.put_nowait(item)

    # On a shared store, what others write

    def open(self) -> None:
        """Look at what others write about those who are followed here."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def hinted(self, topics: list[str]) -> None:
        """There may be something new about these, or (`*`) about anyone."""
        if "*" in topics or not self._waiting.keys().isdisjoint(topics) or not self._queues.keys().isdisjoint(topics):
            self._wake.set()

    async def _run(self) -> None:
        while True:
            timer = asyncio.get_running_loop().call_later(EVERY, self._wake.set)
            await self._wake.wait()
            self._wake.clear()
            timer.cancel()
            try:
                await self._look()
            except RopewalkError as error:
                _log.warning("what others write cannot be read for now: %s", error)
            except Exception:  # noqa: BLE001 -- a fault of ours must not leave everyone without news
                _log.exception("reading what others write failed; it is tried again")

    async def _look(self) -> None:
        """Read on where something was added; one question for all."""
        elsewhere = [each for each in {**self._waiting, **self._queues} if not self._is_under_way(each)]
        if not elsewhere:
            return
        for execution, head in (await stored_log.heads(self._reader, elsewhere)).items():
            if head > self._seen.get(execution, 0):
                await self.catch_up(execution)

    async def ended(self, execution: str) -> Ended:
        """How the execution ended; waits for it if it has not."""
        waiting: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(execution, []).append(waiting)
        try:
            # Asked after the future is there: an end that is committed meanwhile is not missed.
            if not self._is_under_way(execution) and (known := await self._known_end(execution)) is not None:
                return known
            return await waiting
        finally:
            self._forget(execution, waiting)

    async def _known_end(self, execution: str) -> Ended | None:
        row = await self._reader.fetch_one("last_entry", execution)
        if row is None:
            raise NotFound(f"there is no execution {execution}")
        return _end_of(execution, row[0])

    def _forget(self, execution: str, waiting: asyncio.Future[Ended]) -> None:
        """Whoever waits no more leaves nothing behind."""
        others = self._waiting.get(execution)
        if others is not None and waiting in others:
            others.remove(waiting)
            if not others:
                del self._waiting[execution]

    async def catch_up(self, execution: str) -> None:
        """Tell what is in the log and may not have been told, since the answer to its commit was lost."""
        if execution not in self._queues and execution not in self._waiting:
            return
        last = None
        for seq, last in await self._recorded(execution, self._seen.get(execution, 1)):
            self._put(execution, (seq, last))
            self._seen[execution] = seq
        if last is not None and type(last) in TERMINAL:
            self._seen.pop(execution, None)
            self._put(execution, None)
            self._tell_end(execution, last)

    async def follow(self, execution: str, after: int) -> AsyncIterator[tuple[int, Event]]:
        """Every event after the given number, in order, until the end."""
        queue: asyncio.Queue[Item] = asyncio.Queue()
        self._queues.setdefault(execution, []).append(queue)
        try:
            seen, last = after, None
            for seq, last in await self._recorded(execution):
                if seq > after:
                    seen = seq
                    yield seq, last
            # An end in the middle of the log was followed by a reopening; only the last event tells.
            if type(last) in TERMINAL and queue.empty():
                return
            while (item := await queue.get()) is not None:
                if item[0] > seen:
                    seen = item[0]
                    yield item
        finally:
            self._queues[execution].remove(queue)
            if not self._queues[execution]:
                del self._queues[execution]

    async def _recorded(self, execution: str, start: int = 1) -> list[tuple[int, Event]]:
        rows = await stored_log.entries(self._reader, execution, start=start)
        if not rows:
            raise NotFound(f"there is no execution {execution}")
        return [numbered for _, entry in rows for numbered in _numbered(entry)]

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        for waiting in [each for waiters in self._waiting.values() for each in waiters if not each.done()]:
            waiting.set_exception(Unavailable("the engine was closed before the execution ended; it goes on later"))
            waiting.exception()
        for execution in list(self._queues):
            self._put(execution, None)


def _numbered(entry: bytes) -> Iterator[tuple[int, Event]]:
    first, events = log.decode(entry)
    return enumerate(events, first)


def _end_of(execution: str, entry: bytes) -> Ended | None:
    last = log.decode(entry)[1][-1]
    return ending(execution, last) if type(last) in TERMINAL else None


def ending(execution: str, event: Event) -> Ended:
    output: Any = event.output if isinstance(event, ExecutionSucceeded) else None
    blob = event.blob if isinstance(event, ExecutionSucceeded) else None
    error = event.error if isinstance(event, ExecutionFailed) else None
    return Ended(execution, TERMINAL[type(event)], output, error, blob)
