"""Time zones by their IANA names; the table of their offsets is the platform's, or the one of the package tzdata."""

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Final

from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.values import shown

_LONGEST_NAME: Final = 64


def zone(name: str | None) -> tzinfo:
    """The zone of this name; UTC where none is named."""
    if name is None:
        return UTC
    if len(name) > _LONGEST_NAME:
        raise Refused(f"needs the name of a zone, such as Europe/Berlin, of at most {_LONGEST_NAME} characters")
    found = _known(name)
    if found is None:
        raise Refused(f"unknown zone {shown(name)}; write its IANA name, such as Europe/Berlin or UTC")
    return found


# A table of a zone is read once: what a name means does not change while a process runs.
@lru_cache(maxsize=256)
def _known(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo  # here, since few expressions name a zone, and every command would import it

    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # in no table, or no name of a file
        return None


def on_the_clock(moment: datetime, zone: tzinfo) -> datetime:
    """What the clocks of that zone show then, without a zone, so that days and months can be counted on it."""
    return moment.astimezone(zone).replace(tzinfo=None)


def from_the_clock(local: datetime, zone: tzinfo) -> datetime:
    """The instant at which the clocks of the zone show this: the first of two, and the same distance after a gap."""
    return local.replace(tzinfo=zone).astimezone(UTC)
