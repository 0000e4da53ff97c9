"""Following a path through objects and lists. The common case, objects all the way, is kept short for speed."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ropewalk.core.expression.faults import ExpressionError, Refused
from ropewalk.core.expression.run import Run, Scope
from ropewalk.core.expression.values import JSON, look_up

Source = Callable[[Any], Any]


def follow(first: Source, keys: tuple[JSON, ...], where: tuple[int, ...]) -> Source:
    """Code that looks up fixed keys, one in the other, from what `first` gives."""
    if not all(type(key) is str for key in keys):
        return lambda source: _walk_slowly(first(source), keys, where)

    def walk(source: Any) -> JSON:
        value = start = first(source)
        for key in keys:
            if type(value) is dict:
                value = value.get(key)
            elif value is None:
                return None
            else:
                return _walk_slowly(start, keys, where)
        return value

    return walk


def _walk_slowly(value: JSON, keys: tuple[JSON, ...], where: tuple[int, ...]) -> JSON:
    for key, position in zip(keys, where, strict=True):
        value = _look_up_at(value, key, position)
    return value


def follow_computed(first: Source, keys: tuple[Callable[[Run], Any], ...], where: tuple[int, ...]) -> Source:
    """Code that looks up keys which are themselves computed."""
    steps = tuple(zip(keys, where, strict=True))

    def walk(run: Run) -> JSON:
        value = first(run)
        for key, position in steps:
            value = _look_up_at(value, key(run), position)
        return value

    return walk


def _look_up_at(value: JSON, key: JSON, position: int) -> JSON:
    try:
        return look_up(value, key)
    except Refused as refused:
        raise ExpressionError(refused.message, position) from None


def captured(scope: Scope, references: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """The part of a scope that these paths lead to; expressions that refer to nothing else give the same in it."""
    return {root: _part(getattr(scope, root), rests) for root, rests in _by_first(references).items()}


def _part(value: Any, paths: list[tuple[str, ...]]) -> Any:
    """What is left of a value if only these paths are followed; at their ends everything is kept."""
    if () in paths or not isinstance(value, Mapping):
        return value
    return {key: _part(value[key], rests) for key, rests in _by_first(paths).items() if key in value}


def _by_first(paths: Iterable[tuple[str, ...]]) -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in paths:
        found.setdefault(first, []).append(tuple(rest))
    return found


def node_field(nodes: Callable[[Any], Mapping[str, Any]], node: str, field: str) -> Source:
    """Code that reads one field of one node's record; null while there is no record."""

    def read(source: Any) -> JSON:
        record = nodes(source).get(node)
        return None if record is None else record.get(field)

    return read
