"""What a node may hand on: plain JSON, within bounds.

Nearly every output is plain already, so a quick look says yes or "perhaps not"; only then a full walk converts (a
tuple, a dataclass, a date) or says what is wrong and where. Plain values come back as the very same object. The
encoder cannot be asked instead: it writes NaN as null and bytes as base64 without a word.
"""

from collections.abc import Iterable
from math import isfinite
from typing import Any, Final

import msgspec

from ropewalk.core.brief import BRIEF_TEXT
from ropewalk.core.canonical import DEEPEST, LARGEST_INTEGER, step
from ropewalk.core.errors import Unfinished
from ropewalk.nodes.conversion import NotJson, converted
from ropewalk.nodes.failure import NodeFailure

LARGEST_OUTPUT = 64 * 1024 * 1024
# What the walk counts is at most this many times too little: an integer of seventeen characters is counted as one.
LARGEST_UNDERCOUNT = 20

_encode: Final = msgspec.json.Encoder().encode


class Output(msgspec.Struct, frozen=True):
    """What a node hands on, and through which of its ports; `tokens` is what it used up of a model's, if it knows."""

    value: Any = None
    ports: tuple[str, ...] = ()
    tokens: int | None = None


def check_output(value: Any, limit: int = LARGEST_OUTPUT) -> Any:
    """The value as plain JSON; a permanent failure that names the place for what JSON cannot say."""
    value, left = checked(value, limit)
    # Digits, escapes and wide characters were not counted: only the encoder knows the exact size of a large one.
    if limit - left > limit // LARGEST_UNDERCOUNT and len(_encode(value)) > limit:
        raise NodeFailure.permanent(f"output: {_too_large(limit)}")
    return value


def plain_briefly(value: Any) -> Any:
    """The value as plain JSON; Unfinished if it is large, or no JSON: `checked` finds out which."""
    try:
        _left(value, BRIEF_TEXT, 0)
    except _TooMuch as much:
        raise Unfinished from much
    except (_NotPlain, UnicodeEncodeError):
        try:
            return _Walk(BRIEF_TEXT).plain(value, 0)
        except NotJson as refusal:
            raise Unfinished from refusal
    return value


def checked(value: Any, limit: int) -> tuple[Any, int]:
    """The value as plain JSON, and how much of the limit is left as far as that was counted."""
    try:
        return value, _left(value, limit, 0)
    except (_NotPlain, UnicodeEncodeError):
        return _walked(value, limit)
    except RuntimeError as error:
        raise NodeFailure.permanent("output: was changed while it was being recorded") from error


class _NotPlain(Exception):
    """The quick look met something it does not know."""


class _TooMuch(_NotPlain):
    """The quick look met more than fits."""


def _left(value: Any, left: int, depth: int) -> int:
    """How many bytes still fit after a plain value."""
    kind = type(value)
    if depth >= DEEPEST:
        raise _NotPlain
    if kind is dict:
        for key in value:
            if type(key) is not str:
                raise _NotPlain
            if not key.isascii():
                key.encode()
            left -= len(key) + 3
        return _left_after(value.values(), left - 2, depth)
    if kind is list:
        return _left_after(value, left - 2, depth)
    return _left_after((value,), left, depth)


def _left_after(parts: Iterable[Any], left: int, depth: int) -> int:
    # One loop without calls for scalars: this is paid for every output of every node.
    for part in parts:
        kind = type(part)
        if kind is str:
            left -= len(part) + 2
            if not part.isascii():
                part.encode()
        elif kind is dict or kind is list:
            left = _left(part, left, depth + 1)
        elif kind is int:
            if not -LARGEST_INTEGER <= part <= LARGEST_INTEGER:
                raise _NotPlain
            left -= 1
        elif kind is float:
            if not isfinite(part):
                raise _NotPlain
            left -= 3
        elif part is None or kind is bool:
            left -= 4
        else:
            raise _NotPlain
        if left < 0:
            raise _TooMuch
    return left


def _walked(value: Any, limit: int) -> tuple[Any, int]:
    walk = _Walk(limit)
    try:
        return walk.plain(value, 0), walk.left
    except NotJson as refusal:
        raise NodeFailure.permanent(refusal.told(value)) from None


def _too_large(limit: int) -> str:
    return f"is larger than {limit // (1024 * 1024)} MiB" if limit >= 1024 * 1024 else f"is larger than {limit} bytes"


class _Walk:
    """`left` is how many more bytes fit; every value takes at least what it needs in JSON."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.left = self.limit = limit

    def plain(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self.text(value)
        if kind is dict:
            return self.object(value, depth)
        if kind is list:
            return self.list(value, depth)
        return self.scalar(value, kind, depth)

    def scalar(self, value: Any, kind: type, depth: int) -> Any:
        self.take(1)
        if value is None or kind is bool:
            return value
        if kind is int:
            return _integer(value)
        if kind is float:
            return _float(value)
        return self.plain(converted(value), depth)

    def text(self, value: str) -> str:
        self.take(len(value) + 2)
        if not value.isascii():
            _refuse_surrogates(value)
        return value

    def object(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        if depth >= DEEPEST:
            _refuse_depth()
        self.take(1 + len(value))
        made: dict[str, Any] = {}
        is_same = True
        key: Any = None
        try:
            for key, part in value.items():
                name = self.text(key if type(key) is str else _name(key))
                if name in made:
                    raise NotJson("the key is there twice")
                made[name] = plain = self.plain(part, depth + 1)
                is_same = is_same and plain is part and name is key
        except NotJson as refusal:
            refusal.path.append(key if isinstance(key, str) else step(key))
            raise
        except RuntimeError as error:
            raise NotJson("was changed while it was being recorded") from error
        return value if is_same else made

    def list(self, value: list[Any], depth: int) -> list[Any]:
        if depth >= DEEPEST:
            _refuse_depth()
        self.take(1 + len(value))
        changed: dict[int, Any] = {}
        place = 0
        try:
            for place, part in enumerate(value):
                plain = self.plain(part, depth + 1)
                if plain is not part:
                    changed[place] = plain
        except NotJson as refusal:
            refusal.path.append(place)
            raise
        return [changed.get(place, part) for place, part in enumerate(value)] if changed else value

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise NotJson(_too_large(self.limit))


def _refuse_depth() -> None:
    raise NotJson(f"is nested more than {DEEPEST} levels deep")


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotJson("has a lone surrogate, which is no character") from None


def _name(key: Any) -> str:
    """A key of any kind of text, an enumeration's say, as plain text."""
    if not isinstance(key, str):
        raise NotJson("the key must be text")
    return str.__str__(key)


def _integer(value: int) -> int:
    if -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
        return value
    raise NotJson("the integer is beyond ±2⁵³; hand it on as text")


def _float(value: float) -> float:
    if isfinite(value):
        return value
    raise NotJson(f"{'NaN' if value != value else 'Infinity'} is not JSON")
