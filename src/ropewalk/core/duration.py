"""Lengths of time: written by people, kept as integer microseconds.

`30s`, `5m`, `1h30m`, `250ms`, `2d`, `1w`, ISO 8601 without years and months (`PT30S`, `P1DT2H`), or a number of
seconds.
"""

import re

MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
YEAR = 365 * DAY

UNITS = {"w": WEEK, "d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND, "ms": MILLISECOND}
LONGEST_TEXT = 64

_AMOUNT = r"(\d{1,12}(?:\.\d{1,6})?)"
# Units from large to small, each at most once: `1h30m`, never `30m1h` or `1h1h`.
_SHORT = re.compile("".join(rf"(?:{_AMOUNT}{unit})?" for unit in UNITS), re.ASCII)
_ISO = re.compile(
    rf"P(?:{_AMOUNT}W)?(?:{_AMOUNT}D)?(?:T(?=\d)(?:{_AMOUNT}H)?(?:{_AMOUNT}M)?(?:{_AMOUNT}S)?)?", re.ASCII
)
_WRITE = "write it like 30s, 5m, 1h30m, 2d or PT30S"


def parse_duration(value: object, shortest: int = 0, longest: int = YEAR) -> int:
    """The length in microseconds; ValueError says what to write instead."""
    length = _from_text(value) if isinstance(value, str) else _from_number(value)
    if not shortest <= length <= longest:
        raise ValueError(f"must be from {format_duration(shortest)} to {format_duration(longest)}")
    return length


def _from_text(text: str) -> int:
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"is too long for a duration; {_WRITE}")
    found = _SHORT.fullmatch(text) or _ISO.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError(f"{text!r} is no duration; {_WRITE}")
    # ISO has no milliseconds, so it has one group less than there are units.
    amounts = zip(found.groups(), UNITS.values(), strict=False)
    return sum(_scaled(amount, scale) for amount, scale in amounts if amount)


def _scaled(amount: str, scale: int) -> int:
    """The amount times its unit, exactly: `0.1s` is 100,000 µs, though a float is not exactly 0.1."""
    whole, _, fraction = amount.partition(".")
    return int(whole) * scale + int(fraction or 0) * scale // int(10 ** len(fraction))


def _from_number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a duration; {_WRITE}")
    # NaN compares false, and a float near its limit would overflow when scaled.
    if not -YEAR <= value <= YEAR:
        raise ValueError("is no sensible number of seconds")
    return round(value * SECOND)


def format_duration(length: int) -> str:
    """The length as people write it: 90,000,000 µs is `1m30s`."""
    parts = []
    for unit, scale in UNITS.items():
        if unit == "ms":
            break
        amount, length = divmod(length, scale)
        if amount:
            parts.append(f"{amount}{unit}")
    if length:
        thousandths = f"{length // MILLISECOND}.{length % MILLISECOND:03d}"
        parts.append(thousandths.rstrip("0").rstrip(".") + "ms")
    return "".join(parts) or "0s"
