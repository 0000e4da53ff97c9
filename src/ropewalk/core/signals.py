"""What an execution can be told: reports of work, the passing of time, requests of people.

A report names the attempt it is about; one that comes late or twice decides nothing. A request that makes
no sense any more is refused with `InvalidTransition`.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from ropewalk.core.canonical import json_problems
from ropewalk.core.errors import InvalidInput, Problem, RunError
from ropewalk.core.events import Blob
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import Wait


class _Signal(Struct, frozen=True, omit_defaults=True, rename="camel", tag=True, gc=False):
    pass


class Start(_Signal, frozen=True):
    """A slot was granted: begin, or go on."""


class Due(_Signal, frozen=True):
    """Time has passed; what was to happen by now happens."""


# Reports of work


class Succeeded(_Signal, frozen=True):
    """An attempt ended well, through `ports`; `tokens` is what its node says it used up of a model's."""

    node: str
    attempt: int
    output: Any = None
    ports: tuple[str, ...] = ()
    item: int | None = None
    inputs: Any = None
    blob: Blob | None = None
    tokens: int | None = None
    inputs_blob: Blob | None = None


class Failed(_Signal, frozen=True):
    """An attempt failed. `jitter` in [0, 1) spreads the retry."""

    node: str
    attempt: int
    error: RunError
    item: int | None = None
    inputs: Any = None
    jitter: float = 0.0
    inputs_blob: Blob | None = None


class Suspended(_Signal, frozen=True):
    """An attempt has done its part and waits."""

    node: str
    attempt: int
    wait: Wait
    item: int | None = None
    inputs: Any = None
    inputs_blob: Blob | None = None


class Expanded(_Signal, frozen=True):
    """A map's list was evaluated: it has `count` items."""

    node: str
    attempt: int
    count: int


class Returned(_Signal, frozen=True):
    """A worker stops and hands the attempt back unfinished; none is used up."""

    node: str
    attempt: int
    item: int | None = None


class Lost(_Signal, frozen=True):
    """The worker that had the attempt is gone."""

    node: str
    attempt: int
    item: int | None = None
    jitter: float = 0.0


# What waits are for


class Decide(_Signal, frozen=True):
    """A person answers an approval."""

    node: str
    approved: bool
    by: str
    payload: Any = None
    item: int | None = None


class Tell(_Signal, frozen=True):
    """A caller tells the execution `name`; kept until a wait uses it.

    `once` is a key, if the caller may tell the same again: that changes nothing.
    """

    name: str
    payload: Any = None
    once: str | None = None


class Matched(_Signal, frozen=True):
    """An event published under `subject` fits an event wait."""

    node: str
    attempt: int
    payload: Any = None
    item: int | None = None
    subject: str | None = None


class Released(_Signal, frozen=True):
    """The breaker that held the attempt lets it through."""

    node: str
    attempt: int
    item: int | None = None


class ChildEnded(_Signal, frozen=True):
    """The child execution of a node ended, after so many reopenings. `jitter` in [0, 1) spreads the retry.

    An end that is known is told again to no effect, unless `stands`: the child was asked to go on, and refused. One
    that has `undone` what it did is never reopened.
    """

    node: str
    attempt: int
    state: ExecutionState
    output: Any = None
    error: str | None = None
    item: int | None = None
    blob: Blob | None = None
    jitter: float = 0.0
    opening: int | None = None
    stands: bool = False
    undone: bool = False


class ChildReopened(_Signal, frozen=True):
    """The failed child of a node was reopened by a caller, not by this execution."""

    node: str
    attempt: int
    by: str
    item: int | None = None


class Evaluated(_Signal, frozen=True):
    """The execution's output as it was after so many events, where it lies if it is too large for the log, or why there
    is none; the answer to `EvaluateOutput`."""

    seq: int
    output: Any = None
    error: str | None = None
    blob: Blob | None = None


# Requests of people


BY_PARENT = "parent"
"""In whose name a parent asks."""


class Pause(_Signal, frozen=True):
    by: str
    reason: str | None = None


class Resume(_Signal, frozen=True):
    by: str


class Cancel(_Signal, frozen=True):
    by: str
    reason: str | None = None


class Retry(_Signal, frozen=True):
    """Every unhandled failed node again; with `opening` only if it has been reopened so many times so far."""

    by: str
    opening: int | None = None


class Requeue(_Signal, frozen=True):
    """One failed node or map item again; `overrides` replace top-level keys of its inputs.

    `letter` is what it resolves.
    """

    node: str
    by: str
    item: int | None = None
    overrides: dict[str, Any] | None = None
    letter: str | None = None


class Fix(_Signal, frozen=True):
    """One failed node or map item gets its output from a person. `letter` is what it resolves."""

    node: str
    by: str
    output: Any = None
    ports: tuple[str, ...] = ()
    item: int | None = None
    blob: Blob | None = None
    letter: str | None = None


class Discard(_Signal, frozen=True):
    """One dead letter is closed without another attempt; `note` is added to what was said about it.

    No fact of the log, and nothing for the machine to decide: the worker that owns the execution changes the letter.
    """

    letter: str
    by: str
    reason: str | None = None
    note: str | None = None


class GiveUp(_Signal, frozen=True):
    """One run under way becomes a dead letter by hand."""

    node: str
    by: str
    item: int | None = None
    reason: str | None = None


class Abandon(_Signal, frozen=True):
    """The execution could not be dispatched."""

    message: str


Report = Succeeded | Failed | Suspended | Expanded | Returned | Lost
Arrival = Decide | Tell | Matched | Released | ChildEnded | ChildReopened | Evaluated
Request = Pause | Resume | Cancel | Retry | Requeue | Fix | GiveUp | Abandon
Signal = Start | Due | Report | Arrival | Request
PersonSignal = Decide | Tell | Pause | Resume | Cancel | Retry | Requeue | Fix | GiveUp | Discard
"""What a person may tell an execution."""

_of_person: Final[msgspec.json.Decoder[PersonSignal]] = msgspec.json.Decoder(PersonSignal)


def encode(signal: PersonSignal) -> bytes:
    """The signal as one process tells it to another."""
    return msgspec.json.encode(signal)


def decode(text: bytes | msgspec.Raw) -> PersonSignal:
    """The signal that `encode` wrote; a DecodeError names what this Ropewalk does not know of it."""
    signal = _of_person.decode(text)
    known = {"type", *(field.encode_name for field in msgspec.structs.fields(signal))}
    # A field of a later Ropewalk may narrow what is asked: to leave it out would do more than the person wants.
    if unknown := [name for name in msgspec.json.decode(text) if name not in known]:
        raise msgspec.ValidationError(f"{type(signal).__name__} has no field {unknown[0]!r}")
    return signal


def check_request(signal: msgspec.Struct) -> None:
    """Refuses, with InvalidInput, what a log would take and could not give back: a name that is a number, say."""
    try:
        plain = {name: list(value) if type(value) is tuple else value
                 for name, value in msgspec.to_builtins(signal).items()}  # fmt: skip
        problems = json_problems(plain, ())
        if not problems:
            msgspec.convert(plain, type(signal))
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        problems = [Problem((place.removesuffix("`"),), message[0].lower() + message[1:])]
    except TypeError as error:  # what is not even like JSON
        problems = [Problem((), str(error))]
    if problems:
        raise InvalidInput(problems)
