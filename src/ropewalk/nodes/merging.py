"""`merge`: what several branches gave, put together.

A join starts when all its edges are decided and one is live; the output of a branch that was skipped or failed is null.
So `values` has one value for each branch, null where none came, and `need` says how many must have come.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.comparing import identity
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.paths import FieldPath, getter

JSON: TypeAlias = Any
Row: TypeAlias = dict[str, JSON]

FEW = 50
MOST_ROWS = 1_000_000
MOST_BRANCHES = 1_000


class Merge(NodeType):
    name = "merge"
    summary = "Joins branches: one object, a list, the first that came, or rows put together by position or by key."
    about = About(
        title="Merge",
        category="data",
        icon="merge",
        keywords=("join", "combine", "append", "union", "lookup", "inner", "left", "outer", "anti", "zip", "wait"),
        output={
            "description": (
                "An object (mode object), a list (list, append, position, key), or the first value that came (first)."
            )
        },
    )
    only_shapes = True
    has_rules = True

    class Parameters(Inputs):
        mode: Literal["object", "list", "first", "append", "position", "key"] = Field(
            "object",
            description=(
                "`object`: the fields of all, later ones win; `list`: a list of the values; `first`: the first value; "
                "`append`: lists one behind the other; `position`: the first rows of all lists together, then the "
                "second …; `key`: the rows of two lists that have the same key."
            ),
            examples=["key"],
        )
        values: list[JSON] = Field(
            [], max_length=MOST_BRANCHES, description="What each branch gave; null where none came.",
            examples=[["{{ nodes.orders.output }}", "{{ nodes.customers.output }}"]],
        )  # fmt: skip
        need: Literal["any", "all"] | Annotated[int, Field(ge=1)] = Field(
            "any", description="How many branches must have come: any number, all, or at least so many; else it fails.",
            examples=["all", 2],
        )  # fmt: skip
        take: int | None = Field(
            None, ge=1, le=MOST_BRANCHES, description="Only the first so many of the branches that came.", examples=[2]
        )
        on: list[FieldPath] | None = Field(
            None, min_length=1, max_length=16, examples=[["customerId"]],
            description="The paths of the key in the rows of the first list (mode key).",
        )  # fmt: skip
        on_right: list[FieldPath] | None = Field(
            None, min_length=1, max_length=16, examples=[["id"]],
            description="The paths of the key in the rows of the second list, if they differ.",
        )  # fmt: skip
        join: Literal["inner", "left", "outer", "anti"] = Field(
            "inner",
            description=(
                "Which rows there are (mode key): those of both lists that match; all of the first; all of both; or "
                "those of the first without a match."
            ),
            examples=["left"],
        )
        prefer: Literal["first", "last"] = Field(
            "last",
            description="Which list a field is taken from that several have (position, key).",
            examples=["first"],
        )

        @model_validator(mode="after")
        def _fits_mode(self) -> Self:
            if self.mode != "key":
                if self.on is not None or self.on_right is not None:
                    raise ValueError("on and onRight go with mode key only")
                return self
            if self.on is None or len(self.values) != 2:
                raise ValueError("mode key joins two lists: give two values, and on")
            if self.on is not None and self.on_right is not None and len(self.on) != len(self.on_right):
                raise ValueError("on and onRight must have as many paths")
            return self

    def takes_long(self, parameters: Parameters) -> bool:
        return sum(len(each) for each in parameters.values if isinstance(each, list)) > FEW

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        # A branch that was skipped or failed has the output null: it did not come.
        came = [value for value in parameters.values if value is not None]
        _require(len(came), parameters)
        came = came if parameters.take is None else came[: parameters.take]
        match parameters.mode:
            case "object":
                return Output(_one_object(came))
            case "list":
                return Output(came)
            case "first":
                return Output(came[0] if came else None)
            case "append":
                return Output(_bounded(row for each in _lists(came) for row in each))
            case "position":
                return Output(_by_position(_rows(came), parameters))
            case "key":
                return Output(_by_key(_rows([value or [] for value in parameters.values]), parameters))


def _require(came: int, parameters: Merge.Parameters) -> None:
    if parameters.need == "any":
        return
    count = len(parameters.values)
    needed = count if parameters.need == "all" else parameters.need
    if came < needed:
        raise NodeFailure.permanent(f"with.need: {came} of {count} branches came, and {needed} are needed")


def _one_object(values: list[JSON]) -> Row:
    merged: Row = {}
    for value in values:
        if not isinstance(value, dict):
            raise NodeFailure.permanent("with.values: mode object merges objects only; use mode list or first")
        merged |= value
    return merged


def _lists(values: list[JSON]) -> list[list[JSON]]:
    for at, value in enumerate(values):
        if not isinstance(value, list):
            raise NodeFailure.permanent(f"with.values[{at}]: must be a list")
    return values


def _rows(values: list[JSON]) -> list[list[Row]]:
    for at, rows in enumerate(_lists(values)):
        if place := next((f"[{n}]" for n, row in enumerate(rows) if not isinstance(row, dict)), None):
            raise NodeFailure.permanent(f"with.values[{at}]{place}: must be an object")
    return values


def _bounded(rows: Iterator[JSON]) -> list[JSON]:
    made: list[JSON] = []
    for row in rows:
        made.append(row)
        if len(made) > MOST_ROWS:
            raise NodeFailure.permanent(f"with.values: more than {MOST_ROWS:,} rows would come of it")
    return made


def _by_position(lists: list[list[Row]], how: Merge.Parameters) -> list[Row]:
    longest = max(map(len, lists), default=0)
    return [_together([rows[at] for rows in lists if at < len(rows)], how) for at in range(longest)]


def _together(rows: list[Row], how: Merge.Parameters) -> Row:
    made: Row = {}
    for row in rows if how.prefer == "last" else reversed(rows):
        made |= row
    return made


def _by_key(lists: list[list[Row]], how: Merge.Parameters) -> list[Row]:
    left, right = lists
    assert how.on is not None
    keys = [_keys(left, how.on), _keys(right, how.on_right or how.on)]
    index: dict[Any, list[int]] = {}
    for at, key in enumerate(keys[1]):
        if key is not None:
            index.setdefault(key, []).append(at)
    return _bounded(_joined(left, right, keys[0], index, how))


def _joined(left: list[Row], right: list[Row], keys: list[Any], index: dict[Any, list[int]],
            how: Merge.Parameters) -> Iterator[Row]:  # fmt: skip
    matched: set[int] = set()
    for row, key in zip(left, keys, strict=True):
        places = index.get(key, []) if key is not None else []
        if how.join == "anti":
            if not places:
                yield row
            continue
        matched.update(places)
        yield from (_together([row, right[at]], how) for at in places)
        if not places and how.join != "inner":
            yield row
    if how.join == "outer":
        yield from (row for at, row in enumerate(right) if at not in matched)


def _keys(rows: list[Row], paths: list[str]) -> list[Any]:
    """What the rows are matched by; None for one whose key has a null, which matches nothing."""
    looks = [getter(path) for path in paths]
    found = ([look(row) for look in looks] for row in rows)
    return [None if None in values else identity(values) for values in found]
