"""Nodes that wait without holding a worker: for time, an event, a signal, a person, a child execution."""

from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import uuid_utils
from pydantic import Field, field_validator, model_validator

from ropewalk.core.duration import SECOND, parse_duration
from ropewalk.core.expression import ExpressionError, compile_expression
from ropewalk.core.reach import Reached
from ropewalk.core.subject import LONGEST_NAME, PATTERN, is_pattern
from ropewalk.core.waits import Approval as ApprovalWait
from ropewalk.core.waits import ChildWait, EventWait, SignalWait, Timer, Wait
from ropewalk.nodes.base import About, NodeContext, NodeType
from ropewalk.nodes.inputs import Inputs

JSON: TypeAlias = Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = int(datetime(2255, 1, 1, tzinfo=UTC).timestamp())
"""A moment is a number in a log, and numbers there end at 2⁵³: in µs that is in 2255."""


class Delay(NodeType):
    name = "delay"
    summary = "Waits for a length of time."
    about = About(
        title="Delay",
        category="wait",
        icon="timer",
        keywords=("sleep", "pause", "time", "later"),
        output={"type": "null", "description": "Nothing."},
    )
    is_wait = True
    has_rules = True

    class Parameters(Inputs):
        length: float | str = Field(
            alias="for", description="Like 30s, 5m, 2d, PT30S, or a number of seconds.", examples=["30s", 5]
        )

        @field_validator("length", mode="before")
        @classmethod
        def _sensible(cls, length: JSON) -> JSON:
            parse_duration(length)
            return length

    async def run(self, parameters: Parameters, context: NodeContext) -> Wait:
        return Timer(context.now + parse_duration(parameters.length))


def parse_moment(value: JSON) -> int:
    """A moment in µs since the epoch, from RFC 3339 with a zone or a number of seconds; else ValueError.

    What was before the epoch is as much in the past as the epoch itself.
    """
    if isinstance(value, str):
        return max(_from_text(value), 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST:
        raise ValueError("must be a moment like 2026-11-15T12:00:00Z, or seconds since 1970, before 2255")
    return round(value * SECOND)


def _from_text(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError(text)
        since = moment - EPOCH
        if since > timedelta(seconds=LATEST):
            raise ValueError(text)
        return since // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise ValueError("must be a moment with a zone, like 2026-11-15T12:00:00Z, before 2255") from None


class WaitFor(NodeType):
    name = "wait"
    summary = (
        "Waits until a moment, for an event, or for a signal; hands on `{subject, payload}`, or the signal's payload."
    )
    about = About(
        title="Wait",
        category="wait",
        icon="hourglass",
        keywords=("event", "signal", "until", "moment", "callback"),
        output={"description": "Of an event `{subject, payload}`, of a signal its payload, of a moment null."},
    )
    is_wait = True
    expressions = ("filter",)
    has_rules = True
    reaches = MappingProxyType({"event": Reached.EVENTS})

    class Parameters(Inputs):
        until: float | str | None = Field(
            None, description="RFC 3339 with a zone, or seconds since 1970.", json_schema_extra={"maximum": LATEST},
            examples=["2027-01-15T08:00:00Z"],
        )  # fmt: skip
        event: str | None = Field(
            None, min_length=1, max_length=LONGEST_NAME, description="The subject of the event.",
            json_schema_extra={"pattern": PATTERN}, examples=["order.paid"],
        )  # fmt: skip
        filter: str | None = Field(
            None,
            max_length=4096,
            description="An expression without braces; `item` is the payload; the node's own names are there too.",
            examples=["item.orderId == input.orderId"],
        )
        signal: str | None = Field(
            None, min_length=1, max_length=LONGEST_NAME, description="The name of the signal.", examples=["go"]
        )

        @field_validator("until", mode="before")
        @classmethod
        def _a_moment(cls, until: JSON) -> JSON:
            if until is not None:
                parse_moment(until)
            return until

        @field_validator("event")
        @classmethod
        def _a_pattern(cls, event: str | None) -> str | None:
            if event is not None and not is_pattern(event):
                raise ValueError("must be words with dots between them, like order.paid, order.* or order.>")
            return event

        @field_validator("filter")
        @classmethod
        def _an_expression(cls, source: str | None) -> str | None:
            try:
                if source is not None:
                    compile_expression(source)
            except ExpressionError as error:
                raise ValueError(str(error)) from error
            return source

        @model_validator(mode="after")
        def _one_reason(self) -> Self:
            if sum(reason is not None for reason in (self.until, self.event, self.signal)) != 1:
                raise ValueError("give exactly one of until, event and signal")
            if self.filter is not None and self.event is None:
                raise ValueError("filter goes with event only")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Wait:
        if parameters.event is not None:
            return EventWait(parameters.event, parameters.filter)
        if parameters.signal is not None:
            return SignalWait(parameters.signal)
        return Timer(parse_moment(parameters.until))


class Approval(NodeType):
    name = "approval"
    summary = "Waits until a person approves or rejects; hands on `{approved, by, payload}`."
    about = About(
        title="Approval",
        category="wait",
        icon="user-check",
        keywords=("person", "human", "decision", "approve", "reject", "review"),
        output={
            "type": "object",
            "properties": {
                "approved": {"type": "boolean", "description": "Whether the person approved."},
                "by": {"type": "string", "description": "The person who answered."},
                "payload": {"description": "What the person said along with the answer."},
            },
        },
        ports={"approved": "A person approved.", "rejected": "A person rejected."},
    )
    ports = ("approved", "rejected")
    takes_one_port = True
    is_wait = True

    class Parameters(Inputs):
        title: str = Field(
            min_length=1, max_length=1000, description="What the person is asked.",
            examples=["Refund {{ input.orderId }}?"],
        )  # fmt: skip
        details: JSON = Field(
            None, description="What the person may want to know.", examples=["{{ nodes.order.output.body }}"]
        )

    async def run(self, parameters: Parameters, context: NodeContext) -> Wait:
        return ApprovalWait(parameters.title, parameters.details)


class Subworkflow(NodeType):
    name = "subworkflow"
    summary = "Starts another workflow as a child execution and waits for its output."
    about = About(
        title="Sub-workflow",
        category="wait",
        icon="workflow",
        keywords=("child", "call", "workflow", "reuse", "nested"),
        output={"description": "The output of the child execution."},
    )
    is_wait = True
    reaches = MappingProxyType({"workflow": Reached.WORKFLOW})

    class Parameters(Inputs):
        workflow: str = Field(
            min_length=1, max_length=256, description="Name or id of the workflow.", examples=["refund"]
        )
        version: int | None = Field(
            None, ge=1, description="Its version; by default the one published when the child starts.", examples=[3]
        )
        input: JSON = Field(None, description="The input of the child.", examples=[{"orderId": "{{ input.orderId }}"}])

    async def run(self, parameters: Parameters, context: NodeContext) -> Wait:
        return ChildWait(str(uuid_utils.uuid7()), parameters.workflow, parameters.input, parameters.version)
