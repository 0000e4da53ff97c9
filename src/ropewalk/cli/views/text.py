"""Words, times and colours."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from rich.text import Text

STYLES: Final = {
    "SUCCESS": "green",
    "FAILED": "bold red",
    "DLQ": "bold red",
    "RUNNING": "cyan",
    "PENDING": "cyan",
    "READY": "cyan",
    "WAITING": "dim",
    "PAUSED": "yellow",
    "TIMEOUT": "bold red",
    "CANCELLED": "magenta",
    "SKIPPED": "dim",
    "BLOCKED": "red",
    "REQUEUED": "green",
    "FIXED": "green",
    "DISCARDED": "dim",
}
SYMBOLS: Final = {
    "SUCCESS": "✓",
    "FAILED": "✗",
    "RUNNING": "●",
    "READY": "○",
    "WAITING": "·",
    "SKIPPED": "↷",
    "CANCELLED": "⊘",
    "BLOCKED": "✗",
}
LONGEST: Final = 400
"""How much of a message a line has at the most; a message may name several ids."""
SECOND: Final = 1_000_000
_MINUTE: Final = 60 * SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


def plain(text: str) -> str:
    """The text without anything a terminal would obey."""
    return "".join(sign if sign.isprintable() or sign == "\n" else f"\\x{ord(sign):02x}" for sign in text)


def text(value: object, style: str = "") -> "Text":
    """User's text, as text."""
    from rich.text import Text  # here, since plain words do without colours

    return Text("" if value is None else plain(str(value)), style=style)


def one_line(value: object, longest: int = 100) -> str:
    """The beginning of a text, on one line."""
    # No more than could be shown is looked at, however long the text is.
    words = plain(" ".join(str(value)[: longest * 8].split()))
    return words if len(words) <= longest else words[: longest - 1] + "…"


def state(name: str) -> "Text":
    from rich.text import Text  # here, as in `text`

    return Text(name, style=STYLES.get(name, ""))


def json_text(value: Any) -> str:
    """A value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def json_line(value: Any, longest: int = 100) -> str:
    """The beginning of a value as JSON, on one line."""
    return one_line(msgspec.json.encode(value).decode(), longest)


def lapse(length: int | None) -> str:
    """A length of time (µs) as people say it: `340ms`, `1.2s`, `3m05s`, `2h10m`, `4d02h`."""
    if length is None:
        return ""
    length = max(0, length)
    if length < SECOND:
        return f"{length // 1000}ms"
    if length < _MINUTE:
        return f"{length / SECOND:.1f}s"
    if length < _HOUR:
        return f"{length // _MINUTE}m{length % _MINUTE // SECOND:02d}s"
    if length < _DAY:
        return f"{length // _HOUR}h{length % _HOUR // _MINUTE:02d}m"
    return f"{length // _DAY}d{length % _DAY // _HOUR:02d}h"


def moment(at: str | None) -> int | None:
    """The µs of an RFC 3339 time."""
    if at is None:
        return None
    return round(datetime.fromisoformat(at).astimezone(UTC).timestamp() * SECOND)


def clock(at: int | str | None) -> str:
    """A moment as people read it, in their own zone, to the second."""
    at = moment(at) if isinstance(at, str) else at
    return "" if at is None else datetime.fromtimestamp(at / SECOND, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def short(identifier: str) -> str:
    """The end of an id, which is what tells UUIDv7s of the same minute apart; every command takes it for the id."""
    return identifier[-8:]
