"""Many rows by one statement: what a statement costs beside its row is paid once for some dozens of them.

The form for many rows is derived from the text for one. Inserts, and removals and updates by key have one: they come
to the same whether they are carried out together or one after another; updates do so as long as no key comes twice.
"""

import re
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Final

from ropewalk.store.access import Value
from ropewalk.store.sqlite.binding import bound

# Between two statements the writer waits for the interpreter if the loop is busy: large batches by few of them.
SIZES: Final = (256, 64, 8)
_INSERT: Final = re.compile(r"(insert into \w+ \([^)]*\)\s+values )(\([^()]*\))((?:\s+on conflict.*)?)", re.DOTALL)
_DELETE: Final = re.compile(r"delete from (\w+)\s+where (\w+) = \?1")
_UPDATE: Final = re.compile(r"update (\w+)\s+set ((?:\w+ = (?:\?\d+|null)(?:, )?)+)\s+where (\w+) = (\?\d+)")
_PARAMETER: Final = re.compile(r"\?(\d+)")
_MOST_FORMS: Final = 512


def carry_out(connection: sqlite3.Connection, text: str, rows: Sequence[Sequence[Value]]) -> None:
    """Carries a statement for one row out for each of these, in their order."""
    text, kept = bound(text, rows)
    left = kept if isinstance(kept, Sequence) else list(kept)
    for size in SIZES if _may_be_together(text, left) else ():
        if len(left) >= size and (many := _for_many(text, size)) is not None:
            whole = len(left) // size * size
            for start in range(0, whole, size):
                connection.execute(many, tuple(chain.from_iterable(left[start : start + size])))
            left = left[whole:]
    if left:
        connection.executemany(text, left)


def _may_be_together(text: str, rows: Sequence[Sequence[Value]]) -> bool:
    """Whether no row says something else about what another is about; that the key comes last is seen later."""
    return not text.startswith("update") or len(set(map(itemgetter(-1), rows))) == len(rows)


@lru_cache(_MOST_FORMS)
def _for_many(text: str, size: int) -> str | None:
    """The statement for so many rows at once, if there is one."""
    if (insert := _INSERT.fullmatch(text)) and _is_in_order(text, insert[2]):
        return f"{insert[1]}{', '.join([_PARAMETER.sub('?', insert[2])] * size)}{insert[3]}"
    if delete := _DELETE.fullmatch(text):
        return f"delete from {delete[1]} where {delete[2]} in (values {', '.join(['(?)'] * size)})"
    if (update := _UPDATE.fullmatch(text)) and _is_in_order(text, text):
        table, assignments, key, value = (_PARAMETER.sub(r"new.column\1", part) for part in update.groups())
        row = f"({', '.join('?' * len(_PARAMETER.findall(text)))})"
        return f"update {table} set {assignments} from (values {', '.join([row] * size)}) as new where {key} = {value}"
    return None


def _is_in_order(text: str, values: str) -> bool:
    """Whether the parameters are all among the values, each once and in the order of the row."""
    numbers = [int(number) for number in _PARAMETER.findall(values)]
    return numbers == list(range(1, len(_PARAMETER.findall(text)) + 1))
