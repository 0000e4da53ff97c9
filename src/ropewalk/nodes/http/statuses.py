"""Which statuses count as success: 404, "2xx", "200-299", or several of these."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from ropewalk.core.errors import ErrorType
from ropewalk.core.retry import classify_status

_CLASS = re.compile(r"([1-5])[xX]{2}", re.ASCII)
_SPAN = re.compile(r"([1-5][0-9]{2})\s*-\s*([1-5][0-9]{2})", re.ASCII)
_ONE = re.compile(r"[1-5][0-9]{2}", re.ASCII)


def span_of(written: int | str) -> range:
    """The statuses that are meant; ValueError if none are."""
    text = str(written).strip()
    if found := _CLASS.fullmatch(text):
        return range(int(found[1]) * 100, int(found[1]) * 100 + 100)
    if (found := _SPAN.fullmatch(text)) and int(found[1]) <= int(found[2]):
        return range(int(found[1]), int(found[2]) + 1)
    if _ONE.fullmatch(text):
        return range(int(text), int(text) + 1)
    raise ValueError("is no status; write it like 404, 2xx or 200-299")


def _meant(written: Any) -> Any:
    for each in written if isinstance(written, list) else [written]:
        span_of(each)
    return written


Status = int | str
Statuses = Annotated[Status | list[Annotated[Status, Field()]], AfterValidator(_meant)]
"""Statuses as a parameter."""


def is_among(status: int, expected: Status | list[Status]) -> bool:
    """Whether the status is one of those that are expected."""
    return any(status in span_of(each) for each in (expected if isinstance(expected, list) else [expected]))


def failure_kind(status: int, expected: Status | list[Status] | None) -> ErrorType | None:
    """What the status counts as; None for a success."""
    kind = classify_status(status)
    if expected is None:
        return kind
    return None if is_among(status, expected) else kind or ErrorType.PERMANENT
