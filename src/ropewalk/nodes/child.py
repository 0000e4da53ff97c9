"""The process that carries out CPU-bound functions: a length and a JSON call in, a length and a JSON answer out.

Its first argument, if it has one, is the limits that it sets itself before the first call.
"""

import asyncio
import contextlib
import errno
import inspect
import os
import pkgutil
import signal
import sys
import threading
from queue import SimpleQueue
from typing import Any, BinaryIO

import msgspec

from ropewalk.core.waits import Wait
from ropewalk.nodes.failure import NodeFailure, failure_of
from ropewalk.nodes.limits import Limits, limit_own_memory, limit_own_time
from ropewalk.nodes.processes import LENGTH_BYTES, UNLIMITED, Answer, Call, ProcessDied
from ropewalk.nodes.values import Output, check_output

DIE_WITH_PARENT, ADOPT_ORPHANS = 1, 36
"""The numbers of PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER on Linux."""


def main() -> None:
    """Answers calls until the parent closes the pipe."""
    # Ctrl-C is for the parent; it decides what becomes of us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limits = msgspec.json.decode(sys.argv[1], type=Limits) if len(sys.argv) > 1 else UNLIMITED
    pipe, answers = _private_pipes()
    _tie_to_parent()
    calls: SimpleQueue[Call] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, calls), daemon=True).start()
    limit_own_memory(limits)
    while True:
        call = calls.get()
        limit_own_time(limits)
        text = msgspec.json.encode(carry_out(call, limits))
        answers.write(len(text).to_bytes(LENGTH_BYTES) + text)
        answers.flush()


def _tie_to_parent() -> None:
    """Ends with the worker, even in code that lets no other thread run, and adopts what children leave behind.

    So the worker finds it when it kills this process.
    """
    if sys.platform == "linux":
        import ctypes

        system = ctypes.CDLL(None)
        system.prctl(ADOPT_ORPHANS, 1, 0, 0, 0)
        system.prctl(DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def _listen(pipe: BinaryIO, calls: SimpleQueue[Call]) -> None:
    """Takes calls in, and ends the process with its parent, even in the middle of a function that never ends."""
    while length := pipe.read(LENGTH_BYTES):
        calls.put(msgspec.json.decode(pipe.read(int.from_bytes(length)), type=Call))
    if os.getpgrp() == os.getpid():
        # With all that it has started, itself included.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes under numbers of their own, so that what a function prints or reads does not get between."""
    pipe, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return pipe, answers


def carry_out(call: Call, limits: Limits = UNLIMITED) -> Answer:
    """What came of the call; never raises."""
    try:
        return _answer(_returned(call))
    except BaseException as raised:  # noqa: BLE001 -- everything raised is the node's outcome
        return Answer(error=failure_of(raised), died=_death(raised, limits))


def _death(raised: BaseException, limits: Limits) -> str | None:
    """Why this counts as a death of the process, if it does: it ran into a limit, or what it drives died."""
    if isinstance(raised, ProcessDied):
        return raised.why
    number = raised.errno if isinstance(raised, OSError) else None
    if limits.memory is not None and (isinstance(raised, MemoryError) or number == errno.ENOMEM):
        return f"the function ran into {limits.told('memory')}"
    if limits.files is not None and number == errno.EMFILE:
        return f"the function ran into {limits.told('files')}"
    return None


def _returned(call: Call) -> Any:
    function = pkgutil.resolve_name(call.function)
    # A function under `@node` stands in its module as a node type, which turns JSON into what its hints ask for.
    call_with = getattr(function, "call_with", None)
    value = call_with(call.arguments) if call_with else function(**call.arguments)
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def _answer(value: Any) -> Answer:
    if isinstance(value, Wait):
        raise NodeFailure.permanent("a function in another process cannot wait; carry it out on a thread or the loop")
    output = value if isinstance(value, Output) else Output(value)
    return Answer(check_output(output.value), output.ports, tokens=output.tokens)


if __name__ == "__main__":
    main()
