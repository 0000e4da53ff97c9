"""Many rows by one statement: what a statement costs beside its row is paid once for some dozens of them.

The form for many rows is derived from the text for one. Only inserts and removals by key have one: they come to the
same whether they are carried out together or one after another, and updates do not.
"""

import re
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

from ropewalk.store.access import Value
from ropewalk.store.sqlite.binding import bound

SIZES: Final = (64, 8)
_INSERT: Final = re.compile(r"(insert into \w+ \([^)]*\)\s+values )(\([^()]*\))((?:\s+on conflict.*)?)", re.DOTALL)
_DELETE: Final = re.compile(r"delete from (\w+)\s+where (\w+) = \?1")
_PARAMETER: Final = re.compile(r"\?(\d+)")
_MOST_FORMS: Final = 512


def carry_out(connection: sqlite3.Connection, text: str, rows: Sequence[Sequence[Value]]) -> None:
    """Carries a statement for one row out for each of these, in their order."""
    text, kept = bound(text, rows)
    left = kept if isinstance(kept, Sequence) else list(kept)
    for size in SIZES:
        if len(left) >= size and (many := _for_many(text, size)) is not None:
            whole = len(left) // size * size
            for start in range(0, whole, size):
                connection.execute(many, tuple(chain.from_iterable(left[start : start + size])))
            left = left[whole:]
    if left:
        connection.executemany(text, left)


@lru_cache(_MOST_FORMS)
def _for_many(text: str, size: int) -> str | None:
    """The statement for so many rows at once, if there is one."""
    if (insert := _INSERT.fullmatch(text)) and _is_in_order(text, insert[2]):
        return f"{insert[1]}{', '.join([_PARAMETER.sub('?', insert[2])] * size)}{insert[3]}"
    if delete := _DELETE.fullmatch(text):
        return f"delete from {delete[1]} where {delete[2]} in (values {', '.join(['(?)'] * size)})"
    return None


def _is_in_order(text: str, values: str) -> bool:
    """Whether the parameters are all among the values, each once and in the order of the row."""
    numbers = [int(number) for number in _PARAMETER.findall(values)]
    return numbers == list(range(1, len(_PARAMETER.findall(text)) + 1))
