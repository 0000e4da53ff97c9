"""Nodes that choose from a list, order it, cut it and take it apart."""

from functools import cmp_to_key
from itertools import compress
from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, StrictBool, model_validator

from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.comparing import Kind, comparable, is_less, is_same
from ropewalk.nodes.conditions import MOST_CONDITIONS, FieldCondition, Match, chosen
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.paths import FieldPath, find, getter, kept, last_step, steps_of

JSON: TypeAlias = Any

FEW = 50
MOST_ITEMS = 1_000_000
MOST_KEYS = 16
ITEMS = Field(description="The list.", examples=["{{ nodes.orders.output }}"])
SOME_OR_NONE = {"some": "At least one item is left.", "none": "No item is left."}


class OfItems(NodeType):
    """A type that goes through a list, beside the loop if that is not short."""

    only_shapes = True
    has_rules = True

    def takes_long(self, parameters: Any) -> bool:
        return len(parameters.items) > FEW


class Filter(OfItems):
    name = "filter"
    summary = "Keeps the items for which conditions hold, or those marked true; says if any is left."
    about = About(
        title="Filter",
        category="data",
        icon="filter",
        keywords=("where", "select", "conditions", "keep", "remove", "list"),
        output={"type": "array", "description": "The items that were kept, in their order."},
        ports=SOME_OR_NONE,
    )
    ports = ("some", "none")
    takes_one_port = True

    class Parameters(Inputs):
        items: list[JSON] = ITEMS
        where: dict[FieldPath, JSON] | None = Field(
            None, description="Field or dotted path, and the value it must have.", examples=[{"customer.country": "DE"}]
        )
        keep: list[StrictBool] | None = Field(
            None, description="One true or false for each item.", examples=["{{ map(input.orders, x => x.total > 5) }}"]
        )
        conditions: list[FieldCondition] = Field(
            [], max_length=MOST_CONDITIONS, description="Condition rows on fields of each item.",
            examples=[[{"field": "total", "operator": "greater", "right": 100}]],
        )  # fmt: skip
        match: Match = Field("all", description="Whether all conditions must hold, or any of them.", examples=["any"])

        @model_validator(mode="after")
        def _one_way(self) -> Self:
            if (self.where is not None) + (self.keep is not None) + bool(self.conditions) != 1:
                raise ValueError("give exactly one of where, conditions and keep")
            if self.keep is not None and len(self.keep) != len(self.items):
                raise ValueError(f"keep has {len(self.keep)} marks for {len(self.items)} items")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        left = _left(parameters)
        return Output(left, ("some" if left else "none",))


def _left(parameters: Filter.Parameters) -> list[JSON]:
    if parameters.keep is not None:
        return list(compress(parameters.items, parameters.keep))
    if parameters.conditions:
        return chosen(parameters.items, parameters.conditions, parameters.match)
    wanted = [(getter(path), value) for path, value in (parameters.where or {}).items()]
    return [item for item in parameters.items if all(is_same(look(item), value) for look, value in wanted)]


class SortKey(Inputs):
    """What items are put in order by."""

    field: FieldPath | None = Field(
        None, description="The path of the field; the item itself by default.", examples=["customer.name"]
    )
    order: Literal["rising", "falling"] = Field("rising", description="Which way.", examples=["falling"])
    type: Kind = Field("any", description="What the field is read as; as it is by default.", examples=["datetime"])
    ignore_case: bool = Field(False, description="Whether capital and small letters are the same.", examples=[True])


class Sort(OfItems):
    name = "sort"
    summary = "Puts a list in order, by one field or several; null comes last, equals keep their order."
    about = About(
        title="Sort",
        category="data",
        icon="arrow-down-a-z",
        keywords=("order", "rank", "ascending", "descending", "list"),
        output={"type": "array", "description": "The items in their new order."},
    )

    class Parameters(Inputs):
        items: list[JSON] = ITEMS
        by: list[SortKey] = Field(
            [], max_length=MOST_KEYS, examples=[[{"field": "total", "order": "falling"}]],
            description="What they are put in order by, the first before the second; the items themselves by default.",
        )  # fmt: skip

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        items = parameters.items
        # A stable sort by the last key first is one by all keys.
        for at, key in reversed(list(enumerate(parameters.by or [SortKey.model_validate({})]))):
            items = _sorted(items, key, f"with.by[{at}]")
        return Output(items)


def _sorted(items: list[JSON], key: SortKey, place: str) -> list[JSON]:
    look = None if key.field is None else getter(key.field)
    try:
        values = items if look is None else map(look, items)
        rows = [
            (comparable(value, key.type, ignore_case=key.ignore_case), item)
            for value, item in zip(values, items, strict=True)
        ]
        known = [row for row in rows if row[0] is not None]
        known.sort(key=_ordering(known), reverse=key.order == "falling")
    except ValueError as error:
        raise NodeFailure.permanent(f"{place}: {error}") from None
    return [item for _, item in known] + [item for value, item in rows if value is None]


def _ordering(rows: list[tuple[JSON, JSON]]) -> Any:
    """What `sort` asks of each row: its value where all are alike, which is fast."""
    kinds = dict.fromkeys(type(value) for value, _ in rows)
    if all(kind in (int, float) for kind in kinds) or list(kinds) in ([str], [bool]):
        return lambda row: row[0]
    return cmp_to_key(lambda one, other: is_less(other[0], one[0]) - is_less(one[0], other[0]))


class Limit(OfItems):
    name = "limit"
    summary = "Keeps the first or the last items of a list."
    about = About(
        title="Limit",
        category="data",
        icon="list-end",
        keywords=("first", "last", "top", "slice", "skip", "page", "list"),
        output={"type": "array", "description": "The items that were kept, in their order."},
        ports=SOME_OR_NONE,
    )
    ports = ("some", "none")
    takes_one_port = True

    class Parameters(Inputs):
        items: list[JSON] = ITEMS
        count: int = Field(ge=0, le=MOST_ITEMS, description="How many items are kept at most.", examples=[10])
        end: Literal["first", "last"] = Field("first", description="Which end they are taken from.", examples=["last"])
        skip: int = Field(0, ge=0, le=MOST_ITEMS, description="How many are passed over at that end.", examples=[20])

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        items, skip = parameters.items, parameters.skip
        if parameters.end == "first":
            left = items[skip : skip + parameters.count]
        else:
            stop = max(len(items) - skip, 0)
            left = items[max(stop - parameters.count, 0) : stop]
        return Output(left, ("some" if left else "none",))


class Split(OfItems):
    name = "split"
    summary = "Makes one item of each part of a list in a field, or cuts a list into pieces of a size."
    about = About(
        title="Split",
        category="data",
        icon="unfold-horizontal",
        keywords=("explode", "flatten", "unnest", "batch", "chunk", "list", "items"),
        output={"type": "array", "description": "The items; with `size`, lists of so many items."},
    )

    class Parameters(Inputs):
        items: list[JSON] = ITEMS
        field: FieldPath | None = Field(
            None, description="The path of a list in each item; each of its parts becomes an item.", examples=["lines"]
        )
        keep: Literal["all", "none"] | list[FieldPath] = Field(
            "none",
            description="Which other fields go along: all, none, or those of these paths.",
            examples=[["orderId"]],
        )
        name: str | None = Field(
            None, alias="as", min_length=1, max_length=200, examples=["line"],
            description="What the part is called beside other fields; by default as the last step of `field`.",
        )  # fmt: skip
        size: int | None = Field(None, ge=1, le=MOST_ITEMS, description="How many items a piece has.", examples=[100])

        @model_validator(mode="after")
        def _one_way(self) -> Self:
            if (self.field is None) == (self.size is None):
                raise ValueError("give either field or size")
            if self.field is None and (self.keep != "none" or self.name is not None):
                raise ValueError("keep and as go with field only")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        items, size = parameters.items, parameters.size
        if size is not None:
            return Output([items[at : at + size] for at in range(0, len(items), size)])
        made: list[JSON] = []
        for at, item in enumerate(items):
            made += _parts(item, parameters, at)
            if len(made) > MOST_ITEMS:
                raise NodeFailure.permanent(f"with.items: more than {MOST_ITEMS:,} items would come of it")
        return Output(made)


def _parts(item: JSON, how: Split.Parameters, at: int) -> list[JSON]:
    assert how.field is not None
    parts = find(item, steps_of(how.field)) or []
    if not isinstance(parts, list):
        raise NodeFailure.permanent(f"with.items[{at}]: {how.field} is no list")
    if how.keep == "none" and how.name is None:
        return parts
    name = how.name or last_step(how.field)
    others = _others(item, how)
    return [{**others, name: part} for part in parts]


def _others(item: JSON, how: Split.Parameters) -> dict[str, JSON]:
    """The fields that go along: of all of them, not the list that is taken apart."""
    if isinstance(how.keep, list):
        return kept(item, how.keep)
    if how.keep == "none" or not isinstance(item, dict):
        return {}
    first = steps_of(how.field or "")[0]
    return {name: value for name, value in item.items() if name != first}
