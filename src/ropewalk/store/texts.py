"""The normal form of texts in a store: the same on every one, though drivers treat a NUL or half a pair differently.

A statement is given its arguments in it. The rows of a commit are only brought into it where the store could not take
them as they are: nearly never, and a look at each of their texts would cost every commit something.
"""

from collections.abc import Sequence

from ropewalk.core.canonical import is_text, writable
from ropewalk.store.access import Value


def normal(arguments: Sequence[Value]) -> Sequence[Value]:
    """The arguments of a statement, or a row, in their normal form."""
    for each in arguments:
        if isinstance(each, str) and not is_text(each):
            return [writable(text) if isinstance(text, str) else text for text in arguments]
    return arguments


def normal_rows(rows: Sequence[Sequence[Value]]) -> Sequence[Sequence[Value]]:
    """The same for many rows."""
    return [normal(row) for row in rows]
