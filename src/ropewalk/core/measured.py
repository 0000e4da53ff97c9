"""Values written as JSON under a limit: what does not fit is noticed on the way, before it is all in memory.

A value may name the same large part a thousand times: as a value it is small, and its text is not. So it is written
piece by piece, and counted. A piece takes a millisecond or so: a thread that writes a large value hands over the
interpreter between two of them, which it cannot do in the middle of one.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from ropewalk.core.brief import fits

PIECE: Final = 256 * 1024
"""What counts more (see `brief.py`) is not written at once: texts of so many characters, or some 50,000 numbers."""
TOGETHER: Final = 1024
"""So many parts are looked at together: nearly always they are one piece."""

Part = TypeVar("Part")
_encoders: Final = (msgspec.json.Encoder().encode, msgspec.json.Encoder(order="sorted").encode)


class TooLarge(Exception):
    """The text of the value is longer than it may be."""


def measured(value: Any, limit: int, *, is_sorted: bool = False) -> bytes:
    """The value as compact JSON, by sorted keys if wanted; TooLarge if that has more bytes than the limit."""
    writing = _Writing(limit, is_sorted)
    writing.write(value)
    return bytes(writing.text)


class _Writing:
    """The text so far."""

    def __init__(self, limit: int, is_sorted: bool) -> None:
        self.text = bytearray()
        self._limit = limit
        self._is_sorted = is_sorted
        self._encode: Callable[[Any], bytes] = _encoders[is_sorted]

    def write(self, value: Any) -> None:
        if fits(value, PIECE):
            self._add(self._encode(value))
        elif type(value) is dict:
            self._object(value)
        elif type(value) is list:
            self._list(value)
        elif type(value) is str:
            self._text(value)
        else:
            self._add(self._encode(value))

    def _object(self, value: dict[str, Any]) -> None:
        mark = b"{"
        for names in _together(sorted(value) if self._is_sorted else value):
            parts = {name: value[name] for name in names}
            if len(parts) > 1 and fits(parts, PIECE):
                self._add(mark, self._encode(parts)[1:-1])
                mark = b","
                continue
            for name, part in parts.items():
                self._add(mark, self._encode(name), b":")
                self.write(part)
                mark = b","
        self._add(b"}")

    def _list(self, value: list[Any]) -> None:
        mark = b"["
        for parts in _together(value):
            if len(parts) > 1 and fits(parts, PIECE):
                self._add(mark, self._encode(parts)[1:-1])
                mark = b","
                continue
            for part in parts:
                self._add(mark)
                self.write(part)
                mark = b","
        self._add(b"]")

    def _text(self, value: str) -> None:
        self._add(b'"')
        for start in range(0, len(value), PIECE):
            self._add(self._encode(value[start : start + PIECE])[1:-1])
        self._add(b'"')

    def _add(self, *parts: bytes) -> None:
        for part in parts:
            self.text += part
        if len(self.text) > self._limit:
            raise TooLarge


def _together(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """The parts in order, so many at a time."""
    left = iter(parts)
    while some := list(islice(left, TOGETHER)):
        yield some
