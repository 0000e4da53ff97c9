"""What goes over the control socket: one JSON object a line, a request one way, answers the other.

A request lies in an envelope that says which version the caller has, and a refusal says which one the owner has. The
owner refuses what it does not know, so a caller and an owner of different versions tell the person why they disagree.

An answer is a `Result`, a `Refusal`, or any number of `Item`s before one of these. A refusal carries the names of its
error's class and of what that derives from, so that the other side raises the same error, or the nearest it knows.
"""

from collections.abc import Iterator
from functools import cache
from importlib.metadata import version as installed_version
from typing import Any, Final

import msgspec
from msgspec import Struct

from ropewalk.core import signals
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import Conflict, Invalid, InvalidInput, Problem, RopewalkError
from ropewalk.core.signals import PersonSignal
from ropewalk.service.retention import DEFAULT, START, Policy, Position

LONGEST_REQUEST: Final = 8 * 1024 * 1024
"""A definition may have 4 MiB, and text grows when it is written as JSON."""

LONGEST_ANSWER: Final = 65 * 1024 * 1024
"""The largest value Ropewalk keeps, and what is around it."""


PROTOCOL: Final = 2
"""Of the envelope and the kinds of answers; 1 had no envelope. A new request or signal needs no other number."""


class Version(Struct, frozen=True):
    """What a process at one end of the socket is; one of protocol 1 does not say which release it is."""

    protocol: int = 1
    release: str = "of an earlier release"

    def __str__(self) -> str:
        return f"Ropewalk {self.release} (control protocol {self.protocol})"


@cache
def this_version() -> Version:
    """That of this process."""
    return Version(PROTOCOL, installed_version("ropewalk"))


class Envelope(Struct, frozen=True):
    """What is around every request, in every version from 2 on."""

    caller: Version = Version()
    request: msgspec.Raw = msgspec.Raw()


class _Request(Struct, frozen=True, tag_field="verb", tag=str.lower, forbid_unknown_fields=True):
    """What may be asked; the service's method of the same name takes the fields as its arguments."""


class Save(_Request, frozen=True):
    document: JSON
    by: str = "local"


class PublishVersion(_Request, frozen=True, tag="publish_version"):
    workflow: str
    version: int
    by: str = "local"


class Start(_Request, frozen=True):
    workflow: str
    version: int
    input: JSON = None
    vars: dict[str, JSON] = {}
    actor: str = "local"
    priority: int = 5
    key: str | None = None
    trace: str | None = None
    bounded_by: tuple[str, ...] = ()
    execution: str | None = None


class Tell(_Request, frozen=True):
    """One signal of the core; without an execution it is for that of the dead letter which the signal names."""

    execution: str | None
    signal: msgspec.Raw
    by: str = "local"


class Publish(_Request, frozen=True):
    subject: str
    payload: JSON = None
    by: str = "local"


class ResetBreaker(_Request, frozen=True, tag="reset_breaker"):
    target: str
    by: str = "local"


class ManageCredentials(_Request, frozen=True, tag="manage_credentials"):
    request: str
    about: dict[str, JSON] = {}
    by: str = "local"


class Trigger(_Request, frozen=True):
    """What is to be done with a trigger: create, remove, enable, disable, fire, test, backfill."""

    action: str
    arguments: dict[str, JSON]
    by: str = "local"


class Rerun(_Request, frozen=True):
    execution: str
    node: str
    by: str = "local"
    version: int | None = None
    bounded_by: tuple[str, ...] = ()


class Replay(_Request, frozen=True):
    execution: str
    by: str = "local"
    bounded_by: tuple[str, ...] = ()


class Note(_Request, frozen=True):
    letter: str
    text: str
    by: str = "local"


class Sweep(_Request, frozen=True):
    policy: Policy = DEFAULT
    position: Position = START
    by: str = "local"


class Learn(_Request, frozen=True):
    modules: tuple[str, ...]
    folder: str


class Ended(_Request, frozen=True):
    execution: str


class Follow(_Request, frozen=True):
    execution: str
    after: int = 0


Request = (
    Save
    | PublishVersion
    | Start
    | Tell
    | Publish
    | ResetBreaker
    | ManageCredentials
    | Trigger
    | Rerun
    | Replay
    | Note
    | Sweep
    | Learn
    | Ended
    | Follow
)


class SavedVersion(Struct, frozen=True):
    """What the owner of the store has saved, as far as other processes need it to start it."""

    workflow: str
    version: int
    hash: str


class _Answer(Struct, frozen=True, tag_field="kind", tag=str.lower):
    pass


class Result(_Answer, frozen=True):
    """It is done; this is what came of it."""

    value: Any = None


class Item(_Answer, frozen=True):
    """One of several; more, or a result, will follow."""

    value: msgspec.Raw


class Refusal(_Answer, frozen=True):
    """It was not done; `types` are the error's class and those it derives from, the nearest first."""

    types: tuple[str, ...]
    message: str
    problems: tuple[Problem, ...] = ()
    owner: Version = Version()


Answer = Result | Item | Refusal

_envelopes: Final = msgspec.json.Decoder(Envelope)
_requests: Final[msgspec.json.Decoder[Request]] = msgspec.json.Decoder(Request)
_answers: Final[msgspec.json.Decoder[Answer]] = msgspec.json.Decoder(Answer)
_encoder: Final = msgspec.json.Encoder()


def line_of(message: Request | Answer) -> bytes:
    """The message as it goes over the wire."""
    if isinstance(message, _Request):
        return _encoder.encode(Envelope(this_version(), msgspec.Raw(_encoder.encode(message)))) + b"\n"
    return _encoder.encode(message) + b"\n"


def request_in(line: bytes) -> tuple[Request, Version]:
    """The request in a line and the version of its caller; refused if there is none, or of another protocol."""
    caller = Version()
    try:
        envelope = _envelopes.decode(line)
        caller = envelope.caller
        if caller.protocol != PROTOCOL:
            raise mismatch(caller, this_version())
        return _requests.decode(envelope.request), caller
    except (msgspec.DecodeError, RecursionError) as error:
        raise _not_understood(error, caller) from error


def signal_in(request: Tell, caller: Version) -> PersonSignal:
    """The signal that is to be told; refused if this version does not know it, or a field of it."""
    try:
        return signals.decode(request.signal)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _not_understood(error, caller) from error


def answer_in(line: bytes) -> Answer:
    """The answer in a line."""
    return _answers.decode(line)


# Errors


def mismatch(caller: Version, owner: Version) -> Conflict:
    """The caller and the owner of the store cannot speak to each other; nothing was done."""
    return Conflict(
        f"this command is {caller} and the process that owns the store is {owner}: use one version for both, "
        "or stop that process first"
    )


def _not_understood(error: Exception, caller: Version) -> InvalidInput:
    return InvalidInput(f"the owner of the store, {this_version()}, cannot understand the request of {caller}: {error}")


def refusal_of(error: RopewalkError) -> Refusal:
    """The error as the other side can raise it again."""
    types = tuple(each.__name__ for each in type(error).__mro__ if issubclass(each, RopewalkError))
    problems = error.problems if isinstance(error, Invalid) else ()
    told = tuple(Problem(problem.path, problem.message) for problem in problems)
    return Refusal(types, str(error), told, this_version())


def error_of(refusal: Refusal) -> RopewalkError:
    """The error a refusal tells of: of the same class, or of the nearest one this process knows."""
    if refusal.owner.protocol != PROTOCOL:
        return mismatch(this_version(), refusal.owner)
    known = {each.__name__: each for each in _classes(RopewalkError)}
    kind = next((known[name] for name in refusal.types if name in known), RopewalkError)
    # Not through `kind(…)`: some classes make their message from other arguments.
    error = kind.__new__(kind)
    Exception.__init__(error, refusal.message)
    if isinstance(error, Invalid):
        error.problems = refusal.problems
    return error


def _classes(root: type[RopewalkError]) -> Iterator[type[RopewalkError]]:
    yield root
    for each in root.__subclasses__():
        yield from _classes(each)
