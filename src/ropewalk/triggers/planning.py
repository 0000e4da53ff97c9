"""What a schedule's due times come to, as far as time decides: pure, so that years of it can be tried in a moment.

A due time that is met within the grace starts an execution. One that was missed (no server ran, or the trigger was held
up) is decided by `misfire`: `skip` records that it was missed, `latest` starts only the last of those missed, `all`
starts each of them.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.duration import DAY, MINUTE, parse_duration
from ropewalk.core.schedule import Schedule

DEFAULT_GRACE: Final = MINUTE
LONGEST_GRACE: Final = 31 * DAY
MOST_AT_ONCE: Final = 500
"""How many due times are decided together; the next ones follow in the next step."""
MISSED: Final = "MISFIRE"


class Planned(Struct, frozen=True):
    """What is to be done now: these due times were missed, at most one is to start something; when to look again.

    `cursor` is the last due time that is decided by `missed` alone; `next_at` is None if nothing is due any more.
    """

    missed: tuple[int, ...]
    cursor: int
    due: int | None
    next_at: int | None


def plan(schedule: Schedule, settings: Mapping[str, Any], trigger: str, cursor: int, now: int) -> Planned:
    """What the due times after the cursor come to by now."""
    grace = parse_duration(settings.get("grace", DEFAULT_GRACE // 1_000_000), 0, LONGEST_GRACE)
    misfire = settings.get("misfire", "latest")
    missed: list[int] = []
    for due in islice(schedule.between(cursor, now), MOST_AT_ONCE):
        fires_at = schedule.fires_at(trigger, due)
        if fires_at > now:
            return Planned(tuple(missed), cursor, None, fires_at)
        if not _is_missed(schedule, trigger, due, now, grace, misfire):
            return Planned(tuple(missed), cursor, due, next_time(schedule, trigger, due))
        missed.append(due)
        cursor = due
    return Planned(tuple(missed), cursor, None, next_time(schedule, trigger, cursor))


def _is_missed(schedule: Schedule, trigger: str, due: int, now: int, grace: int, misfire: str) -> bool:
    if misfire == "all" or now - schedule.fires_at(trigger, due) <= grace:
        return False
    if misfire == "skip":
        return True
    following = schedule.after(due)
    return following is not None and schedule.fires_at(trigger, following) <= now


def next_time(schedule: Schedule, trigger: str, cursor: int) -> int | None:
    """When the due time after this one is acted upon."""
    due = schedule.after(cursor)
    return None if due is None else schedule.fires_at(trigger, due)
