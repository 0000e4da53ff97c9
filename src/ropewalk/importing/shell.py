"""The words of a command as a shell takes them: quotes, backslashes, `$'…'` and lines that go on."""

from collections.abc import Callable, Iterator
from typing import Final

_SPACE: Final = " \t\r\n"
_ENDS: Final = ";|&<>()"
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "0": "\0"}
_HEX: Final = {"x": 2, "u": 4, "U": 8}


def words_of(command: str) -> list[str]:
    """The words of one simple command; ValueError if it is not closed, or more than one."""
    return list(_Reader(command).words())


class _Reader:
    """A command, and how far it is read."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\\\r\n", " ").replace("\\\n", " ")
        self._at = 0

    def words(self) -> Iterator[str]:
        while self._skip_space():
            if self._text[self._at] in _ENDS:
                raise ValueError(f"has {self._text[self._at]!r} outside quotes: give one command alone")
            yield self._word()

    def _skip_space(self) -> bool:
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1
        return self._at < len(self._text)

    def _word(self) -> str:
        parts: list[str] = []
        while self._at < len(self._text) and self._text[self._at] not in _SPACE + _ENDS:
            parts.append(self._part())
        return "".join(parts)

    def _part(self) -> str:
        begun = self._text[self._at]
        self._at += 1
        match begun:
            case "'":
                return self._until("'", lambda: "\\")
            case '"':
                return self._until('"', self._in_double_quotes)
            case "$" if self._text.startswith("'", self._at):
                self._at += 1
                return self._until("'", self._escaped)
            case "\\":
                return self._next()
        return begun

    def _until(self, quote: str, backslash: Callable[[], str]) -> str:
        parts: list[str] = []
        while (each := self._next(quote)) != quote:
            parts.append(backslash() if each == "\\" else each)
        return "".join(parts)

    def _next(self, wanted: str = "") -> str:
        if self._at >= len(self._text):
            raise ValueError(f"ends before its {wanted or 'escaped character'}")
        self._at += 1
        return self._text[self._at - 1]

    def _in_double_quotes(self) -> str:
        following = self._next()
        return following if following in '$`"\\' else f"\\{following}"

    def _escaped(self) -> str:
        following = self._next()
        if following in _HEX:
            return self._by_number(_HEX[following])
        return _ESCAPES.get(following, following)

    def _by_number(self, most: int) -> str:
        end = self._at
        while end < len(self._text) and end - self._at < most and self._text[end] in "0123456789abcdefABCDEF":
            end += 1
        digits, self._at = self._text[self._at : end], end
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise ValueError("has a character by a number that is none") from None
