"""The columns a table can have, by what each gives up where the terminal is narrow.

Ids, states and names are never cut, and no command is ever broken into lines: a terminal folds what is too long for it,
and gives it back whole when it is copied.
"""

import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from msgspec import Struct
from rich.text import Text

from ropewalk.cli.views.text import short

_ID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")

Bar = Callable[[int], Text]
"""Something that is drawn as wide as there is room for."""
Shorter = Callable[[Text], Text]


class Kind(Enum):
    """What a column gives up."""

    KEPT = auto()
    IDENT = auto()
    OPTIONAL = auto()
    BAR = auto()
    MESSAGE = auto()
    COMMAND = auto()
    PROSE = auto()


class Column(Struct, frozen=True):
    """One column; `shorter` makes the short form of a cell, which names the same thing in fewer characters."""

    title: str
    kind: Kind
    shorter: Shorter | None = None
    is_right: bool = False

    def shortened(self, cell: Text | Bar) -> Text | Bar:
        return self.shorter(cell) if self.shorter is not None and isinstance(cell, Text) else cell


def kept(title: str = "", shorter: Shorter | None = None, *, is_right: bool = False) -> Column:
    """States and names: always there, always whole."""
    return Column(title, Kind.KEPT, shorter, is_right)


def ident(title: str = "", shorter: Shorter | None = None) -> Column:
    """Ids: whole where there is room, else in the short form that every command understands."""
    return Column(title, Kind.IDENT, shorter or (lambda cell: Text(short(cell.plain), cell.style)))


def when(title: str = "") -> Column:
    """Moments as `clock` writes them: optional, and without year and seconds where room is short."""
    return Column(title, Kind.OPTIONAL, lambda cell: cell[5:16])


def optional(title: str = "", *, is_right: bool = False) -> Column:
    """What is nice to know."""
    return Column(title, Kind.OPTIONAL, is_right=is_right)


def bar(title: str = "") -> Column:
    """Optional too, and drawn as wide as there is room for."""
    return Column(title, Kind.BAR)


def message(title: str = "") -> Column:
    """Text that is still of use when its end is cut off."""
    return Column(title, Kind.MESSAGE)


def command(title: str = "") -> Column:
    """What to type next: always whole, so that it can be copied."""
    return Column(title, Kind.COMMAND, lambda cell: Text(with_short_ids(cell.plain), cell.style))


def prose(title: str = "") -> Column:
    """The last column of a table whose rows may have several lines: whole, and wrapped between words."""
    return Column(title, Kind.PROSE)


def with_short_ids(line: str) -> str:
    """A command of ours, with the ids in their short form."""
    return _ID.sub(lambda found: short(found[0]), line)
