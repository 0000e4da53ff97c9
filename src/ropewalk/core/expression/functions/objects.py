"""Functions on objects."""

from typing import Final

from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.functions.table import Topic
from ropewalk.core.expression.run import Run
from ropewalk.core.expression.values import JSON, a_kind

OBJECT: Final = Topic("Objects")
_SLOT: Final = 8
_ENTRY: Final = 128


@OBJECT.function("keys(value: object) -> list", "Its keys, in order.", "keys({a: 1, b: 2})", ["a", "b"])
def keys(run: Run, value: dict[str, JSON]) -> list[str]:
    run.allocate(_SLOT * len(value))
    return list(value)


@OBJECT.function("values(value: object) -> list", "Its values, in order.", "values({a: 1, b: 2})", [1, 2])
def values(run: Run, value: dict[str, JSON]) -> list[JSON]:
    run.allocate(_SLOT * len(value))
    return list(value.values())


@OBJECT.function(
    "entries(value: object) -> list",
    "One {key, value} for each of its entries.",
    "entries({a: 1})",
    [{"key": "a", "value": 1}],
)
def entries(run: Run, value: dict[str, JSON]) -> list[JSON]:
    run.walk(len(value))
    run.allocate(_ENTRY * len(value))
    return [{"key": key, "value": item} for key, item in value.items()]


@OBJECT.function(
    "from_entries(items: list) -> object",
    "The object with these {key, value} entries; the last of a key counts.",
    'from_entries([{key: "a", value: 1}])',
    {"a": 1},
)
def from_entries(run: Run, items: list[JSON]) -> dict[str, JSON]:
    run.walk(len(items))
    run.allocate(4 * _SLOT * len(items))
    return dict(_entry(item) for item in items)


def _entry(item: JSON) -> tuple[str, JSON]:
    if not isinstance(item, dict) or type(item.get("key")) is not str:
        raise Refused("from_entries needs objects with a text as key")
    return item["key"], item.get("value")


@OBJECT.function(
    "merge(first: object, second: object) -> object",
    "Both together; where both have a key the second counts.",
    "merge({a: 1, b: 1}, {b: 2})",
    {"a": 1, "b": 2},
)
def merge(run: Run, first: dict[str, JSON], second: dict[str, JSON]) -> dict[str, JSON]:
    run.walk(len(first) + len(second))
    run.allocate(4 * _SLOT * (len(first) + len(second)))
    return {**first, **second}


@OBJECT.function(
    "pick(value: object, keys: list) -> object", "Only these keys.", 'pick({a: 1, b: 2}, ["a", "x"])', {"a": 1}
)
def pick(run: Run, value: dict[str, JSON], keys: list[JSON]) -> dict[str, JSON]:
    run.allocate(4 * _SLOT * len(keys))
    return {key: value[key] for key in _texts(run, keys) if key in value}


@OBJECT.function(
    "omit(value: object, keys: list) -> object", "Without these keys.", 'omit({a: 1, b: 2}, ["a"])', {"b": 2}
)
def omit(run: Run, value: dict[str, JSON], keys: list[JSON]) -> dict[str, JSON]:
    run.walk(len(value))
    run.allocate(4 * _SLOT * len(value))
    dropped = dict.fromkeys(_texts(run, keys))
    return {key: item for key, item in value.items() if key not in dropped}


def _texts(run: Run, keys: list[JSON]) -> list[str]:
    run.walk(len(keys))
    for key in keys:
        if type(key) is not str:
            raise Refused(f"keys are texts, not {a_kind(key)}")
    return keys
