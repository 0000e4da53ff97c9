"""Values compared, converted and put in order, alike in every node that does so.

Equality is that of JSON: 1 is 1.0 and neither is true. Null is what is missing: it converts to null, comes last in
every order, and is neither less nor greater than anything.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ropewalk.core.canonical import LARGEST_INTEGER, shown
from ropewalk.core.expression.values import a_kind, kind
from ropewalk.nodes.moments import moment_of, written

JSON: TypeAlias = Any
Kind = Literal["any", "text", "number", "integer", "boolean", "datetime", "list", "object"]
"""What a value can be converted to; `any` leaves it as it is."""

LONGEST_NUMBER = 40

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FLAGS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_encode: Final = msgspec.json.Encoder().encode


def is_same(one: JSON, other: JSON) -> bool:
    """Equality of JSON: 1 is 1.0 and neither is true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def identity(value: JSON) -> Any:
    """What is equal, and has the same hash, for values that are the same JSON."""
    if isinstance(value, dict):
        return frozenset((key, identity(part)) for key, part in value.items())
    if isinstance(value, list):
        return tuple(map(identity, value))
    return (bool, value) if isinstance(value, bool) else value


def converted(value: JSON, wanted: Kind) -> JSON:
    """The value as one of this kind; null stays null. ValueError if it cannot be read so."""
    if value is None or wanted == "any":
        return value
    made = _CONVERSIONS[wanted](value)
    if made is None:
        told = shown(value) if isinstance(value, str) else a_kind(value)
        raise ValueError(f"{told} cannot be read as {_NAMES[wanted]}")
    return made


def text_of(value: JSON) -> str:
    """A value as it reads inside a text: text as it is, null as nothing, everything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_INTEGER:
        return str(int(value))
    return _encode(value).decode()


def _number(value: JSON) -> float | None:
    if isinstance(value, str):
        value = _read_number(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return value


def _read_number(text: str) -> float | None:
    if len(text) > LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    read = float(text)
    is_whole = text.lstrip("+-").isdigit()
    return int(text) if is_whole and abs(read) <= LARGEST_INTEGER else read


def _integer(value: JSON) -> int | None:
    number = _number(value)
    return None if number is None or not float(number).is_integer() or abs(number) > LARGEST_INTEGER else int(number)


def _boolean(value: JSON) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _FLAGS.get(value.strip().lower())
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else None


def _datetime(value: JSON) -> str | None:
    try:
        return written(moment_of(value))
    except ValueError:
        return None


def _container(wanted: type) -> Callable[[JSON], JSON]:
    def read(value: JSON) -> JSON:
        if isinstance(value, str):
            try:
                value = msgspec.json.decode(value)
            except (msgspec.DecodeError, RecursionError):
                return None
        return value if isinstance(value, wanted) else None

    return read


_CONVERSIONS: Final[dict[Kind, Callable[[JSON], JSON]]] = {
    "text": text_of,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "datetime": _datetime,
    "list": _container(list),
    "object": _container(dict),
}
_NAMES: Final[dict[Kind, str]] = {
    "text": "text",
    "number": "a number",
    "integer": "an integer",
    "boolean": "true or false",
    "datetime": "a moment; write it like 2026-03-01T12:00:00Z",
    "list": "a list",
    "object": "an object",
}


def comparable(value: JSON, wanted: Kind, *, ignore_case: bool = False) -> JSON:
    """What stands for a value where it is compared: of the wanted kind if one is, moments as seconds."""
    value = converted(value, wanted)
    if wanted == "datetime" and value is not None:
        return (moment_of(value) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    return value.casefold() if ignore_case and isinstance(value, str) else value


def is_less(one: JSON, other: JSON) -> bool:
    """Whether one comes before the other; ValueError if they are not two numbers, two texts or two flags."""
    kinds = kind(one), kind(other)
    if kinds[0] != kinds[1] or kinds[0] in ("list", "object"):
        raise ValueError(f"cannot compare {a_kind(one)} and {a_kind(other)}; say which type both are to be read as")
    return bool(one < other)
