"""What databases keep, as JSON, and the way back.

| in the database | in JSON |
|---|---|
| integers | a number; text beyond ±2^53, where numbers of JSON are not exact |
| decimals | text, with every digit |
| moments with a zone | text in UTC: `2026-03-01T12:00:00Z`; without a zone the same without the `Z` |
| dates, times | text: `2026-03-01`, `12:00:00` |
| lengths of time | seconds |
| bytes | base64; as a parameter `{"$bytes": "<base64>"}` |
| JSON, arrays | JSON |
| anything else | its text |
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import singledispatch
from math import isfinite
from typing import Any

import msgspec

from ropewalk.core.canonical import LARGEST_INTEGER
from ropewalk.nodes.moments import written

BYTES = "$bytes"


@singledispatch
def plain(value: object) -> Any:
    """A value of a row as JSON."""
    return str(value)


@plain.register(type(None))
@plain.register(bool)
@plain.register(str)
def _as_it_is(value: Any) -> Any:
    return value


@plain.register
def _integer(value: int) -> int | str:
    return value if -LARGEST_INTEGER <= value <= LARGEST_INTEGER else str(value)


@plain.register
def _real(value: float) -> float | str:
    return value if isfinite(value) else str(value)


@plain.register
def _decimal(value: Decimal) -> str:
    return format(value, "f") if value.is_finite() else str(value)


@plain.register
def _moment(value: datetime) -> str:
    return value.isoformat() if value.tzinfo is None else written(value.astimezone(UTC))


@plain.register(date)
@plain.register(time)
def _day(value: date | time) -> str:
    return value.isoformat()


@plain.register
def _length(value: timedelta) -> float | int:
    seconds = value.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


@plain.register(bytes)
@plain.register(bytearray)
@plain.register(memoryview)
def _bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


@plain.register(list)
@plain.register(tuple)
def _list(value: Sequence[Any]) -> list[Any]:
    return [plain(part) for part in value]


@plain.register(set)
@plain.register(frozenset)
def _set(value: frozenset[Any]) -> list[Any]:
    return sorted(plain(part) for part in value)


@plain.register(dict)
@plain.register(Mapping)
def _object(value: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): plain(part) for name, part in value.items()}


def as_bytes(value: object) -> bytes | None:
    """The bytes that a parameter like `{"$bytes": "aGk="}` is; None if it is none. ValueError if it is no base64."""
    if not isinstance(value, dict) or list(value) != [BYTES]:
        return None
    return from_base64(value[BYTES])


def from_base64(text: object) -> bytes:
    """The bytes that a text stands for; else ValueError."""
    try:
        if isinstance(text, str):
            return base64.b64decode(text, validate=True)
    except binascii.Error:
        pass
    raise ValueError("is no base64")


def as_text(value: Any) -> Any:
    """A parameter for a database that asks for no type: bytes, plain values as they are, lists and objects as JSON."""
    data = as_bytes(value)
    if data is not None:
        return data
    return json_text(value) if isinstance(value, list | dict) else value


def json_text(value: Any) -> str:
    """The value as JSON."""
    return msgspec.json.encode(value).decode()


def told_apart(names: Sequence[str]) -> list[str]:
    """The names of columns; one that comes again has a number behind it."""
    found: dict[str, None] = {}
    for name in names:
        number = 2
        wanted = name
        while wanted in found:
            wanted, number = f"{name}_{number}", number + 1
        found[wanted] = None
    return list(found)
