"""The table of functions: each entry is the code, the check of its arguments and its line in the reference."""

import re
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.run import MAX_INTEGER
from ropewalk.core.expression.values import JSON, a_kind

Apply = Callable[..., Any]
Each = Callable[[Any], Any]
EachPair = Callable[[Any, Any], Any]

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "text": (str,),
    "regex": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "list": (list,),
    "object": (dict,),
    "null": (type(None),),
    # An instant is an RFC 3339 text or seconds since 1970.
    "instant": (str, int, float),
}
_BETWEEN = re.compile(r", (?![^(]*\))")
"""Between two parameters, not between the two names of a rule."""


class Parameter(Struct, frozen=True):
    """What one argument must be; `types` is None where anything goes, `rule_names` how many names a rule binds."""

    name: str
    kind: str
    types: tuple[type, ...] | None
    is_optional: bool
    rule_names: int

    def check(self, function: str, value: JSON) -> None:
        """Refuse a value of the wrong kind, or an integer beyond the language's range."""
        if self.types is None:
            return
        found = type(value)
        if found not in self.types:
            hint = "; give it a default with ??" if value is None else ""
            raise Refused(f"{function} needs its {self.name} to be {self.kind}, not {a_kind(value)}{hint}")
        if found is int and not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise Refused(f"{function} needs its {self.name} to be within ±2**53")


class Function(Struct, frozen=True):
    """One function: its signature as authors read it, what it promises, an example, its price in steps."""

    name: str
    topic: str
    signature: str
    summary: str
    example: str
    result: JSON
    parameters: tuple[Parameter, ...]
    cost: int
    apply: Apply

    @property
    def required(self) -> int:
        """How many arguments there must be."""
        return sum(not parameter.is_optional for parameter in self.parameters)


class Topic:
    """Functions of one sort, in the order of their definition."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.functions: list[Function] = []

    def function(
        self, signature: str, summary: str, example: str, result: JSON, *, cost: int = 2
    ) -> Callable[[Apply], Apply]:
        """Enter the decorated code into the table under this signature."""

        def enter(apply: Apply) -> Apply:
            name, parameters = _parsed(signature)
            entry = Function(name, self.title, signature, summary, example, result, parameters, cost, apply)
            self.functions.append(entry)
            return apply

        return enter


def _parsed(signature: str) -> tuple[str, tuple[Parameter, ...]]:
    name, _, rest = signature.partition("(")
    inside, _, _ = rest.rpartition(") -> ")
    return name, tuple(_parameter(part) for part in _BETWEEN.split(inside) if part)


def _parameter(text: str) -> Parameter:
    name, _, kind = text.partition(": ")
    before, _, _ = kind.partition(" => ")
    rule_names = len(before.split(", ")) if before != kind else 0
    is_open = rule_names or kind == "any"
    types = None if is_open else tuple(found for part in kind.split(" or ") for found in _TYPES[part])
    return Parameter(name.rstrip("?"), kind, types, name.endswith("?"), rule_names)
