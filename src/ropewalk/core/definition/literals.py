"""Parameters that stand as they are written: an expression in one is refused.

The text of an SQL statement is one: what an expression gives would become part of it, and so could anyone's input.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ropewalk.core.canonical import Path
from ropewalk.core.errors import Problem
from ropewalk.core.expression import has_expression

JSON: TypeAlias = Any

EACH = "*"
REFUSED = "must be written out: an expression here would let values become part of it; give values as parameters"


def literal_problems(literal: Sequence[str], parameters: JSON, path: Path) -> list[Problem]:
    """A problem for each expression in or around these parameters, each named like `query` or `statements.*.query`."""
    found: dict[Path, None] = {}
    for name in literal:
        found |= dict.fromkeys(_expressions(parameters, name.split("."), path))
    return [Problem(place, REFUSED) for place in found]


def _expressions(value: JSON, steps: Sequence[str], path: Path) -> Iterator[Path]:
    if isinstance(value, str):
        if has_expression(value):
            yield path
    elif isinstance(value, list) and (not steps or steps[0] == EACH):
        for at, each in enumerate(value):
            yield from _expressions(each, steps[1:], (*path, at))
    elif isinstance(value, dict) and steps and steps[0] in value:
        yield from _expressions(value[steps[0]], steps[1:], (*path, steps[0]))
