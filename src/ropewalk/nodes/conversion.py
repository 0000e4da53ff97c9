"""Python values that have an obvious form in JSON: one step towards it. What has none is refused with its place."""

import dataclasses
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from functools import singledispatch
from typing import Any
from uuid import UUID

import msgspec

from ropewalk.core.canonical import DEEPEST, step


class NotJson(Exception):
    """Something is not JSON; the path is gathered on the way out."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.path: list[str | int] = []

    def told(self, root: Any) -> str:
        steps = self.path[::-1]
        message = str(self)
        if len(steps) >= DEEPEST:
            steps, message = _loop(root, steps) or (steps, message)
        shown = "".join(f"[{place}]" if isinstance(place, int) else f".{step(place)}" for place in steps[:8])
        return f"output{shown}{'…' if len(steps) > 8 else ''}: {message}"


def _loop(root: Any, steps: list[str | int]) -> tuple[list[str | int], str] | None:
    """Where a value contains itself, if that is why it is too deep."""
    seen = [id(root)]
    part = root
    for count, place in enumerate(steps, start=1):
        if not isinstance(part, dict | list | tuple):
            return None
        part = part[place]  # type: ignore[index]  # the path was made from these very keys
        if id(part) in seen:
            return steps[:count], "refers back to itself"
        seen.append(id(part))
    return None


@singledispatch
def converted(value: Any) -> Any:
    """One step towards plain JSON for what has an obvious form there."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    # Code that has made a model has imported the library, and a worker that never meets any does without.
    library = sys.modules.get("pydantic")
    if library is not None and isinstance(value, library.BaseModel):
        return value.model_dump(by_alias=True)
    raise NotJson(f"{type(value).__name__} is not JSON")


@converted.register(tuple)
@converted.register(list)
def _sequence(value: Iterable[Any]) -> list[Any]:
    return list(value)


@converted.register
def _mapping(value: Mapping) -> dict[Any, Any]:  # type: ignore[type-arg]  # singledispatch takes the bare class
    return dict(value)


@converted.register
def _string(value: str) -> str:
    return str.__str__(value)


@converted.register
def _number(value: int) -> int:
    return int.__int__(value)


@converted.register
def _real(value: float) -> float:
    return float.__float__(value)


@converted.register
def _member(value: Enum) -> Any:
    return value.value


@converted.register
def _struct(value: msgspec.Struct) -> dict[str, Any]:
    return {field.encode_name: getattr(value, field.name) for field in msgspec.structs.fields(value)}


@converted.register
def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        raise NotJson("the time has no zone, so it may be any of many; give it one")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


@converted.register
def _day(value: date) -> str:
    return value.isoformat()


@converted.register
def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise NotJson(f"{value} is not JSON")
    # Text, not a float: a node that uses decimals wants every digit kept.
    return str(value)


@converted.register
def _identifier(value: UUID) -> str:
    return str(value)


@converted.register(bytes)
@converted.register(bytearray)
@converted.register(memoryview)
def _binary(value: Any) -> Any:
    raise NotJson(f"{type(value).__name__} is not JSON; hand it on as base64 text")


@converted.register(set)
@converted.register(frozenset)
def _unordered(value: Any) -> Any:
    raise NotJson("a set has no order; hand on a sorted list")
