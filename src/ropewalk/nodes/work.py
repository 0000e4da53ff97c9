"""Where a node's code is carried out: on the loop, on a thread, or in a process of its own."""

import asyncio
import os
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from contextvars import copy_context
from enum import StrEnum
from queue import SimpleQueue
from typing import Any, Literal

import msgspec

from ropewalk.core.errors import RunError
from ropewalk.nodes.failure import NodeFailure, failure_of
from ropewalk.nodes.values import LARGEST_OUTPUT, Output

MOST_ABANDONED = 256
LENGTH_BYTES = 8
LARGEST_ANSWER = LARGEST_OUTPUT + 1024 * 1024


class Placement(StrEnum):
    """Where the code of a node is carried out."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"


Place = Placement | Literal["loop", "thread", "process"]
"""The same as programs write it."""


class Call(msgspec.Struct, frozen=True):
    """What a process is asked to do."""

    function: str
    arguments: dict[str, Any]


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a call: a value, or why there is none."""

    value: Any = None
    ports: tuple[str, ...] = ()
    error: RunError | None = None
    tokens: int | None = None


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


class Processes:
    """Calls of importable functions in processes that are kept for the next call, at most `most` of them.

    JSON goes in and comes out. A call that is cancelled has its process killed, in the middle of any work.
    """

    def __init__(self, most: int) -> None:
        self._room = asyncio.Semaphore(most)
        self._idle: list[Process] = []

    async def call(self, function: str, arguments: Mapping[str, Any]) -> Any:
        """What the function `module:name` returns; its failure as it classified it."""
        request = msgspec.json.encode(Call(function, dict(arguments)))
        async with self._room:
            process = self._idle.pop() if self._idle else await _start()
            try:
                answer = await _exchange(process, request)
            except BaseException:
                await _end(process)
                raise
            self._idle.append(process)
        if answer.error is not None:
            raise NodeFailure(answer.error)
        is_plain = not answer.ports and answer.tokens is None
        return answer.value if is_plain else Output(answer.value, answer.ports, answer.tokens)

    async def close(self) -> None:
        """Ends every process that is kept."""
        while self._idle:
            await _end(self._idle.pop())


async def _start() -> Process:
    # The child imports what this process could: same path, but never the working directory unless it was on it.
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "ropewalk.nodes.child"),
        stdin=PIPE,
        stdout=PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )


async def _exchange(process: Process, request: bytes) -> Answer:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(len(request).to_bytes(LENGTH_BYTES) + request)
        await process.stdin.drain()
        length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES))
        if length > LARGEST_ANSWER:
            raise NodeFailure.permanent("the answer of the node's process is too large")
        return msgspec.json.decode(await process.stdout.readexactly(length), type=Answer)
    except (asyncio.IncompleteReadError, ConnectionError):
        code = await process.wait()
        raise NodeFailure.transient(f"the node's process ended with code {code} before it answered") from None


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()
