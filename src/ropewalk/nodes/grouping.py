"""`aggregate`: items put together by what they have in common, and reckoned up."""

from collections.abc import Callable
from math import fsum, isfinite
from typing import Any, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from ropewalk.nodes.base import About, NodeContext, NodeFailure, Output
from ropewalk.nodes.comparing import identity, is_less
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.lists import ITEMS, OfItems
from ropewalk.nodes.paths import FieldPath, getter, last_step

JSON: TypeAlias = Any
Reckoning = Literal["count", "countUnique", "sum", "min", "max", "avg", "collect", "unique", "first", "last"]

MOST_COLUMNS = 100


class Column(Inputs):
    """One figure of each group."""

    do: Reckoning = Field(
        description=(
            "What is made of the field: `count` (items, or those where the field is not null), `countUnique`, `sum`, "
            "`min`, `max`, `avg`, `collect` (a list of all), `unique` (each once), `first`, `last`. Null does not "
            "count."
        ),
        examples=["sum"],
    )
    field: FieldPath | None = Field(
        None, description="The path of the field; the item itself by default.", examples=["total"]
    )
    name: str | None = Field(
        None, alias="as", min_length=1, max_length=200, description="What it is called; by default as the field.",
        examples=["revenue"],
    )  # fmt: skip

    @property
    def called(self) -> str:
        """Its name in the result."""
        return self.name or (self.do if self.field is None else last_step(self.field))


class Aggregate(OfItems):
    name = "aggregate"
    summary = "Groups items by fields, and counts, sums and collects each group; without groups, all items together."
    about = About(
        title="Aggregate",
        category="data",
        icon="sigma",
        keywords=("group by", "count", "sum", "average", "min", "max", "collect", "summarize", "pivot", "list"),
        output={
            "type": ["array", "object"],
            "description": "An object for each group, in the order of its first item; without `groupBy` one object.",
        },
    )

    class Parameters(Inputs):
        items: list[JSON] = ITEMS
        group_by: list[FieldPath] = Field(
            [], max_length=16, description="The paths of the fields that are alike in a group.", examples=[["country"]]
        )
        values: list[Column] = Field(
            [], max_length=MOST_COLUMNS, description="The figures of each group; by default how many items it has.",
            examples=[[{"do": "sum", "field": "total", "as": "revenue"}]],
        )  # fmt: skip

        @model_validator(mode="after")
        def _names_differ(self) -> Self:
            names = [*map(last_step, self.group_by), *(column.called for column in self.values)]
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise ValueError(f"two figures are called {twice[:64]!r}: name one of them with as")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        if not parameters.group_by:
            return Output(_reckoned(parameters.items, parameters.values))
        named = [(last_step(path), getter(path)) for path in parameters.group_by]
        groups: dict[Any, tuple[dict[str, JSON], list[JSON]]] = {}
        for item in parameters.items:
            key = {name: look(item) for name, look in named}
            groups.setdefault(identity(list(key.values())), (key, []))[1].append(item)
        return Output([{**key, **_reckoned(items, parameters.values)} for key, items in groups.values()])


def _reckoned(items: list[JSON], columns: list[Column]) -> dict[str, JSON]:
    if not columns:
        return {"count": len(items)}
    return {column.called: _figure(items, column, at) for at, column in enumerate(columns)}


def _figure(items: list[JSON], column: Column, at: int) -> JSON:
    if column.field is None:
        values = items
    else:
        look = getter(column.field)
        values = [value for value in map(look, items) if value is not None]
    try:
        return _RECKONINGS[column.do](values)
    except ValueError as error:
        raise NodeFailure.permanent(f"with.values[{at}]: {error}") from None


def _sum(values: list[JSON]) -> float:
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise ValueError("has a value that is no number; convert it with a set node first")
    try:
        total = sum(values) if all(isinstance(value, int) for value in values) else fsum(values)
    except OverflowError:
        total = float("inf")
    if not isfinite(total):
        raise ValueError("gives a number out of range")
    return total


def _average(values: list[JSON]) -> float | None:
    return _sum(values) / len(values) if values else None


def _least(values: list[JSON]) -> JSON:
    found = values[0] if values else None
    for value in values[1:]:
        if is_less(value, found):
            found = value
    return found


def _greatest(values: list[JSON]) -> JSON:
    found = values[0] if values else None
    for value in values[1:]:
        if is_less(found, value):
            found = value
    return found


def _unique(values: list[JSON]) -> list[JSON]:
    found: dict[Any, JSON] = {}
    for value in values:
        found.setdefault(identity(value), value)
    return list(found.values())


_RECKONINGS: Final[dict[Reckoning, Callable[[list[JSON]], JSON]]] = {
    "count": len,
    "countUnique": lambda values: len(_unique(values)),
    "sum": _sum,
    "avg": _average,
    "min": _least,
    "max": _greatest,
    "collect": lambda values: values,
    "unique": _unique,
    "first": lambda values: values[0] if values else None,
    "last": lambda values: values[-1] if values else None,
}
