"""The process that carries out CPU-bound functions: a length and a JSON call in, a length and a JSON answer out."""

import asyncio
import inspect
import os
import pkgutil
import signal
import threading
from queue import SimpleQueue
from typing import Any, BinaryIO

import msgspec

from ropewalk.core.waits import Wait
from ropewalk.nodes.failure import NodeFailure, failure_of
from ropewalk.nodes.values import Output, check_output
from ropewalk.nodes.work import LENGTH_BYTES, Answer, Call


def main() -> None:
    """Answers calls until the parent closes the pipe."""
    # Ctrl-C is for the parent; it decides what becomes of us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe, answers = _private_pipes()
    calls: SimpleQueue[Call] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, calls), daemon=True).start()
    while True:
        text = msgspec.json.encode(carry_out(calls.get()))
        answers.write(len(text).to_bytes(LENGTH_BYTES) + text)
        answers.flush()


def _listen(pipe: BinaryIO, calls: SimpleQueue[Call]) -> None:
    """Takes calls in, and ends the process with its parent, even in the middle of a function that never ends."""
    while length := pipe.read(LENGTH_BYTES):
        calls.put(msgspec.json.decode(pipe.read(int.from_bytes(length)), type=Call))
    os._exit(0)


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes under numbers of their own, so that what a function prints or reads does not get between."""
    pipe, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return pipe, answers


def carry_out(call: Call) -> Answer:
    """What came of the call; never raises."""
    try:
        return _answer(_returned(call))
    except BaseException as raised:  # noqa: BLE001 -- everything raised is the node's outcome
        return Answer(error=failure_of(raised))


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
