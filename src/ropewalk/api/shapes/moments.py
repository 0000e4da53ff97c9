"""Moments as clients write them: RFC 3339, with an offset."""

from datetime import datetime, timedelta
from typing import Annotated, Final

from fastapi import Query

from ropewalk.api.shapes.problems import Refused
from ropewalk.core.instant import EPOCH

RFC3339: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)
_MICROSECOND: Final = timedelta(microseconds=1)

From = Annotated[
    str | None,
    Query(alias="from", max_length=40, pattern=RFC3339, description="Not before this moment.",
          examples=["2026-11-16T08:00:00Z"]),
]  # fmt: skip
To = Annotated[
    str | None,
    Query(alias="to", max_length=40, pattern=RFC3339, description="Before this moment.",
          examples=["2026-11-17T08:00:00Z"]),
]  # fmt: skip


def span(since: str | None, until: str | None, never: int) -> tuple[int, int]:
    """From when to when, in µs; `never` is an end that was not given."""
    begin = 0 if since is None else micros(since, "query.from")
    return begin, never if until is None else micros(until, "query.to")


def micros(text: str, field: str) -> int:
    """A moment in µs since the epoch."""
    try:
        return (datetime.fromisoformat(text.upper()) - EPOCH) // _MICROSECOND
    except ValueError as error:
        raise Refused(422, f"this is no moment: {error}", field) from error
