"""Nodes that shape values and choose ways; they reach nothing outside and take no time."""

from collections.abc import Mapping
from itertools import compress
from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, StrictBool, field_validator, model_validator

from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.expression import has_expression
from ropewalk.nodes.base import NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.failure import LONGEST_MESSAGE, shortened
from ropewalk.nodes.inputs import Inputs

JSON: TypeAlias = Any


def is_same(one: JSON, other: JSON) -> bool:
    """Equality of JSON: 1 is 1.0 and neither is true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


class Set(NodeType):
    name = "set"
    summary = "Makes an object of the values it is given."
    only_shapes = True

    class Parameters(Inputs):
        values: dict[str, JSON] = Field({})

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        return Output(parameters.values)


class If(NodeType):
    name = "if"
    summary = "Goes on through `true` or `false`."
    ports = ("true", "false")
    takes_one_port = True

    class Parameters(Inputs):
        condition: StrictBool

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        return Output(parameters.condition, ("true" if parameters.condition else "false",))


class Case(Inputs):
    """Go through `port` when the value equals this."""

    port: str = Field(min_length=1, max_length=64)
    equals: JSON


class Switch(NodeType):
    name = "switch"
    summary = "Goes on through the port of the first case that equals the value, else through `default`."
    only_shapes = True
    ports = None
    takes_one_port = True

    class Parameters(Inputs):
        value: JSON = None
        cases: list[Case] | dict[str, JSON] = Field(
            description="The value that leads to each port: `{port: value}`, or a list of `{port, equals}`."
        )
        default: str = Field("default", min_length=1, max_length=64)

        @model_validator(mode="after")
        def _no_error_port(self) -> Self:
            if "error" in (self.default, *(port for port, _ in self.choices())):
                raise ValueError("a port cannot be named 'error', which is the edge of failures")
            return self

        def choices(self) -> list[tuple[str, JSON]]:
            """Every port with the value that leads to it, in order."""
            if isinstance(self.cases, dict):
                return list(self.cases.items())
            return [(case.port, case.equals) for case in self.cases]

    def ports_with(self, written: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The ports of the cases, and the default; None as soon as one of them is an expression, or makes no sense."""
        cases, default = written.get("cases"), written.get("default", "default")
        # The keys of an object are taken as they are, also if they look like an expression.
        ports = list(cases) if isinstance(cases, dict) else _ports_named(cases)
        return None if ports is None or not _is_literal(default) else (*ports, default)

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        fitting = (port for port, wanted in parameters.choices() if is_same(parameters.value, wanted))
        return Output(parameters.value, (next(fitting, parameters.default),))


def _ports_named(cases: JSON) -> list[str] | None:
    if not isinstance(cases, list):
        return None
    ports: list[Any] = [case.get("port") if isinstance(case, dict) else None for case in cases]
    return ports if all(map(_is_literal, ports)) else None


def _is_literal(port: JSON) -> bool:
    return isinstance(port, str) and not has_expression(port)


class Merge(NodeType):
    name = "merge"
    summary = "Joins branches: values that came become one object, a list, or the first of them."
    only_shapes = True

    class Parameters(Inputs):
        mode: Literal["object", "list", "first"] = "object"
        values: list[JSON] = Field([])

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        # A branch that was skipped or failed has the output null: it did not come.
        came = [value for value in parameters.values if value is not None]
        match parameters.mode:
            case "object":
                return Output(_one_object(came))
            case "list":
                return Output(came)
            case "first":
                return Output(came[0] if came else None)


def _one_object(values: list[JSON]) -> dict[str, JSON]:
    merged: dict[str, JSON] = {}
    for value in values:
        if not isinstance(value, dict):
            raise NodeFailure.permanent("with.values: mode object merges objects only; use mode list or first")
        merged |= value
    return merged


class Filter(NodeType):
    name = "filter"
    summary = "Keeps the items whose fields have the wanted values, or those marked true; says if any is left."
    only_shapes = True
    ports = ("some", "none")
    takes_one_port = True
    has_rules = True

    class Parameters(Inputs):
        items: list[JSON]
        where: dict[str, JSON] | None = Field(None, description="Field or dotted path, and the value it must have.")
        keep: list[StrictBool] | None = Field(None, description="One true or false for each item.")

        @model_validator(mode="after")
        def _one_way(self) -> Self:
            if (self.where is None) == (self.keep is None):
                raise ValueError("give either where or keep")
            if self.keep is not None and len(self.keep) != len(self.items):
                raise ValueError(f"keep has {len(self.keep)} marks for {len(self.items)} items")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        if parameters.keep is not None:
            kept = list(compress(parameters.items, parameters.keep))
        else:
            kept = [item for item in parameters.items if _fits(item, parameters.where or {})]
        return Output(kept, ("some" if kept else "none",))


def _fits(item: JSON, where: dict[str, JSON]) -> bool:
    return all(is_same(_field(item, path), wanted) for path, wanted in where.items())


def _field(item: JSON, path: str) -> JSON:
    for name in path.split("."):
        item = item.get(name) if isinstance(item, dict) else None
    return item


class Noop(NodeType):
    name = "noop"
    summary = "Does nothing; hands on its value, if it has one."
    only_shapes = True

    class Parameters(Inputs):
        value: JSON = None

    def accept(self, inputs: Any) -> Any:
        """The bare value, without a model: joins and markers should cost nothing."""
        return super().accept(inputs).value if inputs else None

    async def run(self, parameters: JSON, context: NodeContext) -> Output:
        return Output(parameters)


class Fail(NodeType):
    name = "fail"
    summary = "Fails, with a message and a kind."

    class Parameters(Inputs):
        message: str = "failed on purpose"
        type: Literal["PERMANENT", "TRANSIENT", "TIMEOUT"] = "PERMANENT"
        retry_after: float | None = Field(None, ge=0, le=3600)

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        message = shortened(parameters.message, LONGEST_MESSAGE)
        raise NodeFailure(RunError(ErrorType(parameters.type), message, retry_after=parameters.retry_after))


class Log(NodeType):
    name = "log"
    summary = "Writes a structured log line."

    class Parameters(Inputs):
        message: str
        level: Literal["debug", "info", "warning", "error"] = "info"
        fields: dict[str, JSON] = Field({})

        @field_validator("message", mode="before")
        @classmethod
        def _any_scalar(cls, message: JSON) -> JSON:
            # `{{ nodes.a.output.count }}` is a number; a log line need not be fussy about that.
            return str(message) if isinstance(message, int | float) else message

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        context.record(parameters.level, parameters.message, parameters.fields)
        return Output({"message": parameters.message})
