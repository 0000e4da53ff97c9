"""Sentences that fit: prose is wrapped between words, what can be copied stays in one piece."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

from ropewalk.cli.views.columns import with_short_ids
from ropewalk.cli.views.text import plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

UNBOUNDED: Final = 1_000_000
"""The width of what is no terminal: there, lines may be of any length."""
_WORD: Final = re.compile(r"\S+\s*")


class Advice:
    """A sentence, and the command that helps: on one line if it fits, else one below the other.

    In a terminal the command names ids by their short form.
    """

    def __init__(self, words: str, command: str = "", *, bullet: str = "") -> None:
        self._words, self._command, self._bullet = plain(words), plain(command), bullet

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator[Text]:
        for line in self._lines(UNBOUNDED if options.no_wrap else options.max_width):
            yield unbroken(line)

    def _lines(self, width: int) -> list[str]:
        command = self._command if width == UNBOUNDED else with_short_ids(self._command)
        words = f"{self._words}{':' if command else ''}"
        line = f"{self._bullet}{words} {command}".rstrip()
        if cell_len(line) <= width:
            return [line]
        indent = " " * len(self._bullet)
        first, *more = (line.plain for line in wrapped(Text(words), width - len(indent)))
        below = [f"{indent}  {command}"] if command else []
        return [f"{self._bullet}{first}", *(f"{indent}{each}" for each in more), *below]


def wrapped(text: Text, width: int) -> list[Text]:
    """Prose on lines of so many columns, between its words; a longer word stays in one piece."""
    return [part for line in text.split("\n", allow_blank=True) for part in _wrapped(line, width)]


def _wrapped(line: Text, width: int) -> list[Text]:
    breaks, used = [], 0
    for word in _WORD.finditer(line.plain):
        if used and used + cell_len(word[0].rstrip()) > width:
            breaks.append(word.start())
            used = 0
        used += cell_len(word[0])
    parts = list(line.divide(breaks))
    for part in parts:
        part.rstrip()
    return parts


def unbroken(text: str, style: str = "") -> Text:
    """Text that is left as it is, however long its lines are."""
    return Text(text, style, no_wrap=True, overflow="ignore")
