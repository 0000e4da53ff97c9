"""A batch as one statement.

The rows of each of its statements come as one array per parameter, unnested side by side; what is the same in all of
many rows comes once. Such statements are put together as data-modifying CTEs behind a fence, so that a whole commit is
one statement and one round trip.

All parts of one statement see the database as it was before, so two that touch the same row must not be in it. Those
are told apart by table and primary key, and go into a layer of their own: a following statement of the transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ropewalk.store.access import Batch, Value
from ropewalk.store.bulk import Form, bulk, shared
from ropewalk.store.errors import StoreDefect
from ropewalk.store.postgres.arrays import BYTES, NOTHING, sent, sent_once, written, written_once
from ropewalk.store.texts import normal_rows

Columns = Sequence[Sequence[Any]]
Layer = list[tuple[str, Columns]]
Types = Mapping[str, Sequence[str]]
"""What kinds of parameters the statement of each name takes."""
Told = tuple[tuple[Form, ...], list[Any]]
"""A layer as it is sent: in which forms, and the arguments."""

FENCE: Final = (
    "with fence as (update worker set commits = $1 where id = $2 and epoch = $3 and commits = $4{expected} returning 1)"
)
"""The writer is who it was when it last wrote, and what it expects is there: takes the number of this commit, the
worker, its epoch and the number of the commit before."""
FENCE_ARGUMENTS: Final = 4
_NO_FENCE: Final = "with fence as (select 1 where true{expected})"
_PASSED: Final = "exists (select 1 from fence)"


class Message(Sequence[tuple[str, Sequence[Sequence[Value]]]]):
    """A batch by columns, in layers; `told` says each of them, as far as the types of their parameters are known."""

    def __init__(self, batch: Batch, types: Types) -> None:
        self._batch = batch
        self.layers = layered(batch)
        names = {name for layer in self.layers for name, _ in layer}
        self.told = [tell(layer, types) for layer in self.layers] if names <= types.keys() else None

    def __getitem__(self, place: Any) -> Any:
        return self._batch[place]

    def __len__(self) -> int:
        return len(self._batch)


def tell(layer: Layer, types: Types) -> Told:
    """In which forms, and the arguments: of each statement the columns that differ, then what its rows share."""
    forms: list[Form] = []
    arguments: list[Any] = []
    for name, columns in layer:
        kinds = types[name]
        if len(kinds) != len(columns):
            raise StoreDefect(f"{name} takes {len(kinds)} columns, and there are {len(columns)}")
        same = shared(bulk(name), columns)
        arguments += [written(kinds[at], column) for at, column in enumerate(columns) if at not in same]
        arguments += [written_once(kinds[at], columns[at][0]) for at in same]
        forms.append((name, same))
    return tuple(forms), arguments


def nothing(forms: Sequence[Form], types: Types) -> list[Any]:
    """The arguments of no rows at all."""
    arguments: list[Any] = []
    for name, same in forms:
        arguments += [[] if kind == BYTES else NOTHING for at, kind in enumerate(types[name]) if at not in same]
        arguments += [None] * len(same)
    return arguments


def composed(forms: Sequence[Form], types: Types, *, is_fenced: bool) -> str:
    """One statement for all of these, which tells how many rows the fence gave: one, or nothing was written."""
    place = FENCE_ARGUMENTS if is_fenced else 0
    expected = ""
    parts: list[str] = []
    for number, form in enumerate(forms):
        name, kinds = form[0], types[form[0]]
        text = bulk(name).written(_rows(form, kinds, place), _PASSED)
        if bulk(name).is_condition:
            expected += f" and not exists ({text})"
        else:
            parts.append(f"s{number} as ({text})")
        place += len(kinds)
    fence = (FENCE if is_fenced else _NO_FENCE).format(expected=expected)
    return f"{', '.join([fence, *parts])} select count(*) from fence"


def _rows(form: Form, kinds: Sequence[str], place: int) -> str:
    """Where the rows of one statement come from, whose parameters begin after this place."""
    same = form[1]
    kept = [at for at in range(len(kinds)) if at not in same]
    arrays = ", ".join(sent(kinds[at], place + number) for number, at in enumerate(kept, 1))
    rows = f"unnest({arrays}) as x({', '.join(f'p{at + 1}' for at in kept)})"
    if not same:
        return rows
    once = [f"{sent_once(kinds[at], place + number)} as p{at + 1}" for number, at in enumerate(same, len(kept) + 1)]
    return f"(select x.*, {', '.join(once)} from {rows}) as x"


def layered(batch: Batch) -> list[Layer]:
    """The batch by columns, in as many layers as the most often touched row needs: nearly always one."""
    try:
        layer: Layer = [(name, list(zip(*rows, strict=True))) for name, rows in batch if rows]
        if not layer:
            return []
        return [layer] if _touches_each_row_once(layer) else _split(batch)
    except (TypeError, ValueError, IndexError) as error:
        raise StoreDefect(f"the rows of a batch do not fit its statements: {error}") from error


def _touches_each_row_once(layer: Layer) -> bool:
    touched: dict[str, set[Any] | None] = {}
    for name, columns in layer:
        form = bulk(name)
        if not form.key:
            if form.table in touched:
                return False
            touched[form.table] = None
            continue
        keys = columns[form.key[0]] if len(form.key) == 1 else list(zip(*(columns[at] for at in form.key), strict=True))
        before, fresh = touched.setdefault(form.table, set()), set(keys)
        if before is None or len(fresh) < len(keys) or not before.isdisjoint(fresh):
            return False
        before |= fresh
    return True


def _split(batch: Batch) -> list[Layer]:
    """Each row in the layer after the one that touched it last."""
    depths = _Depths()
    layers: dict[int, dict[str, list[Any]]] = {}
    for name, rows in batch:
        form = bulk(name)
        everything = depths.of_everything(form.table) if rows and not form.key else 0
        for row in rows:
            depth = depths.of(form.table, tuple(row[at] for at in form.key)) if form.key else everything
            layers.setdefault(depth, {}).setdefault(name, []).append(row)
    return [[(name, list(zip(*rows, strict=True))) for name, rows in layers[at].items()] for at in sorted(layers)]


class _Depths:
    """In which layer each row was touched last."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, Any], int] = {}
        self._deepest: dict[str, int] = {}
        self._floor: dict[str, int] = {}

    def of(self, table: str, key: Any) -> int:
        depth = max(self._floor.get(table, 0), self._rows.get((table, key), -1) + 1)
        self._rows[table, key] = depth
        self._deepest[table] = max(depth, self._deepest.get(table, 0))
        return depth

    def of_everything(self, table: str) -> int:
        """For what may touch any row: after all before it, and before all after it."""
        depth = self._deepest.get(table, -1) + 1
        self._deepest[table], self._floor[table] = depth, depth + 1
        return depth


def normal_layers(layers: Iterable[Layer]) -> list[Layer]:
    """The same rows with every text in its normal form."""
    return [[(name, normal_rows(columns)) for name, columns in layer] for layer in layers]
