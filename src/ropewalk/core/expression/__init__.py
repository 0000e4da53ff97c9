"""The expression language: total, pure and bounded. See `docs/expressions.md` for what authors can write.

`compile_template` takes any JSON value whose texts may hold `{{ … }}`, `compile_expression` a bare expression. Both
are compiled once; what they refer to and call is known without running them.
"""

from ropewalk.core.expression.faults import ExpressionError
from ropewalk.core.expression.paths import captured
from ropewalk.core.expression.program import Expression, compile_expression
from ropewalk.core.expression.run import Scope
from ropewalk.core.expression.template import Template, check_template, compile_template, has_expression
from ropewalk.core.expression.values import is_true

__all__ = [
    "Expression",
    "ExpressionError",
    "Scope",
    "Template",
    "captured",
    "check_template",
    "compile_expression",
    "compile_template",
    "has_expression",
    "is_true",
]
