"""Moments as nodes read and write them: RFC 3339 text, or seconds since 1970."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_TEXT = 64
NO_MOMENT = "is no moment; write it like 2026-03-01T12:00:00Z, or as seconds since 1970"


def moment_of(value: Any, zone: tzinfo = UTC) -> datetime:
    """The moment that a text or a number of seconds says; a text without an offset is in this zone. Else ValueError."""
    try:
        if isinstance(value, str) and len(value) <= LONGEST_TEXT:
            moment = datetime.fromisoformat(value.strip().upper())
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=zone).astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return EPOCH + timedelta(seconds=value)
    except (OverflowError, ValueError):
        pass
    raise ValueError(NO_MOMENT)


def written(moment: datetime) -> str:
    """The moment as RFC 3339 text; in UTC with a Z."""
    return moment.isoformat().replace("+00:00", "Z")


def zone_of(name: str) -> ZoneInfo:
    """The zone of an IANA name; ValueError if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # The library says so in several ways, by what the name looks like.
        raise ValueError("is no time zone; write it like Europe/Berlin or UTC") from None
