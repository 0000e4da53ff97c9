"""Condition rows: what `if`, `switch` and `filter` decide by, where no expression does."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from ropewalk.core.expression import Scope
from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.functions.regexes import check_pattern, matches
from ropewalk.core.expression.run import Run
from ropewalk.nodes.comparing import Kind, comparable, identity, is_less, is_same
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.paths import FieldPath, getter

JSON: TypeAlias = Any
Match = Literal["all", "any"]
Operator = Literal[
    "equals", "notEquals", "greater", "greaterOrEqual", "less", "lessOrEqual", "contains", "notContains",
    "startsWith", "endsWith", "matches", "notMatches", "in", "notIn", "exists", "missing", "empty", "notEmpty",
]  # fmt: skip

MOST_CONDITIONS = 100
ALONE: Final = ("exists", "missing", "empty", "notEmpty")
ORDERED: Final = ("greater", "greaterOrEqual", "less", "lessOrEqual")
OF_TEXT: Final = ("startsWith", "endsWith", "matches", "notMatches")


class Comparison(Inputs):
    """What is asked of a value."""

    operator: Operator = Field(
        "equals",
        description=(
            "How the value is compared with `right`. `in` and `notIn` take a list; `exists`, `missing`, `empty` and "
            "`notEmpty` take nothing. Null is neither less nor greater than anything."
        ),
        examples=["greater"],
    )
    right: JSON = Field(None, description="What the value is compared with.", examples=[100])
    type: Kind = Field(
        "any", description="What both sides are read as before they are compared; as they are by default.",
        examples=["number"],
    )  # fmt: skip
    ignore_case: bool = Field(False, description="Whether capital and small letters are the same.", examples=[True])

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.operator in ALONE and self.right is not None:
            raise ValueError(f"{self.operator} takes no right side")
        if self.operator not in ALONE and "right" not in self.model_fields_set:
            raise ValueError(f"{self.operator} needs a right side: give right")
        if self.operator in ORDERED and self.type in ("list", "object"):
            raise ValueError(f"{self.operator} compares no {self.type}s")
        if self.operator in OF_TEXT and self.type not in ("any", "text"):
            raise ValueError(f"{self.operator} is for texts, not for type {self.type}")
        if self.operator in ("in", "notIn") and not isinstance(self.right, list):
            raise ValueError(f"{self.operator} needs a list as its right side")
        if self.operator in ("matches", "notMatches"):
            _check_pattern(self.right)
        return self

    def holds(self, left: JSON) -> bool:
        """Whether it holds for a value; ValueError if the two sides cannot be compared."""
        return _ASKED[self.operator](self, left)

    def read(self, value: JSON) -> JSON:
        """A side as it is compared."""
        return comparable(value, self.type, ignore_case=self.ignore_case)

    @cached_property
    def right_side(self) -> JSON:
        """The right side as it is compared, which is the same for every value."""
        return self.read(self.right)

    @cached_property
    def right_sides(self) -> frozenset[Any]:
        """What `in` looks for a value among."""
        return frozenset(identity(self.read(each)) for each in self.right)


class Condition(Comparison):
    """One condition on a value."""

    left: JSON = Field(None, description="The value to look at.", examples=["{{ nodes.order.output.total }}"])


class FieldCondition(Comparison):
    """One condition on a field of each item."""

    field: FieldPath | None = Field(
        None, description="The path of the field to look at; the item itself by default.", examples=["customer.country"]
    )


def do_hold(conditions: list[Condition], match: Match, place: str) -> bool:
    """Whether all of them hold, or any; the failure of one that cannot be decided names its place."""
    asked = (_held(each, each.left, f"{place}[{at}]") for at, each in enumerate(conditions))
    return all(asked) if match == "all" else any(asked)


def chosen(items: list[JSON], conditions: list[FieldCondition], match: Match) -> list[JSON]:
    """The items for which all of them hold, or any."""
    rows = [(each, _looking(each), f"with.conditions[{at}]") for at, each in enumerate(conditions)]
    combined: Callable[[Iterable[object]], bool] = all if match == "all" else any
    return [
        item for at, item in enumerate(items)
        if combined(_held(each, look(item), place, at) for each, look, place in rows)
    ]  # fmt: skip


def _looking(condition: FieldCondition) -> Callable[[JSON], JSON]:
    return (lambda item: item) if condition.field is None else getter(condition.field)


def _held(row: Comparison, left: JSON, place: str, item: int | None = None) -> bool:
    try:
        return row.holds(left)
    except ValueError as error:
        which = "" if item is None else f"item {item}: "
        raise NodeFailure.permanent(f"{place}: {which}{error}") from None


def _check_pattern(pattern: JSON) -> None:
    if not isinstance(pattern, str):
        raise ValueError("a pattern must be text")
    try:
        check_pattern(pattern)
    except Refused as refused:
        raise ValueError(refused.message) from None


def _is_equal(row: Comparison, left: JSON) -> bool:
    return is_same(row.read(left), row.right_side)


def _ordered(row: Comparison, left: JSON, *, swapped: bool) -> bool | None:
    """Whether the left side is the lesser one, or, swapped, the right one; None if one of them is null."""
    one, other = row.read(left), row.right_side
    if one is None or other is None:
        return None
    return is_less(other, one) if swapped else is_less(one, other)


def _contains(row: Comparison, left: JSON) -> bool:
    right = row.right_side if row.type == "text" or isinstance(row.right, str) else row.right
    whole = row.read(left)
    if isinstance(whole, list):
        return any(is_same(comparable(each, "any", ignore_case=row.ignore_case), right) for each in whole)
    if isinstance(whole, dict):
        return isinstance(right, str) and right in whole
    if whole is None:
        return False
    return _text(right) in _text(whole)


def _text(value: JSON) -> str:
    if not isinstance(value, str):
        raise ValueError("is no text on both sides; say type: text if it is to be read so")
    return value


def _sides(row: Comparison, left: JSON) -> tuple[str, str] | None:
    """Both sides as texts; None if the value is null, which begins and ends with nothing."""
    one, other = row.read(left), row.right_side
    return None if one is None else (_text(one), _text(other))


def _matches(row: Comparison, left: JSON) -> bool:
    value = None if left is None else _text(comparable(left, row.type))
    if value is None:
        return False
    pattern = f"(?i){row.right}" if row.ignore_case else row.right
    try:
        return bool(matches(Run(Scope()), value, pattern))
    except Refused as refused:
        raise ValueError(refused.message) from None


def _is_empty(left: JSON) -> bool:
    return left is None or (isinstance(left, str | list | dict) and not left)


def _is_in(row: Comparison, left: JSON) -> bool:
    return identity(row.read(left)) in row.right_sides


_ASKED: Final[dict[str, Callable[[Comparison, JSON], bool]]] = {
    "equals": _is_equal,
    "notEquals": lambda row, left: not _is_equal(row, left),
    "greater": lambda row, left: _ordered(row, left, swapped=True) is True,
    "greaterOrEqual": lambda row, left: _ordered(row, left, swapped=False) is False,
    "less": lambda row, left: _ordered(row, left, swapped=False) is True,
    "lessOrEqual": lambda row, left: _ordered(row, left, swapped=True) is False,
    "contains": _contains,
    "notContains": lambda row, left: not _contains(row, left),
    "startsWith": lambda row, left: (both := _sides(row, left)) is not None and both[0].startswith(both[1]),
    "endsWith": lambda row, left: (both := _sides(row, left)) is not None and both[0].endswith(both[1]),
    "matches": _matches,
    "notMatches": lambda row, left: not _matches(row, left),
    "in": _is_in,
    "notIn": lambda row, left: not _is_in(row, left),
    "exists": lambda row, left: left is not None,
    "missing": lambda row, left: left is None,
    "empty": lambda row, left: _is_empty(left),
    "notEmpty": lambda row, left: not _is_empty(left),
}
