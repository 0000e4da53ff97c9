"""Functions on instants. There is no clock here: an instant comes in, as RFC 3339 text or as seconds since 1970."""

import calendar
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.functions.table import Topic
from ropewalk.core.expression.functions.zones import from_the_clock, on_the_clock, zone
from ropewalk.core.expression.run import Run
from ropewalk.core.expression.values import shown

DATE: Final = Topic("Dates")
Instant = str | int | float
Meaning = TypeVar("Meaning")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?([Zz]|[+-][0-9]{2}:[0-9]{2})?)?"
)
_SECONDS: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}
_MONTHS: Final = {"months": 1, "years": 12}
_CLOCK_UNITS: Final = ("seconds", "minutes", "hours")
_LONGEST_PATTERN: Final = 128
_MONTH_NAMES: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAY_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Written out here, since the platform's own formatting depends on its locale and takes widths of any size.
_FORMATS: Final[dict[str, Callable[[datetime], str]]] = {
    "Y": lambda moment: f"{moment.year:04}",
    "m": lambda moment: f"{moment.month:02}",
    "d": lambda moment: f"{moment.day:02}",
    "H": lambda moment: f"{moment.hour:02}",
    "M": lambda moment: f"{moment.minute:02}",
    "S": lambda moment: f"{moment.second:02}",
    "f": lambda moment: f"{moment.microsecond:06}",
    "B": lambda moment: _MONTH_NAMES[moment.month - 1],
    "b": lambda moment: _MONTH_NAMES[moment.month - 1][:3],
    "A": lambda moment: _DAY_NAMES[moment.weekday()],
    "a": lambda moment: _DAY_NAMES[moment.weekday()][:3],
    "j": lambda moment: f"{moment.timetuple().tm_yday:03}",
    "z": lambda moment: moment.isoformat()[-6:],
    "%": lambda moment: "%",
}
_FIELDS: Final = {
    "Y": ("year", 4),
    "m": ("month", 2),
    "d": ("day", 2),
    "H": ("hour", 2),
    "M": ("minute", 2),
    "S": ("second", 2),
    "f": ("microsecond", 6),
}
_DIRECTIVE = re.compile("%(.)", re.DOTALL)


@DATE.function(
    "date(value: instant) -> text",
    "The instant as RFC 3339 text in UTC; without an offset it is taken as UTC.",
    'date("2026-03-01T12:00:00+02:00")',
    "2026-03-01T10:00:00Z",
    cost=5,
)
def date(run: Run, value: Instant) -> str:
    return _written(_moment(value))


@DATE.function("epoch(value: instant) -> number", "Seconds since 1970.", 'epoch("1970-01-02T00:00:00Z")', 86400, cost=5)
def epoch(run: Run, value: Instant) -> float:
    seconds = (_moment(value) - _EPOCH).total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


@DATE.function(
    "date_add(value: instant, amount: number, unit: text, zone?: text) -> text",
    "Later (or earlier) by seconds, minutes, hours, days, weeks, months or years; days and longer are counted on the "
    "clocks of the zone (UTC), so that a day may have 23 or 25 hours.",
    'date_add("2026-01-31T00:00:00Z", 1, "months")',
    "2026-02-28T00:00:00Z",
    cost=6,
)
def date_add(run: Run, value: Instant, amount: float, unit: str, name: str | None = None) -> str:
    moment, place = _moment(value), zone(name)
    with _within_the_years():
        if unit in _CLOCK_UNITS:
            return _written(moment + _span(amount, unit))
        local = on_the_clock(moment, place)
        later = _months_later(local, amount, unit) if unit in _MONTHS else local + _span(amount, unit)
        return _written(from_the_clock(later, place))


@DATE.function(
    "date_start(value: instant, unit: text, zone?: text) -> text",
    "The start of the minute, hour, day, week (Monday), month or year in which the instant lies, on the clocks of the "
    "zone (UTC); the unit as in `date_add`.",
    'date_start("2026-03-18T10:30:00Z", "months", "Europe/Berlin")',
    "2026-02-28T23:00:00Z",
    cost=8,
)
def date_start(run: Run, value: Instant, unit: str, name: str | None = None) -> str:
    _span(1, "days" if unit in _MONTHS else unit)
    place = zone(name)
    with _within_the_years():
        return _written(from_the_clock(_floor(on_the_clock(_moment(value), place), unit), place))


def _floor(local: datetime, unit: str) -> datetime:
    day = local.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "seconds":
            return local.replace(microsecond=0)
        case "minutes":
            return local.replace(second=0, microsecond=0)
        case "hours":
            return local.replace(minute=0, second=0, microsecond=0)
        case "days":
            return day
        case "weeks":
            return day - timedelta(days=day.weekday())
        case "months":
            return day.replace(day=1)
        case _:
            return day.replace(month=1, day=1)


@DATE.function(
    "date_in(value: instant, zone: text) -> text",
    "The instant as RFC 3339 text with the offset of the zone.",
    'date_in("2026-07-01T12:00:00Z", "America/New_York")',
    "2026-07-01T08:00:00-04:00",
    cost=6,
)
def date_in(run: Run, value: Instant, name: str) -> str:
    with _within_the_years():
        return _written(_moment(value).astimezone(zone(name)))


@DATE.function(
    "date_diff(later: instant, earlier: instant, unit: text) -> number",
    "The time between two instants in seconds, minutes, hours, days or weeks; in months or years how many whole ones "
    "`date_add` can add to the earlier instant without passing the later; negative if `later` is the earlier.",
    'date_diff("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "hours")',
    24,
    cost=8,
)
def date_diff(run: Run, later: Instant, earlier: Instant, unit: str) -> float:
    if unit in _MONTHS:
        return _months_between(_moment(later), _moment(earlier), _MONTHS[unit])
    difference = (_moment(later) - _moment(earlier)) / _span(1, unit)
    return int(difference) if difference.is_integer() else difference


@DATE.function(
    "date_format(value: instant, pattern: text, zone?: text) -> text",
    "By pattern: %Y %m %d %H %M %S %f, %B %b (month), %A %a (day), %j (day of year), %z (offset), %%; on the clocks of "
    "the zone (UTC).",
    'date_format("2026-03-01T10:00:00Z", "%a %d %b %Y")',
    "Sun 01 Mar 2026",
    cost=8,
)
def date_format(run: Run, value: Instant, pattern: str, name: str | None = None) -> str:
    with _within_the_years():
        moment = _moment(value).astimezone(zone(name))
    run.charge(len(_bounded(pattern)) >> 3)
    return _DIRECTIVE.sub(lambda found: _known(_FORMATS, found[1])(moment), pattern)


@DATE.function(
    "date_parse(value: text, pattern: text, zone?: text) -> text",
    "The instant in a text, by pattern: %Y %m %d %H %M %S %f; on the clocks of the zone (UTC).",
    'date_parse("01.03.2026", "%d.%m.%Y")',
    "2026-03-01T00:00:00Z",
    cost=12,
)
def date_parse(run: Run, value: str, pattern: str, name: str | None = None) -> str:
    run.charge(len(_bounded(pattern)) >> 2)
    place = zone(name)
    fields = {"year": 1970, "month": 1, "day": 1, **_read(value, pattern)}
    try:
        local = datetime(**fields, tzinfo=UTC)
    except ValueError:
        raise Refused(f"there is no such date as {shown(value)}") from None
    with _within_the_years():
        return _written(from_the_clock(local, place))


def _read(value: str, pattern: str) -> dict[str, int]:
    fields: dict[str, int] = {}
    place = 0
    # Literal text stands at even places between the directives.
    for index, part in enumerate(_DIRECTIVE.split(pattern)):
        name, digits = _known(_FIELDS, part) if index % 2 else ("", 0)
        found = value[place : place + (digits or len(part))]
        if (not _is_number(found, digits)) if name else (found != part):
            raise Refused(f"{shown(value)} does not read like {shown(pattern)}")
        place += len(found)
        if name:
            fields[name] = int(found)
    if place != len(value):
        raise Refused(f"{shown(value)} goes on behind {shown(pattern)}")
    return fields


def _is_number(text: str, digits: int) -> bool:
    return len(text) == digits and text.isascii() and text.isdigit()


def _known(table: dict[str, Meaning], directive: str) -> Meaning:
    if directive not in table:
        raise Refused(
            f"unknown directive %{ascii(directive)[1:-1]}; there are {' '.join('%' + known for known in table)}"
        )
    return table[directive]


def _bounded(pattern: str) -> str:
    if len(pattern) > _LONGEST_PATTERN:
        raise Refused(f"takes a pattern of at most {_LONGEST_PATTERN} characters")
    return pattern


def _moment(value: Instant) -> datetime:
    try:
        if not isinstance(value, str):
            return _EPOCH + timedelta(seconds=value)
        if not _RFC3339.fullmatch(value):
            raise Refused(f"cannot read {shown(value)} as an instant; write it like 2026-03-01T12:00:00Z")
        moment = datetime.fromisoformat(value.upper())
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (OverflowError, ValueError):
        raise Refused("is no instant between the years 1 and 9999") from None


@contextmanager
def _within_the_years() -> Iterator[None]:
    try:
        yield
    except (OverflowError, ValueError):
        raise Refused("gives a date outside the years 1 to 9999") from None


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="auto").replace("+00:00", "Z")


def _span(amount: float, unit: str) -> timedelta:
    if unit not in _SECONDS:
        raise Refused(f"unknown unit {shown(unit)}; there are {', '.join([*_SECONDS, *_MONTHS])}")
    return timedelta(seconds=amount * _SECONDS[unit])


def _months_later(moment: datetime, amount: float, unit: str) -> datetime:
    if not isinstance(amount, int):
        raise Refused("months and years are added in integers")
    months = moment.year * 12 + moment.month - 1 + amount * _MONTHS[unit]
    year, month = divmod(months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def _months_between(later: datetime, earlier: datetime, length: int) -> int:
    """How many whole spans of so many months lie between, negative where the order is reversed."""
    if later < earlier:
        return -_months_between(earlier, later, length)
    months = 12 * (later.year - earlier.year) + later.month - earlier.month
    if _months_later(earlier, months, "months") > later:
        months -= 1
    return months // length
