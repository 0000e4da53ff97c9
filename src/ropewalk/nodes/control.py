"""Nodes that choose the way an execution goes, end it, or tell of it; they reach nothing outside."""

import re
from collections.abc import Mapping
from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, StrictBool, field_validator, model_validator

from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.expression import has_expression
from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.comparing import is_same
from ropewalk.nodes.conditions import MOST_CONDITIONS, Condition, Match, do_hold
from ropewalk.nodes.failure import LONGEST_MESSAGE, shortened
from ropewalk.nodes.inputs import Inputs

JSON: TypeAlias = Any

LONGEST_NOTE = 10_000
FEW_CONDITIONS = 10
ROW = {"left": "{{ nodes.order.output.total }}", "operator": "greater", "right": 100}
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class If(NodeType):
    name = "if"
    summary = "Goes on through `true` or `false`, by an expression or by condition rows."
    about = About(
        title="If",
        category="control",
        icon="split",
        keywords=("condition", "branch", "decide", "compare"),
        output={"type": "boolean", "description": "Whether the condition holds."},
        ports={"true": "The condition holds.", "false": "The condition does not hold."},
    )
    ports = ("true", "false")
    takes_one_port = True
    only_shapes = True
    has_rules = True

    class Parameters(Inputs):
        condition: StrictBool | None = Field(
            None, description="An expression that gives true or false.", examples=["{{ input.total > 100 }}"]
        )
        conditions: list[Condition] = Field(
            [], max_length=MOST_CONDITIONS, examples=[[ROW]],
            description="Condition rows, in the place of an expression.",
        )  # fmt: skip
        match: Match = Field("all", description="Whether all conditions must hold, or any of them.", examples=["any"])

        @model_validator(mode="after")
        def _one_way(self) -> Self:
            if (self.condition is None) == (not self.conditions):
                raise ValueError("give either condition, which must be true or false, or conditions")
            return self

    def accept(self, inputs: Any) -> "Parameters | bool":
        """What an expression gave, without a model: that is what nearly every node of this type has."""
        if inputs and len(inputs) == 1 and type(inputs.get("condition")) is bool:
            return bool(inputs["condition"])
        accepted: If.Parameters = super().accept(inputs)
        return accepted

    def takes_long(self, parameters: "Parameters | bool") -> bool:
        return not isinstance(parameters, bool) and len(parameters.conditions) > FEW_CONDITIONS

    async def run(self, parameters: "Parameters | bool", context: NodeContext) -> Output:
        holds = parameters if isinstance(parameters, bool) else _holds(parameters)
        return Output(holds, ("true" if holds else "false",))


def _holds(parameters: If.Parameters) -> bool:
    if parameters.condition is not None:
        return parameters.condition
    return do_hold(parameters.conditions, parameters.match, "with.conditions")


class Case(Inputs):
    """Go through `port` when the value equals this, when the conditions hold, or when the expression is true."""

    port: str = Field(min_length=1, max_length=64, description="The port that is taken.", examples=["big"])
    equals: JSON = Field(None, description="What the value must equal.", examples=["DE"])
    when: StrictBool | None = Field(
        None, description="An expression that gives true or false.", examples=["{{ input.total > 100 }}"]
    )
    conditions: list[Condition] = Field([], max_length=MOST_CONDITIONS, description="Condition rows.", examples=[[ROW]])
    match: Match = Field("all", description="Whether all conditions must hold, or any of them.", examples=["any"])

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if ("equals" in self.model_fields_set) + (self.when is not None) + bool(self.conditions) != 1:
            raise ValueError("give exactly one of equals, when and conditions")
        return self

    def fits(self, value: JSON, place: str) -> bool:
        """Whether its port is to be taken."""
        if self.conditions:
            return do_hold(self.conditions, self.match, f"{place}.conditions")
        return is_same(value, self.equals) if self.when is None else self.when


class Switch(NodeType):
    name = "switch"
    summary = "Goes on through the port of the first case that fits, else through `default`."
    about = About(
        title="Switch",
        category="control",
        icon="route",
        keywords=("case", "branch", "route", "rules", "decide"),
        output={"description": "The value it was given; null if none."},
        ports={
            "<port>": "The case with this port is the first that fits.",
            "default": "No case fits; `default` may give it another name.",
        },
    )
    only_shapes = True
    ports = None
    takes_one_port = True
    has_rules = True

    class Parameters(Inputs):
        value: JSON = Field(None, description="What `equals` is compared with.", examples=["{{ input.country }}"])
        cases: list[Case] | dict[str, JSON] = Field(
            description=(
                "What leads to each port: `{port: value}`, or a list of `{port, equals}`, `{port, when}` or "
                "`{port, conditions}`."
            ),
            examples=[{"german": "DE", "french": "FR"}, [{"port": "big", "conditions": [ROW]}]],
        )
        default: str = Field(
            "default", min_length=1, max_length=64, description="The port that is taken if no case fits.",
            examples=["other"],
        )  # fmt: skip

        @model_validator(mode="after")
        def _no_error_port(self) -> Self:
            ports = self.cases if isinstance(self.cases, dict) else (case.port for case in self.cases)
            if "error" in (self.default, *ports):
                raise ValueError("a port cannot be named 'error', which is the edge of failures")
            return self

        def first_fitting(self) -> str:
            """The port of the first case that fits, or the default."""
            if isinstance(self.cases, dict):
                fitting = (port for port, wanted in self.cases.items() if is_same(self.value, wanted))
                return next(fitting, self.default)
            rows = enumerate(self.cases)
            return next((case.port for at, case in rows if case.fits(self.value, f"with.cases[{at}]")), self.default)

    def ports_with(self, written: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The ports of the cases, and the default; None as soon as one of them is an expression, or makes no sense."""
        cases, default = written.get("cases"), written.get("default", "default")
        # The keys of an object are taken as they are, also if they look like an expression.
        ports = list(cases) if isinstance(cases, dict) else _ports_named(cases)
        return None if ports is None or not _is_literal(default) else (*ports, default)

    def takes_long(self, parameters: Parameters) -> bool:
        cases = parameters.cases
        return isinstance(cases, list) and sum(len(case.conditions) for case in cases) > FEW_CONDITIONS

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        return Output(parameters.value, (parameters.first_fitting(),))


def _ports_named(cases: JSON) -> list[str] | None:
    if not isinstance(cases, list):
        return None
    ports: list[Any] = [case.get("port") if isinstance(case, dict) else None for case in cases]
    return ports if all(map(_is_literal, ports)) else None


def _is_literal(port: JSON) -> bool:
    return isinstance(port, str) and not has_expression(port)


class Noop(NodeType):
    name = "noop"
    summary = "Does nothing; hands on its value, if it has one."
    about = About(
        title="Do nothing",
        category="control",
        icon="circle",
        keywords=("join", "placeholder", "pass", "nothing"),
        output={"description": "The value it was given; null if none."},
    )
    only_shapes = True

    class Parameters(Inputs):
        value: JSON = Field(None, description="What it hands on.", examples=["{{ input }}"])

    def accept(self, inputs: Any) -> Any:
        """The bare value, without a model: joins and markers should cost nothing."""
        return super().accept(inputs).value if inputs else None

    async def run(self, parameters: JSON, context: NodeContext) -> Output:
        return Output(parameters)


class Respond(NodeType):
    name = "respond"
    summary = "Answers the caller of a webhook that says `answer: respond`; the nodes after it go on."
    about = About(
        title="Respond to a webhook",
        category="control",
        icon="reply",
        keywords=("webhook", "answer", "response", "reply", "http", "return"),
        output={
            "type": "object",
            "properties": {
                "status": {"type": "integer", "description": "The status of the answer."},
                "headers": {"type": "object", "description": "Its headers."},
                "body": {"description": "Its body."},
            },
        },
    )
    only_shapes = True
    has_rules = True

    class Parameters(Inputs):
        status: int = Field(200, ge=200, le=599, description="The status of the answer.", examples=[201])
        headers: dict[str, str] = Field(
            {}, max_length=50, description="Headers by name.", examples=[{"Content-Type": "text/csv"}]
        )
        body: JSON = Field(
            None,
            description="A text is sent as it is, all else as JSON.",
            examples=[{"orderId": "{{ input.orderId }}"}],
        )

        @field_validator("headers")
        @classmethod
        def _clean(cls, headers: dict[str, str]) -> dict[str, str]:
            for name, value in headers.items():
                if not _HEADER_NAME.fullmatch(name) or not value.isprintable() or not value.isascii():
                    raise ValueError(f"the header {name[:64]!r} has a character that is not allowed")
            return headers

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        return Output({"status": parameters.status, "headers": parameters.headers, "body": parameters.body})


class Note(NodeType):
    name = "note"
    summary = "Tells readers of the workflow something; does nothing."
    about = About(
        title="Note",
        category="control",
        icon="sticky-note",
        keywords=("comment", "remark", "documentation", "sticky"),
        output={"type": "null", "description": "Nothing."},
    )

    class Parameters(Inputs):
        text: str = Field(
            "", max_length=LONGEST_NOTE, description="What readers are told; Markdown is drawn.",
            examples=["## Refunds\nAsk *accounting* before you change these."],
        )  # fmt: skip

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        return Output(None)


class Fail(NodeType):
    name = "fail"
    summary = "Fails, with a message and a kind."
    about = About(
        title="Fail",
        category="control",
        icon="octagon-x",
        keywords=("error", "stop", "abort", "throw"),
        output={"type": "null", "description": "Nothing: it never succeeds."},
    )

    class Parameters(Inputs):
        message: str = Field(
            "failed on purpose", description="Why it fails.", examples=["order {{ input.orderId }} has no lines"]
        )
        type: Literal["PERMANENT", "TRANSIENT", "TIMEOUT"] = Field(
            "PERMANENT", description="The kind of failure; a PERMANENT one is not retried.", examples=["TRANSIENT"]
        )
        retry_after: float | None = Field(
            None, ge=0, le=3600, description="The earliest next attempt, in seconds from now.", examples=[30]
        )

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        message = shortened(parameters.message, LONGEST_MESSAGE)
        raise NodeFailure(RunError(ErrorType(parameters.type), message, retry_after=parameters.retry_after))


class Log(NodeType):
    name = "log"
    summary = "Writes a structured log line."
    about = About(
        title="Log",
        category="control",
        icon="scroll-text",
        keywords=("print", "trace", "debug", "message"),
        output={
            "type": "object",
            "properties": {"message": {"type": "string", "description": "The message that was logged."}},
        },
    )

    class Parameters(Inputs):
        message: str = Field(description="What is logged.", examples=["{{ input.orderId }} is paid"])
        level: Literal["debug", "info", "warning", "error"] = Field(
            "info", description="How much it matters.", examples=["warning"]
        )
        fields: dict[str, JSON] = Field(
            {}, description="More to be found in the line, by name.", examples=[{"orderId": "{{ input.orderId }}"}]
        )

        @field_validator("message", mode="before")
        @classmethod
        def _any_scalar(cls, message: JSON) -> JSON:
            # `{{ nodes.a.output.count }}` is a number; a log line need not be fussy about that.
            return str(message) if isinstance(message, int | float) else message

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        context.record(parameters.level, parameters.message, parameters.fields)
        return Output({"message": parameters.message})
