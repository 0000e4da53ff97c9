"""A batch as one statement.

The rows of each of its statements come as one JSON text. Such statements are put together in the trigger of a view that
holds nothing, behind a fence; to insert into that view is to carry them out. So a whole commit is one statement, and
SQLite is at it without the interpreter, which the loop has meanwhile. Between two statements it would have to wait for
it, and the loop is slow to let go.

What JSON cannot say is carried out row by row, its texts in their normal form.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any, Final

import msgspec

from ropewalk.store.access import Batch, Value
from ropewalk.store.bulk import FEW, Form, bulk, shared
from ropewalk.store.errors import StoreDefect
from ropewalk.store.rows import ROWS
from ropewalk.store.texts import normal, normal_rows

Rows = Sequence[Sequence[Any]]

_FENCE: Final = """
select raise(abort, 'taken over') where not exists (select 1 from worker where id = new.worker and epoch = new.epoch);
update worker set heartbeat_at = new.mark where id = new.worker and new.mark is not null"""
_MOST_FORMS: Final = 200
_NUL: Final = "\\u0000"
"""In JSON. SQLite keeps what comes before it, and forgets the rest."""
LARGEST: Final = 256 * 2**20
"""So many bytes of a commit are one value; SQLite takes a little less than a billion."""
_encode: Final = msgspec.json.Encoder().encode


class Message(Sequence[tuple[str, Sequence[Sequence[Value]]]]):
    """A batch, and how to say it in one statement; there are no `forms` if it cannot be."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.rows = sum([len(rows) for _, rows in batch])
        # Never empty: of nothing not even nothing can be cut out.
        self._parts = [b"-"]
        self._end = 2
        self.forms: tuple[Form, ...] = ()
        self.arguments: tuple[Any, ...] = ()
        # Anything else that is wrong with the rows, the driver says when it is given them one by one.
        with suppress(ValueError, TypeError, ArithmeticError, LookupError, StoreDefect):
            told = [self._tell(name, rows) for name, rows in batch if rows]
            self.forms = tuple([form for form, _ in told])
            self.arguments = (b"".join(self._parts), *chain.from_iterable([said for _, said in told]))

    @property
    def size(self) -> int:
        """How many bytes of log entries there are in it."""
        return len(self.arguments[0]) if self.arguments else 0

    def __getitem__(self, place: Any) -> Any:
        return self._batch[place]

    def __len__(self) -> int:
        return len(self._batch)

    def _tell(self, name: str, rows: Rows) -> tuple[Form, tuple[Any, ...]]:
        """In which form, the rows as one text, and what they share."""
        form = bulk(name)
        if form.is_update and len(set(map(itemgetter(*form.key), rows))) < len(rows):
            raise ValueError("one row says something else about what another is about")
        same, values = shared(form, list(zip(*rows, strict=True))), rows[0]
        if form.bytes_at is not None:
            rows = self._without_bytes(rows, form.bytes_at)
        elif same:
            rows = list(map(itemgetter(*[at for at in range(form.width) if at not in same]), rows))
        text = _encode(rows).decode()
        if _NUL in text or max(len(text), self._end) > LARGEST:
            raise ValueError("a text has a NUL in it, or is too long for one value")
        once = [values[at] for at in same]
        if once and normal(once) is not once:
            raise ValueError("a text has a NUL or half a pair in it")
        return (name, same), (text, *once)

    def _without_bytes(self, rows: Rows, at: int) -> Rows:
        """JSON has no word for bytes: they are sent side by side, and a row says where its own begin and, last, end."""
        columns: list[Any] = list(zip(*rows, strict=True))
        parts, lengths = columns[at], list(map(len, columns[at]))
        *columns[at], self._end = accumulate(lengths, initial=self._end)
        self._parts += parts
        return list(zip(*columns, lengths, strict=True))


class Commits:
    """Writes messages on one connection, each as a transaction of its own."""

    def __init__(self, connection: sqlite3.Connection, worker: str, epoch: int) -> None:
        self._connection = connection
        self._who = (worker, epoch)
        self._texts: dict[tuple[Form, ...], str] = {}

    def write(self, message: Message, mark: int | None) -> None:
        """Writes the message, and the store's time if there is a mark; refused if another process has taken over."""
        text = self._texts.get(message.forms) or self._make(message.forms)
        # For one row: `execute` asks for the interpreter once more, to learn the number of a row that has none.
        self._connection.executemany(text, ((*self._who, mark, *message.arguments),))

    def _make(self, forms: tuple[Form, ...]) -> str:
        """The view and the trigger for messages of these forms; they are this connection's alone."""
        if len(self._texts) >= _MOST_FORMS:
            self._forget()
        view = f"commit_{len(self._texts)}"
        columns = ["worker", "epoch", "mark", "bytes"]
        steps = [_FENCE]
        for form in forms:
            own = [f"c{len(columns) + at}" for at in range(1 + len(form[1]))]
            steps.append(for_many(form, "new.bytes", *[f"new.{name}" for name in own]))
            columns += own
        execute = self._connection.execute
        # There is one if its trigger could not be made.
        execute(f"drop view if exists temp.{view}")
        execute(f"create temp view {view} ({', '.join(columns)}) as select {', '.join(['null'] * len(columns))}")
        execute(f"create temp trigger of_{view} instead of insert on {view} begin {'; '.join(steps)}; end")
        text = self._texts[forms] = f"insert into {view} values ({', '.join('?' * len(columns))})"
        return text

    def _forget(self) -> None:
        for place in range(len(self._texts)):
            self._connection.execute(f"drop view if exists temp.commit_{place}")
        self._texts.clear()


def carry_out(connection: sqlite3.Connection, name: str, text: str, rows: Sequence[Sequence[Value]]) -> None:
    """Carries a statement for one row out for each of these, in their order, inside a transaction."""
    message = Message([(name, rows)]) if name in ROWS and len(rows) >= FEW else None
    if message is not None and message.forms:
        places = [f"?{place}" for place in range(1, len(message.arguments) + 1)]
        connection.execute(for_many(message.forms[0], *places), message.arguments)
    else:
        connection.executemany(text, normal_rows(rows))


@lru_cache(_MOST_FORMS)
def for_many(form: Form, parts: str, rows: str, *values: str) -> str:
    """The statement with its rows taken from one JSON text; the others say where bytes are, and what the rows share."""
    name, places = form
    shape = bulk(name)
    kept = [at for at in range(shape.width) if at not in places]
    columns = {at: f"json_extract(value, '$[{place}]')" for place, at in enumerate(kept)}
    columns |= dict(zip(places, values, strict=True))
    if shape.bytes_at is not None:
        columns[shape.bytes_at] = f"substr({parts}, {columns[shape.bytes_at]}, json_extract(value, '$[{len(kept)}]'))"
    named = ", ".join(f"{columns[at]} as p{at + 1}" for at in range(shape.width))
    return shape.written(f"(select {named} from json_each({rows})) as x", "true")
