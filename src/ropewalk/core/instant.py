"""Moments: µs since the epoch inside, RFC 3339 in UTC for people."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(at: int) -> str:
    """`2026-11-15T12:00:00.000000Z`; exact to the microsecond, so that text sorts as time does."""
    when = EPOCH + timedelta(microseconds=at)
    # By half cheaper than by a format; every execution that is told of its start pays for it.
    return f"{when.isoformat(timespec='microseconds')[:-6]}Z"


def moment(at: int | None) -> str | None:
    """The same of a moment that may not have come, or is not known."""
    return None if at is None else rfc3339(at)
