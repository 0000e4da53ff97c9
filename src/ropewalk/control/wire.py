"""What goes over the control socket: one JSON object a line, a request one way, answers the other.

An answer is a `Result`, a `Refusal`, or any number of `Item`s before one of these. A refusal carries the names of its
error's class and of what that derives from, so that the other side raises the same error, or the nearest it knows.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from ropewalk.core.canonical import JSON
from ropewalk.core.errors import Invalid, Problem, RopewalkError
from ropewalk.service.retention import DEFAULT, START, Policy, Position

LONGEST_REQUEST: Final = 8 * 1024 * 1024
"""A definition may have 4 MiB, and text grows when it is written as JSON."""

LONGEST_ANSWER: Final = 65 * 1024 * 1024
"""The largest value Ropewalk keeps, and what is around it."""


class _Request(Struct, frozen=True, tag_field="verb", tag=str.lower, forbid_unknown_fields=True):
    """What may be asked; the arguments are those of the service's method of the same name."""


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
    by: str = "local"
    priority: int = 5
    key: str | None = None
    trace: str | None = None
    bounded_by: tuple[str, ...] = ()
    execution: str | None = None


class Cancel(_Request, frozen=True):
    execution: str
    by: str = "local"
    reason: str | None = None


class Pause(_Request, frozen=True):
    execution: str
    by: str = "local"
    reason: str | None = None


class Resume(_Request, frozen=True):
    execution: str
    by: str = "local"


class Retry(_Request, frozen=True):
    execution: str
    by: str = "local"


class Signal(_Request, frozen=True):
    execution: str
    name: str
    payload: JSON = None
    by: str = "local"


class Publish(_Request, frozen=True):
    subject: str
    payload: JSON = None
    by: str = "local"


class Decide(_Request, frozen=True):
    execution: str
    node: str
    approved: bool
    by: str = "local"
    payload: JSON = None
    item: int | None = None


class GiveUp(_Request, frozen=True, tag="give_up"):
    execution: str
    node: str
    item: int | None = None
    by: str = "local"
    reason: str | None = None


class ResetBreaker(_Request, frozen=True, tag="reset_breaker"):
    target: str
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


class Requeue(_Request, frozen=True):
    letter: str
    overrides: dict[str, JSON] | None = None
    by: str = "local"


class Fix(_Request, frozen=True):
    letter: str
    output: JSON = None
    by: str = "local"
    ports: tuple[str, ...] = ()


class Discard(_Request, frozen=True):
    letter: str
    by: str = "local"
    notes: str | None = None


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
    | Cancel
    | Pause
    | Resume
    | Retry
    | Signal
    | Publish
    | Decide
    | GiveUp
    | ResetBreaker
    | Rerun
    | Replay
    | Requeue
    | Fix
    | Discard
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


Answer = Result | Item | Refusal

_requests: Final[msgspec.json.Decoder[Request]] = msgspec.json.Decoder(Request)
_answers: Final[msgspec.json.Decoder[Answer]] = msgspec.json.Decoder(Answer)
_encoder: Final = msgspec.json.Encoder()


def line_of(message: Request | Answer) -> bytes:
    """The message as it goes over the wire."""
    return _encoder.encode(message) + b"\n"


def request_in(line: bytes) -> Request:
    """The request in a line; msgspec.DecodeError or RecursionError if there is none."""
    return _requests.decode(line)


def answer_in(line: bytes) -> Answer:
    """The answer in a line."""
    return _answers.decode(line)


# Errors


def refusal_of(error: RopewalkError) -> Refusal:
    """The error as the other side can raise it again."""
    types = tuple(each.__name__ for each in type(error).__mro__ if issubclass(each, RopewalkError))
    problems = error.problems if isinstance(error, Invalid) else ()
    return Refusal(types, str(error), tuple(Problem(problem.path, problem.message) for problem in problems))


def error_of(refusal: Refusal) -> RopewalkError:
    """The error a refusal tells of: of the same class, or of the nearest one this process knows."""
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
