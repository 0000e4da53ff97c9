"""Values written as JSON under a limit: what does not fit is noticed on the way, before it is all in memory.

A value may name the same large part a thousand times: as a value it is small, and its text is not. So the outer levels
are written part by part, and counted; only what is deeper is written at once.
"""

from typing import Any, Final

import msgspec

PARTED: Final = 3
"""So many levels are written part by part."""

_as_it_is: Final = msgspec.json.Encoder().encode
_sorted: Final = msgspec.json.Encoder(order="sorted").encode


class TooLarge(Exception):
    """The text of the value is longer than it may be."""


def measured(value: Any, limit: int, *, is_sorted: bool = False) -> bytes:
    """The value as compact JSON, by sorted keys if wanted; TooLarge if that has more bytes than the limit."""
    text = bytearray()
    _write(value, text, limit, PARTED, is_sorted)
    return bytes(text)


def _write(value: Any, text: bytearray, limit: int, levels: int, is_sorted: bool) -> None:
    if levels and type(value) is dict and value:
        _write_object(value, text, limit, levels - 1, is_sorted)
    elif levels and type(value) is list and value:
        _write_list(value, text, limit, levels - 1, is_sorted)
    else:
        text += (_sorted if is_sorted else _as_it_is)(value)
    if len(text) > limit:
        raise TooLarge


def _write_object(value: dict[str, Any], text: bytearray, limit: int, levels: int, is_sorted: bool) -> None:
    mark = b"{"
    for key in sorted(value) if is_sorted else value:
        text += mark + _as_it_is(key) + b":"
        _write(value[key], text, limit, levels, is_sorted)
        mark = b","
    text += b"}"


def _write_list(value: list[Any], text: bytearray, limit: int, levels: int, is_sorted: bool) -> None:
    mark = b"["
    for part in value:
        text += mark
        _write(part, text, limit, levels, is_sorted)
        mark = b","
    text += b"]"
