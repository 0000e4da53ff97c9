"""When a schedule is due: rules like those of cron, or every so often, on the clock of a zone.

Pure: a due time follows from the schedule and the due time before it, and from nothing else, so any server computes the
same ones. Where clocks are set forward, what was due in the gap is due right after it; where they are set back, what
names an hour is due once, and what runs through the hours goes on (as Debian's cron has it).
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ropewalk.core.duration import DAY, SECOND, format_duration, parse_duration
from ropewalk.core.instant import EPOCH

if TYPE_CHECKING:
    from cronsim import CronSim

WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
SHORTEST_PERIOD: Final = SECOND
LONGEST_PERIOD: Final = 366 * DAY
MOST_RULES: Final = 50
LONGEST_JITTER: Final = DAY
_NEAREST: Final = re.compile(r"([1-9]|[12][0-9]|3[01])W", re.IGNORECASE)
_LATEST: Final = datetime(9990, 1, 1, tzinfo=UTC)
_SATURDAY: Final = 5
_SUNDAY: Final = 6


class ScheduleError(ValueError):
    """The rule is no rule, or is never due; the message says what to write instead."""


class Schedule:
    """The due times (µs) of a trigger. `anchor` is when it came to be: `every` may count from there."""

    def __init__(self, settings: Mapping[str, Any], anchor: int = 0) -> None:
        self._zone = zone_of(settings.get("zone"))
        self._start = moment_of(settings["start"]) if "start" in settings else None
        self._end = moment_of(settings["end"]) if "end" in settings else None
        self._jitter = parse_duration(settings.get("jitter", 0), 0, LONGEST_JITTER)
        self._rules = _rules_of(settings, self._zone, anchor if self._start is None else self._start)
        if self._start is not None and self._end is not None and self._end < self._start:
            raise ScheduleError("end is before start")

    def after(self, at: int) -> int | None:
        """The first due time after this moment; None if there is none any more."""
        begin = at if self._start is None else max(at, self._start - 1)
        due = min((found for rule in self._rules if (found := rule.after(begin)) is not None), default=None)
        return None if due is None or (self._end is not None and due > self._end) else due

    def between(self, after: int, until: int) -> Iterator[int]:
        """The due times after the one moment, up to and including the other."""
        due = self.after(after)
        while due is not None and due <= until:
            yield due
            due = self.after(due)

    def fires_at(self, trigger: str, due: int) -> int:
        """When this due time is acted upon: later by its jitter, which every server computes alike."""
        if not self._jitter:
            return due
        share = int.from_bytes(hashlib.sha256(f"{trigger}/{due}".encode()).digest()[:8]) / 2**64
        return due + int(self._jitter * share)

    def in_words(self) -> str:
        """What the rules say, for people."""
        zone = "" if self._zone is UTC else f", {self._zone}"
        said = "; ".join(rule.in_words() for rule in self._rules)
        return f"{said}{zone}" + (f", up to {format_duration(self._jitter)} later" if self._jitter else "")


class _Cron:
    """Five or six fields; a day like `15W` is the weekday nearest to the 15th, within its month."""

    def __init__(self, text: str, zone: tzinfo) -> None:
        self._text = text
        self._zone = zone
        fields = WORDS.get(text.lower(), text).split()
        if text.startswith("@") and text.lower() not in WORDS:
            raise ScheduleError(f"{text!r} is no word of a schedule; there are {', '.join(WORDS)}")
        self._nearest: int | None = None
        if len(fields) in (5, 6) and (found := _NEAREST.fullmatch(fields[-3])):
            self._nearest = int(found[1])
            fields[-3] = found[1]
        # With the very day of `15W` first: a day that none of the months has is refused by this.
        self._fields = " ".join(fields)
        self._simulated(datetime(2026, 1, 1, tzinfo=zone))
        if self._nearest is not None:
            fields[-3] = f"{max(1, self._nearest - 2)}-{min(31, self._nearest + 2)}"
            self._fields = " ".join(fields)

    def _simulated(self, at: datetime) -> "CronSim":
        from cronsim import CronSim, CronSimError  # here, since most processes never meet a schedule

        try:
            return CronSim(self._fields, at)
        except CronSimError as error:
            reason = str(error).replace("Bad ", "it has a bad ").replace("Wrong number", "it has a wrong number")
            raise ScheduleError(
                f"{self._text!r} is no schedule: {reason}; write five fields (minute, hour, day, month, weekday), six "
                "with seconds first, or a word like @daily"
            ) from None

    def after(self, at: int) -> int | None:
        moment = (EPOCH + timedelta(microseconds=at)).astimezone(self._zone)
        if moment >= _LATEST:
            return None
        try:
            due = next(self._simulated(moment))
            while not self._is_right_day(due):
                due = next(self._simulated(due.replace(hour=23, minute=59, second=59)))
        except (StopIteration, OverflowError):
            return None
        return micros(due)

    def _is_right_day(self, at: datetime) -> bool:
        return self._nearest is None or at.day == nearest_weekday(at.year, at.month, self._nearest)

    def in_words(self) -> str:
        if self._nearest is not None:
            return f"cron {self._text}"
        said: str = self._simulated(datetime(2026, 1, 1, tzinfo=self._zone)).explain()
        return said[:1].lower() + said[1:]


class _Every:
    """Every so often: at multiples of the period since 1970 in UTC, or since the anchor."""

    def __init__(self, period: int, anchor: int | None) -> None:
        self._period = period
        self._anchor = anchor

    def after(self, at: int) -> int | None:
        anchor = self._anchor or 0
        return anchor + max(0 if self._anchor is None else 1, (at - anchor) // self._period + 1) * self._period

    def in_words(self) -> str:
        return f"every {format_duration(self._period)}"


def _rules_of(settings: Mapping[str, Any], zone: tzinfo, anchor: int) -> list[_Cron | _Every]:
    if "every" in settings:
        period = parse_duration(settings["every"], SHORTEST_PERIOD, LONGEST_PERIOD)
        return [_Every(period, None if settings.get("aligned", True) else anchor)]
    written = settings["cron"]
    texts = written if isinstance(written, list) else [written]
    if not 0 < len(texts) <= MOST_RULES:
        raise ScheduleError(f"needs 1 to {MOST_RULES} rules")
    rules = [_Cron(text, zone) for text in texts]
    for rule, text in zip(rules, texts, strict=True):
        if rule.after(0) is None:
            raise ScheduleError(f"{text!r} is never due")
    return list(rules)


def nearest_weekday(year: int, month: int, day: int) -> int:
    """The day from Monday to Friday that is nearest to this one in the same month; 0 if the month has no such day."""
    try:
        at = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return 0
    if at.weekday() == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if at.weekday() == _SUNDAY:
        return day + 1 if (at + timedelta(days=1)).month == month else day - 2
    return day


@lru_cache(maxsize=256)
def zone_of(name: str | None) -> tzinfo:
    """The zone of this name; UTC where none is named."""
    if name is None or name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # here, since most processes never meet a schedule

    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise ScheduleError(f"there is no zone {name!r}; write its IANA name, such as Europe/Berlin or UTC") from None


def moment_of(text: str) -> int:
    """A moment that an author wrote in RFC 3339, in µs."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ScheduleError(f"{text!r} is no moment; write it like 2026-11-15T12:00:00Z") from None
    if moment.tzinfo is None:
        raise ScheduleError(f"{text!r} names no zone; write it like 2026-11-15T12:00:00Z")
    return micros(moment)


def micros(moment: datetime) -> int:
    """The moment in µs since the epoch."""
    return (moment - EPOCH) // timedelta(microseconds=1)
