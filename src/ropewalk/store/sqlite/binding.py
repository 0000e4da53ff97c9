"""Hands rows to the driver without the nulls they share.

Python's driver asks its adapters about every None, which costs more than binding three texts, and half of the row of
an ended run is null. So a column that is null in every row of a batch becomes a literal of the statement.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final

from ropewalk.store.access import Value

_PARAMETER: Final = re.compile(r"\?(\d+)")
_MOST_VARIANTS: Final = 256


def bound(text: str, rows: Sequence[Sequence[Value]]) -> tuple[str, Iterable[Sequence[Value]]]:
    """The statement and the rows to carry it out with: the same effect, and nothing to bind where all are null."""
    if not rows or None not in rows[0]:
        return text, rows
    first = rows[0]
    empty = [place for place in range(len(first)) if first[place] is None and _is_null(rows, place)]
    kept = [place for place in range(len(first)) if place not in empty]
    # Of a single place `itemgetter` gives the value, and not a row.
    if not empty or len(kept) < 2:
        return text, rows
    return _variant(text, tuple(empty)), map(itemgetter(*kept), rows)


def _is_null(rows: Sequence[Sequence[Value]], place: int) -> bool:
    return set(map(itemgetter(place), rows)) == {None}


@lru_cache(_MOST_VARIANTS)
def _variant(text: str, empty: tuple[int, ...]) -> str:
    """The statement with literals in these places and the parameters after them numbered anew."""

    def renamed(parameter: re.Match[str]) -> str:
        place = int(parameter[1]) - 1
        return "null" if place in empty else f"?{place + 1 - sum(gap < place for gap in empty)}"

    return _PARAMETER.sub(renamed, text)
