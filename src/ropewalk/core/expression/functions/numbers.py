"""Functions on numbers, and from one kind of value to another."""

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.functions.table import Topic
from ropewalk.core.expression.operators import add
from ropewalk.core.expression.run import MAX_INTEGER, Run
from ropewalk.core.expression.values import JSON, NUMBERS, a_kind, is_true, kind, render, shown, sound

NUMBER: Final = Topic("Numbers and kinds")
_MAX_DIGITS: Final = 15
_LONGEST_NUMBER: Final = 64
_PRECISE: Final = Context(prec=64)
_NUMBER = re.compile(r"\s*-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*", re.ASCII)


@NUMBER.function("abs(value: number) -> number", "Without its sign.", "abs(-3)", 3)
def absolute(run: Run, value: float) -> float:
    return abs(value)


@NUMBER.function(
    "round(value: number, digits?: integer) -> number",
    "To so many digits behind the point (0), halves away from zero.",
    "round(2.675, 2)",
    2.68,
    cost=4,
)
def rounded(run: Run, value: float, digits: int = 0) -> float:
    if not -_MAX_DIGITS <= digits <= _MAX_DIGITS:
        raise Refused(f"round takes at most {_MAX_DIGITS} digits")
    if abs(sound(value)) >= MAX_INTEGER:
        return value
    # By way of its decimal text, so that 2.675 is what it looks like.
    exact = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _PRECISE)
    return sound(int(exact) if digits <= 0 else float(exact))


@NUMBER.function("floor(value: number) -> integer", "The next integer below.", "floor(2.7)", 2)
def floor(run: Run, value: float) -> float:
    return sound(math.floor(sound(value)))


@NUMBER.function("ceil(value: number) -> integer", "The next integer above.", "ceil(2.1)", 3)
def ceil(run: Run, value: float) -> float:
    return sound(math.ceil(sound(value)))


@NUMBER.function(
    "pow(value: number, exponent: number) -> number",
    "To a power; a root is a power too: `pow(27, 1 / 3)`.",
    "pow(2, 10)",
    1024,
    cost=4,
)
def power(run: Run, value: float, exponent: float) -> float:
    try:
        # By way of floats: an integer to the power of a large one would be of any length.
        result = math.pow(sound(value), sound(exponent))
    except (OverflowError, ValueError, ZeroDivisionError):
        raise Refused("pow gives no number here: too large, or a root of a negative number") from None
    is_whole = type(value) is int and type(exponent) is int and result.is_integer() and abs(result) <= MAX_INTEGER
    return sound(int(result) if is_whole else result)


@NUMBER.function("sqrt(value: number) -> number", "The square root.", "sqrt(2.25)", 1.5, cost=4)
def square_root(run: Run, value: float) -> float:
    if sound(value) < 0:
        raise Refused("sqrt needs a number that is not negative")
    root = math.sqrt(value)
    return int(root) if type(value) is int and root.is_integer() else root


@NUMBER.function(
    "fixed(value: number, digits: integer) -> text",
    "As text with exactly so many digits behind the point, halves away from zero.",
    "fixed(1234.5, 2)",
    "1234.50",
    cost=4,
)
def fixed(run: Run, value: float, digits: int) -> str:
    if not 0 <= digits <= _MAX_DIGITS:
        raise Refused(f"fixed takes 0 to {_MAX_DIGITS} digits")
    if abs(sound(value)) > MAX_INTEGER:
        raise Refused("fixed needs a number within ±2**53")
    exact = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _PRECISE)
    return f"{abs(exact) if exact.is_zero() else exact:f}"


@NUMBER.function("min(items: list) -> number or text or null", "The least item; null if empty.", "min([3, 1, 2])", 1)
def least(run: Run, items: list[JSON]) -> JSON:
    require_comparable(run, items)
    return min(items, default=None)


@NUMBER.function("max(items: list) -> number or text or null", "The greatest item; null if empty.", "max([3, 1])", 3)
def greatest(run: Run, items: list[JSON]) -> JSON:
    require_comparable(run, items)
    return max(items, default=None)


@NUMBER.function("sum(items: list) -> number", "All numbers added up.", "sum([1, 2, 3.5])", 6.5)
def total(run: Run, items: list[JSON]) -> JSON:
    run.charge(len(items))
    result: JSON = 0
    for item in items:
        if type(item) not in NUMBERS:
            raise Refused(f"sum needs numbers, not {a_kind(item)}")
        result = add(run, result, item)
    return result


@NUMBER.function("number(value: text or number) -> number", "A text read as a number.", 'number("12.5")', 12.5)
def number(run: Run, value: str | float) -> float:
    if not isinstance(value, str):
        return value
    if len(value) > _LONGEST_NUMBER or not _NUMBER.fullmatch(value):
        raise Refused(f"cannot read {shown(value)} as a number")
    return sound(float(value) if any(sign in value for sign in ".eE") else int(value))


@NUMBER.function("text(value: any) -> text", "Any value as it reads inside a text.", "text([1, true])", "[1,true]")
def text(run: Run, value: JSON) -> str:
    return render(run, value)


@NUMBER.function("boolean(value: any) -> boolean", "Whether it counts as true in a condition.", 'boolean("")', False)
def boolean(run: Run, value: JSON) -> bool:
    return is_true(value)


@NUMBER.function("type(value: any) -> text", "null, boolean, number, text, list or object.", "type([1])", "list")
def kind_of(run: Run, value: JSON) -> str:
    return kind(value)


def require_comparable(run: Run, items: list[Any]) -> None:
    """Refuse a list that is neither all numbers nor all texts; pay for comparing its items once."""
    run.walk(len(items))
    if all(type(item) in NUMBERS for item in items):
        return
    if not all(type(item) is str for item in items):
        raise Refused("can only order numbers, or texts, not a mixture or anything else")
    run.scan(sum(map(len, items)))
