"""Functions on lists. A rule (`x => …`) pays for itself each time it is applied."""

from typing import Any, Final

from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.functions.numbers import require_comparable
from ropewalk.core.expression.functions.table import Each, EachPair, Topic
from ropewalk.core.expression.run import Run
from ropewalk.core.expression.values import JSON, MAX_NESTING, a_kind, is_true

LIST: Final = Topic("Lists")
_SLOT: Final = 8


@LIST.function(
    "map(items: list, rule: x => any) -> list", "The rule's value for each item.", "map([1, 2], x => x * 2)", [2, 4]
)
def mapped(run: Run, items: list[JSON], rule: Each) -> list[JSON]:
    run.allocate(_SLOT * len(items))
    return [rule(item) for item in items]


@LIST.function(
    "filter(items: list, rule: x => any) -> list",
    "The items for which the rule holds.",
    "filter([1, 2, 3], x => x > 1)",
    [2, 3],
)
def filtered(run: Run, items: list[JSON], rule: Each) -> list[JSON]:
    run.allocate(_SLOT * len(items))
    return [item for item in items if is_true(rule(item))]


@LIST.function(
    "any(items: list, rule: x => any) -> boolean", "Whether the rule holds for one.", "any([1, 2], x => x > 1)", True
)
def holds_for_any(run: Run, items: list[JSON], rule: Each) -> bool:
    return any(is_true(rule(item)) for item in items)


@LIST.function(
    "all(items: list, rule: x => any) -> boolean", "Whether the rule holds for each.", "all([1, 2], x => x > 1)", False
)
def holds_for_all(run: Run, items: list[JSON], rule: Each) -> bool:
    return all(is_true(rule(item)) for item in items)


@LIST.function(
    "find(items: list, rule: x => any) -> any",
    "The first item for which the rule holds; null if none.",
    "find([1, 2, 3], x => x > 1)",
    2,
)
def found(run: Run, items: list[JSON], rule: Each) -> JSON:
    return next((item for item in items if is_true(rule(item))), None)


@LIST.function(
    "reduce(items: list, rule: (sum, x) => any, start: any) -> any",
    "One value made of all items: `start`, then the rule's value for what there is so far and each item.",
    "reduce([1, 2, 3], (sum, x) => sum * 10 + x, 0)",
    123,
)
def reduced(run: Run, items: list[JSON], rule: EachPair, start: JSON) -> JSON:
    result = start
    for item in items:
        result = rule(result, item)
    return result


@LIST.function(
    "sort(items: list, rule?: x => any) -> list",
    "In rising order of the items, or of the rule's values; null comes last, equals keep their order.",
    "sort([{n: 2}, {n: 1}], x => x.n)",
    [{"n": 1}, {"n": 2}],
)
def ordered(run: Run, items: list[JSON], rule: Each | None = None) -> list[JSON]:
    run.allocate(_SLOT * len(items))
    keys = items if rule is None else [rule(item) for item in items]
    _require_sortable(run, keys)
    present = [place for place, key in enumerate(keys) if key is not None]
    absent = [place for place, key in enumerate(keys) if key is None]
    return [items[place] for place in [*sorted(present, key=keys.__getitem__), *absent]]


def _require_sortable(run: Run, keys: list[JSON]) -> None:
    present = [key for key in keys if key is not None]
    require_comparable(run, present)
    # Each key is compared about log2 of their number times, over its whole length if they begin alike.
    if present and type(present[0]) is str:
        run.scan(sum(map(len, present)) * len(present).bit_length())


@LIST.function(
    "group_by(items: list, rule: x => text) -> object",
    "The items in lists by the rule's value.",
    'group_by(["ab", "c", "ad"], x => slice(x, 0, 1))',
    {"a": ["ab", "ad"], "c": ["c"]},
)
def grouped(run: Run, items: list[JSON], rule: Each) -> dict[str, list[JSON]]:
    run.allocate(_SLOT * len(items))
    groups: dict[str, list[JSON]] = {}
    for item in items:
        key = rule(item)
        if type(key) is not str:
            raise Refused(f"group_by needs a text for each item, not {a_kind(key)}")
        groups.setdefault(key, []).append(item)
    return groups


@LIST.function("first(items: list) -> any", "The first item; null if empty.", "first([7, 8])", 7)
def first(run: Run, items: list[JSON]) -> JSON:
    return items[0] if items else None


@LIST.function("last(items: list) -> any", "The last item; null if empty.", "last([7, 8])", 8)
def last(run: Run, items: list[JSON]) -> JSON:
    return items[-1] if items else None


@LIST.function("reverse(items: list) -> list", "The last item first.", "reverse([1, 2])", [2, 1])
def backwards(run: Run, items: list[JSON]) -> list[JSON]:
    run.allocate(_SLOT * len(items))
    return items[::-1]


@LIST.function("flatten(items: list) -> list", "Lists in it opened, one level.", "flatten([1, [2, [3]]])", [1, 2, [3]])
def flat(run: Run, items: list[JSON]) -> list[JSON]:
    run.walk(len(items))
    size = sum(len(item) if isinstance(item, list) else 1 for item in items)
    run.walk(size)
    run.allocate(_SLOT * size)
    return [inner for item in items for inner in (item if isinstance(item, list) else (item,))]


@LIST.function(
    "unique(items: list) -> list", "Without repetitions; the first of equals stays.", "unique([1, 2, 1.0])", [1, 2]
)
def unique(run: Run, items: list[JSON]) -> list[JSON]:
    run.allocate(_SLOT * len(items))
    kept: dict[Any, JSON] = {}
    for item in items:
        kept.setdefault(_identity(run, item, MAX_NESTING), item)
    return list(kept.values())


def _identity(run: Run, value: JSON, depth: int) -> Any:
    """Something hashable that is the same for equal values and only for those."""
    run.charge(1)
    if depth == 0:
        raise Refused(f"unique needs values nested at most {MAX_NESTING} levels")
    if isinstance(value, list):
        return ("list", tuple(_identity(run, item, depth - 1) for item in value))
    if isinstance(value, dict):
        return ("object", frozenset((key, _identity(run, item, depth - 1)) for key, item in value.items()))
    if isinstance(value, str):
        run.scan(len(value))
    return (type(value), value) if isinstance(value, bool) else value


@LIST.function(
    "range(start: integer, end: integer) -> list",
    "The integers from `start` to before `end`.",
    "range(1, 4)",
    [1, 2, 3],
)
def integers(run: Run, start: int, end: int) -> list[int]:
    run.walk(max(0, end - start))
    return list(range(start, end))


@LIST.function(
    "chunk(items: list, size: integer) -> list", "In lists of at most so many.", "chunk([1, 2, 3], 2)", [[1, 2], [3]]
)
def chunked(run: Run, items: list[JSON], size: int) -> list[list[JSON]]:
    if size < 1:
        raise Refused("chunk needs a size of at least 1")
    run.walk(len(items))
    run.allocate(2 * _SLOT * len(items))
    return [items[start : start + size] for start in range(0, len(items), size)]
