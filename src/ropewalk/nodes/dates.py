"""`datetime`: a moment read, moved, compared and written, in any zone."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Literal, Self, TypeAlias
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from ropewalk.core.expression import Scope
from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.functions.dates import date_add, date_diff, date_format, date_parse
from ropewalk.core.expression.run import Run
from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.moments import EPOCH, moment_of, written, zone_of

JSON: TypeAlias = Any
Unit = Literal["seconds", "minutes", "hours", "days", "weeks", "months", "years"]
Span = Literal["minute", "hour", "day", "week", "month", "year"]

MOST = 1_000_000_000
SAMPLE = "2026-03-01T10:00:00Z"


class DateTime(NodeType):
    name = "datetime"
    summary = "Reads a moment, moves it, and writes it in a zone; or says how much time lies between two moments."
    about = About(
        title="Date and time",
        category="data",
        icon="calendar-clock",
        keywords=("date", "time", "zone", "format", "parse", "add", "difference", "now", "calendar"),
        output={
            "type": "object",
            "properties": {
                "utc": {"type": "string", "description": "The moment in UTC."},
                "iso": {"type": "string", "description": "The moment in the zone, with its offset."},
                "unix": {"type": "number", "description": "Seconds since 1970."},
                "date": {"type": "string", "description": "The day in the zone."},
                "time": {"type": "string", "description": "The time of day in the zone."},
                "weekday": {"type": "integer", "description": "1 for Monday to 7 for Sunday."},
                "week": {"type": "integer", "description": "The ISO week."},
                "text": {"type": "string", "description": "The moment by `format`, if one is given."},
                "difference": {"type": "number", "description": "With `since`: the time between, in `unit`."},
            },
        },
    )
    has_rules = True

    class Parameters(Inputs):
        value: str | float | None = Field(
            None, description="RFC 3339 text, or seconds since 1970; by default the moment at which the node runs.",
            examples=[SAMPLE],
        )  # fmt: skip
        parse: str | None = Field(
            None, max_length=128, examples=["%d.%m.%Y"],
            description="How `value` is written, if it is no RFC 3339: %Y %m %d %H %M %S %f.",
        )  # fmt: skip
        zone: str = Field(
            "UTC", max_length=64, examples=["Europe/Berlin"],
            description="The time zone of the output, and of a value without an offset.",
        )  # fmt: skip
        add: dict[Unit, float] = Field(
            {}, description="What is added, negative to go back; days and longer by the calendar of the zone.",
            examples=[{"months": 1, "days": -1}],
        )  # fmt: skip
        start_of: Span | None = Field(
            None, description="Goes back to the start of this, in the zone, after adding.", examples=["month"]
        )
        since: str | float | None = Field(
            None, description="Another moment: how much time has passed since then.", examples=["2026-01-01T00:00:00Z"]
        )
        unit: Unit = Field("seconds", description="The unit of the difference.", examples=["days"])
        format: str | None = Field(
            None, max_length=128, examples=["%A, %d %B %Y", "rfc2822"],
            description="%Y %m %d %H %M %S %f %B %b %A %a %j, or the word rfc2822.",
        )  # fmt: skip

        @field_validator("zone")
        @classmethod
        def _a_zone(cls, zone: str) -> str:
            zone_of(zone)
            return zone

        @field_validator("add")
        @classmethod
        def _bounded(cls, add: dict[Unit, float]) -> dict[Unit, float]:
            for unit, amount in add.items():
                if abs(amount) > MOST or (unit in ("months", "years") and amount != int(amount)):
                    raise ValueError(f"{unit} must be at most {MOST:,}, and months and years integers")
            return add

        @model_validator(mode="after")
        def _readable(self) -> Self:
            if self.parse is not None and not isinstance(self.value, str):
                raise ValueError("parse says how value is written: give value as text")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        try:
            return Output(_made(parameters, context.now))
        except Refused as refused:
            raise NodeFailure.permanent(f"with: {refused.message}") from None
        except OverflowError:
            raise NodeFailure.permanent("with.add: gives a date outside the years 1 to 9999") from None


def _made(how: DateTime.Parameters, now: int) -> dict[str, JSON]:
    zone = zone_of(how.zone)
    local = _read(how, zone, now).astimezone(zone)
    local = _starting(_moved(local, how.add), how.start_of)
    moment = local.astimezone(UTC)
    seconds = (moment - EPOCH).total_seconds()
    made: dict[str, JSON] = {
        "utc": written(moment),
        "iso": written(local),
        "unix": int(seconds) if seconds.is_integer() else seconds,
        "date": local.date().isoformat(),
        "time": local.time().isoformat(),
        "weekday": local.isoweekday(),
        "week": local.isocalendar().week,
    }
    if how.format is not None:
        made["text"] = _formatted(local, how.format)
    if how.since is not None:
        earlier = _moment(how.since, zone, "since")
        made["difference"] = date_diff(Run(Scope()), written(moment), written(earlier), how.unit)
    return made


def _read(how: DateTime.Parameters, zone: ZoneInfo, now: int) -> datetime:
    if how.value is None:
        return EPOCH + timedelta(microseconds=now)
    if how.parse is None:
        return _moment(how.value, zone, "value")
    try:
        wall = date_parse(Run(Scope()), str(how.value), how.parse)
    except Refused as refused:
        raise NodeFailure.permanent(f"with.value: {refused.message}") from None
    return datetime.fromisoformat(wall).replace(tzinfo=zone)


def _moment(value: str | float, zone: ZoneInfo, field: str) -> datetime:
    try:
        return moment_of(value, zone)
    except ValueError as error:
        raise NodeFailure.permanent(f"with.{field}: {error}") from None


def _moved(local: datetime, add: dict[Unit, float]) -> datetime:
    """Days and longer by the calendar, on the clock of the wall; the rest as time that passes."""
    for unit in ("years", "months", "weeks", "days"):
        if amount := add.get(unit):
            wall = written(local.replace(tzinfo=UTC))
            number = int(amount) if amount == int(amount) else amount
            moved = date_add(Run(Scope()), wall, number, unit)
            local = datetime.fromisoformat(moved).replace(tzinfo=local.tzinfo)
    rest = timedelta(**{unit: add[unit] for unit in ("hours", "minutes", "seconds") if unit in add})
    return (local.astimezone(UTC) + rest).astimezone(local.tzinfo)


def _starting(local: datetime, span: Span | None) -> datetime:
    if span is None:
        return local
    made = local.replace(second=0, microsecond=0)
    made = made if span == "minute" else made.replace(minute=0)
    made = made if span in ("minute", "hour") else made.replace(hour=0)
    if span == "week":
        return made - timedelta(days=local.weekday())
    if span in ("month", "year"):
        made = made.replace(day=1)
    return made.replace(month=1) if span == "year" else made


def _formatted(local: datetime, pattern: str) -> str:
    if pattern == "rfc2822":
        return format_datetime(local)
    # The language writes instants in UTC: the wall's time is given to it as if it were that.
    return str(date_format(Run(Scope()), written(local.replace(tzinfo=UTC)), pattern))
