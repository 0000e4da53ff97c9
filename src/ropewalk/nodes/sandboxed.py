"""The far side of the sandbox: what its own process does with a piece of code.

Two walls stand around the code. The inner one is the interpreter (`pydantic-monty`), which knows no files, no network,
no environment and none of this process's objects, and runs in a process below this one. The outer one is the limits of
this process and all below it: they are set before the interpreter starts, and cannot be raised again.
"""

import resource
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, convert, to_builtins

from ropewalk.core.duration import SECOND
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.limits import size_text
from ropewalk.nodes.processes import ProcessDied
from ropewalk.nodes.values import check_output

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontyError, ResourceLimits

GRACE: Final = 0.25
"""How long after its time the interpreter may take to notice, before it is killed (s)."""
LONGEST: Final = 60.0
CALLS_PER_INTERPRETER: Final = 1_000
MOST_SUSPENSIONS: Final = 100
LONGEST_PRINTED: Final = 16 * 1024
LONGEST_TRACE: Final = 10
SOURCE: Final = "<python-input-0>"
_LIMIT_WORDS: Final = ("limit exceeded", "exceeded its memory limit")
_WORDS: Final = {
    "The monty syntax parser does not yet support": "the sandbox does not support",
    "MontyClassProxy": "an object of a class",
    "MontyClassTypeProxy": "a class",
    "MontyStdTypeProxy": "a function or type",
    "Internal error in monty": "the sandbox cannot do this",
}
"""What the interpreter says of itself, in words for the author of the code."""


class Code(Struct, frozen=True):
    """A piece of code with everything that decides what it does, and what it may take."""

    source: str
    inputs: dict[str, Any]
    seconds: float
    memory: int
    recursion: int
    output: int
    now: int = 0
    seed: str = ""


class Ran(Struct, frozen=True):
    """What came of it, and what it printed."""

    value: Any = None
    printed: str = ""


def run(code: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the code gives; NodeFailure, with the line, for what it does wrong."""
    given = convert(code, Code)
    printed = _Printed()
    try:
        value = _value(given, printed)
    except ProcessDied:
        # The interpreter may have died before the code came; code without any effect may begin again.
        printed = _Printed()
        value = _value(given, printed)
    return to_builtins(Ran(value, printed.text))  # type: ignore[no-any-return]  # a struct is a dict


class _Printed:
    """What the code printed so far; the rest is dropped once there is too much."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, _stream: str, text: str) -> None:
        room = LONGEST_PRINTED - len(self.text)
        if room > 0:
            self.text += text[:room]


def _value(code: Code, printed: _Printed) -> Any:
    import pydantic_monty

    policy: pydantic_monty.OSPolicy = {
        # Every attempt sees one moment and the same chance, and the time that passes is not for the code to see.
        "datetime": datetime.fromtimestamp(code.now / SECOND, UTC),
        "timezone": "utc",
        "sleep": "system",
        "sleep_system_max": 1.0,
        "process_time": "zero",
        "random_start": {"seed": code.seed},
    }
    try:
        with _interpreters().checkout(limits=_limits(code), os_policy=policy) as session:
            value = session.feed_run(code.source, inputs=code.inputs, print_callback=printed)
    except pydantic_monty.MontyError as error:
        raise _failure(error, code, printed.text) from None
    try:
        return check_output(value, code.output)
    except NodeFailure as refused:
        raise NodeFailure.permanent(plain(refused.error.message)) from None


def plain(message: str) -> str:
    """What the interpreter says, without its names for its own parts."""
    for word, better in _WORDS.items():
        message = message.replace(word, better)
    return message


def _limits(code: Code) -> "ResourceLimits":
    return {
        "max_feed_duration_secs": code.seconds,
        "max_turn_duration_secs": code.seconds,
        "max_memory": code.memory,
        "gc_interval": 10_000,
        "max_recursion_depth": code.recursion,
        "max_suspensions": MOST_SUSPENSIONS,
        # A node that sleeps holds a place that others wait for: `delay` holds none.
        "max_total_sleep_secs": 0.0,
    }


_opened: "list[Monty]" = []


def _interpreters() -> "Monty":
    """The one interpreter of this process: kept warm, replaced when it dies or has done enough."""
    if not _opened:
        import pydantic_monty

        # No file is written, not even by a fault of the interpreter.
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        pool = pydantic_monty.Monty(
            min_processes=1,
            max_processes=1,
            request_timeout=LONGEST + 1,
            max_checkouts_per_worker=CALLS_PER_INTERPRETER,
            feed_duration_limit_grace=GRACE,
            turn_duration_limit_grace=GRACE,
        )
        _opened.append(pool.__enter__())
    return _opened[0]


def _failure(error: "MontyError", code: Code, printed: str) -> NodeFailure:
    import pydantic_monty

    match error:
        case pydantic_monty.MontySyntaxError() | pydantic_monty.MontyRuntimeError():
            return _told(error, code, printed)
        case pydantic_monty.MontyCrashedError() if error.timed_out:
            return NodeFailure.timeout(_too_long(code))
        case pydantic_monty.MontyCrashedError():
            return ProcessDied("the sandbox died of the code")
        case pydantic_monty.MontyConversionError():
            return NodeFailure.permanent("with.inputs: a value cannot go into the sandbox")
        case _:
            return NodeFailure.permanent(f"the sandbox refused the code: {type(error).__name__}")


def _told(error: "MontyError", code: Code, printed: str) -> NodeFailure:
    """What the code raised, in words of the code alone: the interpreter's own are about its inside."""
    frames = [(frame.line, frame.function_name, frame.filename) for frame in error.traceback()]  # type: ignore[attr-defined]
    own = [(line, name) for line, name, file in frames if file == SOURCE]
    where = f"line {own[-1][0]}: " if own else ""
    message, kind = plain(str(error)), type(error.exception()).__name__
    if any(words in message for words in _LIMIT_WORDS):
        return _over_a_limit(kind, message, where, code)
    detail = "".join(f"line {line}, in {name or '<module>'}\n" for line, name in own[-LONGEST_TRACE:])
    return NodeFailure.permanent(f"{where}{_named(kind, message)}", f"{detail}{_tail(printed)}" or None)


def _named(kind: str, message: str) -> str:
    return message if message.startswith(kind) else f"{kind}: {message}"


def _tail(printed: str) -> str:
    return f"printed:\n{printed[-2_000:]}" if printed else ""


def _over_a_limit(kind: str, message: str, where: str, code: Code) -> NodeFailure:
    if "sleep limit" in message:
        return NodeFailure.permanent(f"{where}the code may not sleep; use a delay node")
    if kind == "MemoryError":
        return NodeFailure.permanent(f"{where}the code took more memory than its limit of {size_text(code.memory)}")
    if kind == "TimeoutError":
        return NodeFailure.timeout(_too_long(code))
    return NodeFailure.permanent(f"{where}{_named(kind, message)}")


def _too_long(code: Code) -> str:
    return f"the code did not end in its limit of {code.seconds:g} s"
