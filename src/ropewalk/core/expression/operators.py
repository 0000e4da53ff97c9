"""What the operators do with two values. Each declines what it cannot join by raising `Refused`."""

import operator
from collections.abc import Callable
from typing import Any, Final

from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.run import Run
from ropewalk.core.expression.values import JSON, NUMBERS, a_kind, contains, equal, sound, text_size

Operator = Callable[[Run, Any, Any], Any]


def add(run: Run, left: JSON, right: JSON) -> JSON:
    """The sum of two numbers, or two texts or two lists joined."""
    first, second = type(left), type(right)
    if first in NUMBERS and second in NUMBERS:
        return _calculated(operator.add, left, right)
    if first is str and second is str:
        run.allocate(text_size(left) + text_size(right))
        return left + right
    if first is list and second is list:
        run.allocate(8 * (len(left) + len(right)))
        return left + right
    raise _mismatch("add", left, right)


def subtract(run: Run, left: JSON, right: JSON) -> JSON:
    """The difference of two numbers."""
    return _calculated(operator.sub, left, right)


def multiply(run: Run, left: JSON, right: JSON) -> JSON:
    """The product of two numbers."""
    return _calculated(operator.mul, left, right)


def divide(run: Run, left: JSON, right: JSON) -> JSON:
    """The quotient of two numbers, an integer where it is exact."""
    return _calculated(_quotient, left, right)


def remainder(run: Run, left: JSON, right: JSON) -> JSON:
    """What is left after a whole division; it has the sign of the divisor."""
    return _calculated(operator.mod, left, right)


def _quotient(left: float, right: float) -> float:
    if type(left) is int and type(right) is int and right and left % right == 0:
        return left // right
    return left / right


def _calculated(calculate: Callable[[Any, Any], Any], left: JSON, right: JSON) -> JSON:
    if type(left) not in NUMBERS or type(right) not in NUMBERS:
        raise _mismatch("calculate with", left, right)
    try:
        # Sound operands first: what a scope holds may be of any length.
        return sound(calculate(sound(left), sound(right)))
    except ZeroDivisionError:
        raise Refused("divides by zero; guard it with a condition: b == 0 ? … : a / b") from None


def _mismatch(verb: str, left: JSON, right: JSON) -> Refused:
    hint = "; give null a default with ??" if left is None or right is None else ""
    return Refused(f"cannot {verb} {a_kind(left)} and {a_kind(right)}{hint}")


def negated(value: JSON) -> JSON:
    """The number with its sign turned."""
    if type(value) not in NUMBERS:
        raise Refused(f"cannot negate {a_kind(value)}")
    return sound(-value)


def _ordered(compare: Callable[[Any, Any], bool]) -> Operator:
    def ordered(run: Run, left: JSON, right: JSON) -> bool:
        first, second = type(left), type(right)
        if first in NUMBERS and second in NUMBERS:
            return compare(left, right)
        if first is str and second is str:
            run.scan(min(len(left), len(right)))
            return compare(left, right)
        raise _mismatch("compare", left, right)

    return ordered


def _unequal(run: Run, left: JSON, right: JSON) -> bool:
    return not equal(run, left, right)


def _is_in(run: Run, value: JSON, container: JSON) -> bool:
    return contains(run, container, value)


def _is_not_in(run: Run, value: JSON, container: JSON) -> bool:
    return not contains(run, container, value)


OPERATORS: Final[dict[str, Operator]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
    "==": equal,
    "!=": _unequal,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "in": _is_in,
    "not in": _is_not_in,
}
