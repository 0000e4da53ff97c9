"""Expressions: try one on values of one's own before it goes into a workflow."""

import os
import time
from typing import Any

from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, exemplified
from ropewalk.core.expression import ExpressionError, Scope, compile_expression, compile_template, has_expression
from ropewalk.core.expression.chance import Chance
from ropewalk.service.reading.recorded import offload

routes = Routes("/workflow/expressions", "Expressions")


class NodeRecord(Body):
    """What an expression sees of a node."""

    output: Any = None
    state: str | None = Field(default=None, max_length=20)
    error: Any = None
    errors: Any = None


class ExpressionContext(Body):
    """The names an expression sees; what is left out is null."""

    input: Any = None
    vars: dict[str, Any] = Field(default_factory=dict)
    nodes: dict[str, NodeRecord] = Field(default_factory=dict, max_length=10_000)
    item: Any = None
    index: int | None = Field(default=None, ge=0)
    execution: dict[str, Any] | None = None
    workspace: dict[str, Any] | None = None
    env: dict[str, Any] = Field(default_factory=dict)


class EvaluateBody(Body):
    """An expression, bare or as a text with `{{ … }}`, and what it is about."""

    model_config = exemplified(
        Body, {"expression": "{{ input.total * 2 }}", "context": {"input": {"total": 21}, "vars": {}}}
    )

    expression: str = Field(min_length=1, max_length=16_384)
    context: ExpressionContext = ExpressionContext()


class ExpressionProblem(Answer):
    """Why there is no value, and where in the text that shows."""

    message: str
    position: int


class Evaluated(Answer):
    """The value, or the error instead of it."""

    model_config = exemplified(
        Answer,
        {"value": 42, "error": None},
        {"value": None, "error": {"message": "arithmetic on null", "position": 3}},
    )

    value: Any
    error: ExpressionProblem | None


@routes.post("/evaluate", Right.READ, response_model=Evaluated)
async def evaluate_expression(call: Caller, body: EvaluateBody) -> dict[str, Any]:
    """Evaluate an expression within the limits every expression has; nothing is read and nothing is stored."""
    try:
        value = await offload(lambda: _value(body.expression, _scope(body.context)), is_large=True)
    except ExpressionError as error:
        return {"value": None, "error": {"message": error.message, "position": error.position}}
    return {"value": value, "error": None}


def _value(text: str, scope: Scope) -> Any:
    if has_expression(text):
        return compile_template(text).resolve(scope)
    return compile_expression(text).evaluate(scope)


def _scope(context: ExpressionContext) -> Scope:
    nodes = {name: record.model_dump() for name, record in context.nodes.items()}
    return Scope(
        input=context.input,
        vars=context.vars,
        nodes=nodes,
        item=context.item,
        index=context.index,
        execution=context.execution,
        workspace=context.workspace,
        env=context.env,
        chance=Chance(time.time_ns() // 1_000, os.urandom(16).hex()),
    )
