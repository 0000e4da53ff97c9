"""Calls in processes of their own, which are kept for the next call and killed whole.

A process is the first of its own session, and adopts what its children leave behind: when it is killed, everything
that it has started goes with it, also what has made a session of its own.
"""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ropewalk.core.errors import RunError
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.limits import Limits
from ropewalk.nodes.values import LARGEST_OUTPUT, Output

LENGTH_BYTES = 8
LARGEST_ANSWER = LARGEST_OUTPUT + 1024 * 1024
MOST_ROUNDS = 8
LAST_BREATH = 2.0
LONGEST_START = 10.0
UNLIMITED = Limits()


class Call(Struct, frozen=True):
    """What a process is asked to do."""

    function: str
    arguments: dict[str, Any]


class Answer(Struct, frozen=True, omit_defaults=True):
    """What came of a call: a value, or why there is none. `died` says which limit it ran into, or what died of it."""

    value: Any = None
    ports: tuple[str, ...] = ()
    error: RunError | None = None
    tokens: int | None = None
    died: str | None = None


class ProcessDied(NodeFailure):
    """The process of a call died, or ran into one of its limits; `why` says which limit or signal."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(NodeFailure.transient(why).error)


class Processes:
    """Calls of importable functions in processes that are kept for the next call, at most `most` of them.

    JSON goes in and comes out. A call that is cancelled has its process killed, in the middle of any work. Those that
    are `closed` get nothing of the environment and say nothing on the worker's own output.
    """

    def __init__(self, most: int, *, closed: bool = False) -> None:
        self._most = most
        self._room = asyncio.Semaphore(most)
        self._idle: list[tuple[Limits, Process]] = []
        self._is_closed_off = closed

    async def call(self, function: str, arguments: Mapping[str, Any], limits: Limits | None = None,
                   longest: float | None = None) -> Any:  # fmt: skip
        """What the function `module:name` returns; its failure as it classified it, ProcessDied if it could not.

        TimeoutError if it takes longer than `longest` (s), the time until a process is free and has begun not counted.
        """
        request = msgspec.json.encode(Call(function, dict(arguments)))
        limits = limits or UNLIMITED
        async with self._room:
            kept = self._kept(limits)
            process = kept or await self._start(limits)
            beginning = 0.0 if kept else LONGEST_START
            try:
                async with asyncio.timeout(None if longest is None else longest + beginning):
                    answer = await _exchange(process, request, limits)
            except BaseException:
                await _end(process)
                raise
            await self._keep(limits, process)
        if answer.died is not None:
            raise ProcessDied(answer.died)
        if answer.error is not None:
            raise NodeFailure(answer.error)
        is_plain = not answer.ports and answer.tokens is None
        return answer.value if is_plain else Output(answer.value, answer.ports, answer.tokens)

    def _kept(self, limits: Limits) -> Process | None:
        """One of those that wait, with these very limits, if there is one that lives."""
        for place in range(len(self._idle) - 1, -1, -1):
            known, process = self._idle[place]
            if process.returncode is not None:
                del self._idle[place]
            elif known == limits:
                del self._idle[place]
                return process
        return None

    async def _keep(self, limits: Limits, process: Process) -> None:
        self._idle.append((limits, process))
        if len(self._idle) > self._most:
            await _end(self._idle.pop(0)[1])

    async def _start(self, limits: Limits) -> Process:
        # The child imports what this process could: same path, but never the working directory unless it was on it.
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        own = {} if self._is_closed_off else os.environ
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "ropewalk.nodes.child", msgspec.json.encode(limits).decode()),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL if self._is_closed_off else None,
            # Few arenas: each reserves address space that the function would miss.
            env={**own, "PYTHONPATH": path, **({} if limits.memory is None else {"MALLOC_ARENA_MAX": "2"})},
            cwd="/" if self._is_closed_off else None,
            start_new_session=True,
        )

    async def close(self) -> None:
        """Ends every process that is kept."""
        while self._idle:
            await _end(self._idle.pop()[1])


async def _exchange(process: Process, request: bytes, limits: Limits) -> Answer:
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
        # It is on its way out; one that only closed its pipe and lives on is killed.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_BREATH):
                await process.wait()
        await _end(process)
        raise ProcessDied(_cause(process.returncode or 0, limits)) from None


def _cause(code: int, limits: Limits) -> str:
    """Why a process ended before it answered, by its exit code."""
    if code == -signal.SIGXCPU and limits.cpu_seconds is not None:
        return f"the function ran into {limits.told('cpuSeconds')}"
    if code >= 0:
        return f"the function's process ended with code {code} before it answered"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ", as the system does when memory runs out" if code == -signal.SIGKILL else ""
    return f"the function's process was ended by {name}{hint}"


async def _end(process: Process) -> None:
    """Kills the process with everything that it has started."""
    if process.returncode is None:
        _kill_whole(process.pid)
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()
    # Those of its session that were started meanwhile; the number is not given away while one of them lives.
    _signal_group(process.pid)


def _kill_whole(pid: int) -> None:
    """Kills a process and all that came of it; it is stopped first, so that nothing new comes while this goes on."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    for _ in range(MOST_ROUNDS):
        if not (found := descendants(pid)):
            break
        for each in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
    _signal_group(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _signal_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """The living processes that came of this one, as far as the system tells."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    tasks = f"/proc/{pid}/task"
    try:
        names = os.listdir(tasks)
    except OSError:
        return []
    found: list[int] = []
    for name in names:
        with contextlib.suppress(OSError), open(f"{tasks}/{name}/children", encoding="ascii") as told:
            found += [each for each in map(int, told.read().split()) if not _is_dead(each)]
    return found


def _is_dead(pid: int) -> bool:
    """Whether it is dead and only not buried yet: the stopped parent buries nothing."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as told:
            return told.read().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True
