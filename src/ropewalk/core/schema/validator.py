"""JSON Schema: the part of 2020-12 that describes inputs and parameters, total and bounded.

Any value against any checked schema gives a list of problems, in bounded steps and depth. Values that are not known yet
(expressions) count as fitting wherever they might: only a certain misfit is a problem.
"""

from collections.abc import Callable

from ropewalk.core.canonical import JSON, Path
from ropewalk.core.errors import Problem
from ropewalk.core.schema.keywords import RULES, TEXT_RULES
from ropewalk.core.schema.rules import check_schema
from ropewalk.core.schema.walk import Allowance, Certainty, TooMuch, Walk

__all__ = ["Allowance", "Certainty", "check_schema", "validate"]


def validate(
    schema: JSON,
    value: JSON,
    path: Path = (),
    certainty: Callable[[str], Certainty] | None = None,
    allowance: Allowance | None = None,
) -> list[Problem]:
    """Where a value does not fit a schema that `check_schema` found good; `certainty` tells expressions from text.

    `allowance` is shared by checks that are made together; Unfinished if it is brief and used up.
    """
    walk = Walk(schema, value, path, (RULES, TEXT_RULES), certainty, allowance or Allowance())
    report = walk.report
    try:
        walk.visit(schema, value)
    except TooMuch as error:
        report.add(path, str(error))
    return report.result()
