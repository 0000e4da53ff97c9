"""Talks: what is said to a server and what is made of its answers, step by step, for a line that carries the steps out.

A talk is a generator. It yields steps and is sent what came of them; an error of the transport is thrown into it. So
there is one telling of when to try again and how to follow a stream, for threads and for loops.
"""

from collections.abc import Generator, Mapping
from typing import Any, Final, Generic, TypeAlias, TypeVar, overload

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ropewalk.client.patience import Trial
from ropewalk.client.refusals import refusal_of
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import RopewalkError, Unavailable

PAGE: Final = 200
TURNED_AWAY: Final = 429
STORE_AWAY: Final = 503
LOST_ON_THE_WAY: Final = (502, 504)
Answer = TypeVar("Answer")


class TransportError(Exception):
    """No reply came, in the words of the library that was asked; `is_unsent` if the request never left."""

    def __init__(self, cause: Exception, *, is_unsent: bool) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__)
        self.is_unsent = is_unsent


class Request(Struct, frozen=True, kw_only=True):
    """What is asked; `seconds` is how long the server may think about it.

    `repeats`: asking twice does no more than asking once, and answers the same. `doubles`: it does twice as much.
    """

    method: str
    path: str
    params: Mapping[str, str] = {}
    body: JSON | UnsetType = UNSET
    headers: Mapping[str, str] = {}
    repeats: bool = False
    doubles: bool = False
    seconds: float = 0.0


class Reply(Struct, frozen=True):
    """What came back; `stream` is there to be read on if one was opened."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    stream: Any = None

    def json(self) -> Any:
        """The answer; an empty one is None."""
        try:
            return msgspec.json.decode(self.body) if self.body else None
        except msgspec.DecodeError as error:
            raise RopewalkError("the answer is no JSON: is this the address of a Ropewalk server?") from error


class Send(Struct, frozen=True):
    """Gives the reply, whole."""

    request: Request


class Open(Struct, frozen=True):
    """Gives the reply, with a stream to read if it is a good one."""

    request: Request


class SendFile(Struct, frozen=True):
    """Gives the reply, whole, to a request whose body is the content of a file."""

    request: Request
    path: str


class Save(Struct, frozen=True):
    """Gives the reply; if it is a good one, its body is in the file afterwards, and is what the hash says."""

    request: Request
    path: str
    hash: str


class Read(Struct, frozen=True):
    """Gives the next message of a stream; None at its end."""

    stream: Any


class Close(Struct, frozen=True):
    """Lets a stream go."""

    stream: Any


class Sleep(Struct, frozen=True):
    """Lets time pass."""

    seconds: float


class Item(Struct, Generic[Answer], frozen=True):
    """Something for the listener of a series."""

    value: Answer


class End(Struct, Generic[Answer], frozen=True):
    """The talk is over; this came of it."""

    value: Answer


Step: TypeAlias = Send | SendFile | Save | Open | Read | Close | Sleep
Talk: TypeAlias = Generator[Step, Any, Answer]
"""A talk with an answer at its end."""
Series: TypeAlias = Generator[Step | Item[Answer], Any, None]
"""A talk with any number of them on its way."""


@overload
def resume(talk: Talk[Answer], outcome: Any = None) -> Step | End[Answer]: ...
@overload
def resume(talk: Series[Answer], outcome: Any = None) -> Step | Item[Answer] | End[None]: ...
def resume(talk: Generator[Any, Any, Any], outcome: Any = None) -> Any:
    """The next step of a talk, after what came of the last one."""
    try:
        return talk.throw(outcome) if isinstance(outcome, TransportError) else talk.send(outcome)
    except StopIteration as end:
        return End(end.value)


# Requests


def get(path: str, params: Mapping[str, Any] | None = None, seconds: float = 0.0) -> Request:
    """Something to read."""
    return Request(method="GET", path=path, params=_texts(params or {}), repeats=True, seconds=seconds)


def post(path: str, body: JSON | UnsetType = UNSET, *, repeats: bool = False, doubles: bool = False,
         seconds: float = 0.0, params: Mapping[str, Any] | None = None,
         headers: Mapping[str, str] | None = None) -> Request:  # fmt: skip
    """Something to do."""
    return Request(
        method="POST",
        path=path,
        params=_texts(params or {}),
        body=body,
        headers=headers or {},
        repeats=repeats,
        doubles=doubles,
        seconds=seconds,
    )


def put(path: str, body: JSON) -> Request:
    """Something to be so from now on, however often that is said."""
    return Request(method="PUT", path=path, body=body, repeats=True)


def patch(path: str, body: JSON) -> Request:
    """Parts of something to be so from now on, however often that is said."""
    return Request(method="PATCH", path=path, body=body, repeats=True)


def delete(path: str, params: Mapping[str, Any] | None = None) -> Request:
    """Something to be no more, however often that is said."""
    return Request(method="DELETE", path=path, params=_texts(params or {}), repeats=True)


def _texts(params: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as a query has them; what is None is not said."""
    return {name: _text(value) for name, value in params.items() if value is not None}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def said(**fields: JSON) -> dict[str, JSON]:
    """The fields of a body that were given."""
    return {name: value for name, value in fields.items() if value is not None}


# Talks that others are made of


def ask(request: Request, patience: float) -> Talk[Any]:
    """The answer to a request."""
    reply = yield from insist(Send(request), patience)
    return reply.json()


def insist(step: Send | SendFile | Save | Open, patience: float) -> Talk[Reply]:
    """A good reply, asked for as often as patience and prudence allow; else the refusal is raised.

    What may have been done already is asked for again only if that does no harm.
    """
    trial, request = Trial(patience), step.request
    while True:
        cause: Exception | None = None
        wish = None
        try:
            reply: Reply = yield step
        except TransportError as error:
            cause, fault, is_safe = error, _lost(error), error.is_unsent or request.repeats
        else:
            if reply.status < 400:
                return reply
            fault, wish = refusal_of(reply.status, reply.body), _retry_after(reply)
            is_safe = _may_repeat(request, reply.status)
        pause = trial.pause(wish) if is_safe else None
        if pause is None:
            raise fault from cause
        yield Sleep(pause)


def _may_repeat(request: Request, status: int) -> bool:
    """Whether to come back after such a refusal. A store that goes away may have kept what it could not confirm."""
    if status == STORE_AWAY:
        return not request.doubles
    return status == TURNED_AWAY or (request.repeats and status in LOST_ON_THE_WAY)


def _lost(error: TransportError) -> RopewalkError:
    if error.is_unsent:
        return Unavailable(f"the server cannot be reached ({error})")
    return Unavailable(f"the server went away before it answered ({error}): see what was done, then try again")


def _retry_after(reply: Reply) -> float | None:
    """The seconds the server asks to wait; a date is not what ours sends."""
    text = reply.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else None


def pages(path: str, params: Mapping[str, Any], patience: float, most: int | None = None) -> Series[Any]:
    """Every item of a list, page by page, as they are wanted; at most so many."""
    cursor: str | None = None
    while most is None or most > 0:
        size = PAGE if most is None else min(PAGE, most)
        page = yield from ask(get(path, {**params, "limit": size, "cursor": cursor}), patience)
        for item in page["items"]:
            yield Item(item)
        cursor = page.get("next")
        if cursor is None:
            return
        most = None if most is None else most - len(page["items"])


def whole(path: str, patience: float) -> Series[Any]:
    """Every item of a list that is short enough to come at once."""
    answer = yield from ask(get(path), patience)
    for item in answer["items"]:
        yield Item(item)
