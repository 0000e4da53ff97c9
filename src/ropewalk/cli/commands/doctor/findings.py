"""What a doctor says."""

from enum import StrEnum

from msgspec import Struct


class Health(StrEnum):
    """How something is."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


class Finding(Struct, frozen=True):
    """One thing looked at; `remedy` if it is not well and `value` does not say it, as the errors of a store do."""

    what: str
    health: Health
    value: str
    remedy: str | None = None
