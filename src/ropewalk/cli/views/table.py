"""One layout for every table: a column says what it gives up where the terminal is narrow, the table what goes first.

    found = Table(ident("ID"), kept("STATE"), when("ACCEPTED"), optional("TOOK"), message("ERROR"))
    found.add(each["id"], state(each["state"]), clock(each["acceptedAt"]), "1.2s", each["error"])

In a terminal, commands name ids by their short form. One step after the other, until the table fits:

1. Prose is wrapped; messages are cut, to what can still be read with ease.
2. Commands have a line of their own below the row.
3. Bars are drawn smaller; ids and moments take their short form.
4. Messages are cut to what can be read at all.
5. Optional columns go, the rightmost first.
6. Names take their short form, if they have one; messages have a line of their own below the row.
7. A row has several lines.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, chop_cells
from rich.text import Text

from ropewalk.cli.views.columns import Bar, Column, Kind
from ropewalk.cli.views.prose import UNBOUNDED, unbroken, wrapped
from ropewalk.cli.views.text import plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

EASY: Final = 40
"""How much of a message can be read with ease (in columns of the terminal)."""
LEAST: Final = 20
"""How much of it at least says something."""
SMALLEST_BAR: Final = 10
LARGEST_BAR: Final = 40
INDENT: Final = "    "
"""Before what belongs to the row above."""
Cell = str | Text | Bar | None


class Table:
    """Rows of cells, drawn as wide as the terminal is."""

    def __init__(self, *columns: Column, gap: int = 2) -> None:
        self.columns = columns
        self.rows: list[list[Text | Bar]] = []
        self.gap = gap

    def add(self, *cells: Cell) -> None:
        """One more row, with a cell for each column; a text is shown as text and nothing else."""
        assert len(cells) == len(self.columns), "a cell for each column"
        self.rows.append([_cell(each) for each in cells])

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator[Text]:
        if self.rows:
            width = UNBOUNDED if options.no_wrap else max(1, options.max_width)
            yield from _Layout(self, width).lines()


def _cell(value: Cell) -> Text | Bar:
    if isinstance(value, str):
        return Text(plain(value).replace("\n", " "))
    return Text() if value is None else value


class _Layout:
    """Which columns of a table stand beside each other, how wide they are, and which have lines of their own below."""

    def __init__(self, table: Table, width: int) -> None:
        self._columns, self._gap, self._width = table.columns, table.gap, width
        self._whole = [list(cells) for cells in zip(*table.rows, strict=True)]
        self._cells = list(self._whole)
        self._widths = [self._needed(place) for place in range(len(self._columns))]
        self._beside = [place for place in range(len(self._columns)) if self._has_content(place)]
        self._below: list[int] = []
        self._left_out: list[int] = []
        if width < UNBOUNDED:
            self._shorten(Kind.COMMAND)
        self._fit()

    # What is needed, and how much of it is too much

    def _needed(self, place: int) -> int:
        column = self._columns[place]
        if column.kind is Kind.BAR:
            return max(SMALLEST_BAR, min(LARGEST_BAR, self._width // 4))
        return max(cell_len(column.title), *map(_length, self._cells[place]))

    def _has_content(self, place: int) -> bool:
        """Whether anything is in the column; a titled one of names or states keeps its place in any case."""
        column = self._columns[place]
        return (column.kind is Kind.KEPT and column.title != "") or any(map(_length, self._cells[place]))

    @property
    def _excess(self) -> int:
        widths = [self._widths[place] for place in self._beside]
        return sum(widths) + self._gap * (len(widths) - 1) - self._width

    def _of(self, *kinds: Kind) -> list[int]:
        return [place for place in self._beside if self._columns[place].kind in kinds]

    # What is given up

    def _fit(self) -> None:
        steps: tuple[Callable[[], None], ...] = (
            lambda: self._cut(Kind.PROSE, EASY),
            lambda: self._cut(Kind.MESSAGE, EASY),
            lambda: self._move_below(Kind.COMMAND),
            lambda: self._cut(Kind.BAR, SMALLEST_BAR),
            lambda: self._shorten(Kind.IDENT, Kind.OPTIONAL),
            lambda: self._cut(Kind.MESSAGE, LEAST),
            lambda: self._cut(Kind.PROSE, LEAST),
            self._leave_out,
            lambda: self._shorten(Kind.KEPT),
            lambda: self._move_below(Kind.MESSAGE),
        )
        for step in steps:
            if self._excess <= 0:
                break
            step()
        self._use_the_rest()

    def _cut(self, kind: Kind, least: int) -> None:
        for place in self._of(kind):
            wide = self._widths[place]
            self._widths[place] = max(min(wide, least), wide - max(0, self._excess))

    def _shorten(self, *kinds: Kind) -> None:
        for place in self._of(*kinds):
            self._cells[place] = [self._columns[place].shortened(cell) for cell in self._whole[place]]
            self._widths[place] = self._needed(place)

    def _move_below(self, kind: Kind) -> None:
        moved = self._of(kind)
        self._below = sorted([*self._below, *moved])
        self._beside = [place for place in self._beside if place not in moved]

    def _leave_out(self) -> None:
        for place in reversed(self._of(Kind.OPTIONAL, Kind.BAR)):
            if self._excess > 0:
                self._beside.remove(place)
                self._left_out.insert(0, place)

    def _use_the_rest(self) -> None:
        """What is free again is given back: to the text, or to left out columns where messages have gone below."""
        for place in self._left_out if self._below and not self._of(Kind.MESSAGE) else ():
            if self._widths[place] + self._gap <= -self._excess:
                self._beside = sorted([*self._beside, place])
        for place in self._of(Kind.MESSAGE, Kind.PROSE):
            self._widths[place] = min(self._needed(place), self._widths[place] + max(0, -self._excess))

    # How it is drawn

    def lines(self) -> list[Text]:
        """All rows, below their titles if they have any."""
        titles: list[Text | Bar] = [Text(each.title, "dim") for each in self._columns]
        drawn = self._row(titles) if any(each.title for each in self._columns) else []
        for number in range(len(self._whole[0])):
            drawn += self._row([cells[number] for cells in self._cells])
            drawn += [line for place in self._below for line in self._alone(place, self._cells[place][number])]
        return drawn

    def _row(self, cells: list[Text | Bar]) -> list[Text]:
        """The cells that stand beside each other, on as few lines as possible."""
        lines, room = [unbroken("")], self._width
        for place in self._beside:
            if lines[-1] and self._widths[place] > room:
                lines.append(unbroken(INDENT))
                room = self._width - len(INDENT)
            first, *more = self._parts(place, cells[place])
            lines[-1].append_text(first).append(" " * self._gap)
            lines += [unbroken(" " * (self._width - room)).append_text(part) for part in more]
            room -= self._widths[place] + self._gap
        for line in lines:
            line.rstrip()
        # A word that is too long for its line is left to the terminal, so that it can be copied in one piece.
        return lines if self._of(Kind.PROSE) else [part for line in lines for part in _folded(line, self._width)]

    def _parts(self, place: int, cell: Text | Bar) -> list[Text]:
        """A cell as wide as its column; only prose has more than one line."""
        if self._columns[place].kind is not Kind.PROSE or not isinstance(cell, Text):
            return [self._padded(place, cell)]
        return wrapped(cell, self._widths[place])

    def _padded(self, place: int, cell: Text | Bar) -> Text:
        width, column = self._widths[place], self._columns[place]
        if not isinstance(cell, Text):
            return cell(width)
        drawn = cell.copy()
        if column.kind is Kind.MESSAGE:
            drawn.truncate(width, overflow="ellipsis")
        pad = drawn.pad_left if column.is_right else drawn.pad_right
        pad(width - drawn.cell_len)
        return drawn

    def _alone(self, place: int, cell: Text | Bar) -> list[Text]:
        """A cell on a line of its own, if there is anything in it."""
        if not isinstance(cell, Text) or not cell:
            return []
        drawn = cell.copy()
        if self._columns[place].kind is Kind.MESSAGE:
            drawn.truncate(max(1, self._width - len(INDENT)), overflow="ellipsis")
        return [unbroken(INDENT).append_text(drawn)]


def _length(cell: Text | Bar) -> int:
    return cell.cell_len if isinstance(cell, Text) else SMALLEST_BAR


def _folded(line: Text, width: int) -> list[Text]:
    """The line, on more than one if a name is longer than the terminal is wide."""
    ends, end = [], 0
    for part in chop_cells(line.plain, width)[:-1]:
        end += len(part)
        ends.append(end)
    return list(line.divide(ends))
