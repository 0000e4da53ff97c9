"""`workflow.start`, `event.emit`, `execution.signal`, `execution.cancel`: nodes that speak to other executions."""

from types import MappingProxyType
from typing import Any, TypeAlias

from pydantic import Field

from ropewalk.core.reach import Reached, refusal
from ropewalk.core.subject import LONGEST_NAME
from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.speaking import Executions, Speaker

JSON: TypeAlias = Any

HIGHEST_PRIORITY = 9
EXECUTION = {"type": "string", "description": "The id of the execution."}


def executions_of(context: NodeContext) -> Executions:
    """What the node speaks to; a permanent failure where no store is."""
    if context.facilities.executions is None:
        raise NodeFailure.permanent(
            "executions cannot be reached where this node runs: run it on a worker of the store"
        )
    return context.facilities.executions


def speaker_of(context: NodeContext) -> Speaker:
    """The run of this context."""
    return Speaker(context.workspace, context.execution, context.idempotency_key, context.bounded_by)


class WorkflowStart(NodeType):
    name = "workflow.start"
    summary = "Starts another workflow without waiting for it; hands on the id of the execution."
    about = About(
        title="Start a workflow",
        category="control",
        icon="play",
        keywords=("execute", "trigger", "fire and forget", "asynchronous", "background", "sub-workflow"),
        output={"type": "object", "properties": {"execution": EXECUTION}},
    )
    reaches = MappingProxyType({"workflow": Reached.WORKFLOW})

    class Parameters(Inputs):
        workflow: str = Field(
            min_length=1, max_length=256, description="Name or id of the workflow.", examples=["send-receipt"]
        )
        version: int | None = Field(
            None, ge=1, description="Its version; by default the one that is published.", examples=[3]
        )
        input: JSON = Field(
            None, description="The input of the execution.", examples=[{"orderId": "{{ input.orderId }}"}]
        )
        priority: int = Field(
            5, ge=0, le=HIGHEST_PRIORITY, description="What waits for a slot starts the sooner, the higher this is.",
            examples=[7],
        )  # fmt: skip

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        about = (parameters.workflow, parameters.input, parameters.version, parameters.priority)
        started = await executions_of(context).start(speaker_of(context), *about)
        return Output({"execution": started})


class EventEmit(NodeType):
    name = "event.emit"
    summary = "Publishes an event; every execution of the workspace that waits for it goes on."
    about = About(
        title="Emit an event",
        category="control",
        icon="radio",
        keywords=("publish", "event", "message", "notify", "subject", "broadcast"),
        output={
            "type": "object",
            "properties": {
                "subject": {"type": "string", "description": "The subject of the event."},
                "told": {"type": "integer", "description": "How many waits it ended."},
            },
        },
    )
    reaches = MappingProxyType({"subject": Reached.EVENTS})

    class Parameters(Inputs):
        subject: str = Field(
            min_length=1, max_length=LONGEST_NAME, description="Words with dots between them.",
            pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$", examples=["order.paid"],
        )  # fmt: skip
        payload: JSON = Field(None, description="What the event says.", examples=[{"orderId": "{{ input.orderId }}"}])

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        if bounded_by := context.bounded_by:
            raise NodeFailure.permanent(refusal(f"the event {parameters.subject!r}", bounded_by))
        speaker = speaker_of(context)
        told = await executions_of(context).emit(speaker, parameters.subject, parameters.payload)
        return Output({"subject": parameters.subject, "told": told})


class OfExecution(Inputs):
    """Which execution."""

    execution: str = Field(
        min_length=1, max_length=64, description="The id of an execution of the same workspace.",
        examples=["{{ nodes.started.output.execution }}"],
    )  # fmt: skip


class ExecutionSignal(NodeType):
    name = "execution.signal"
    summary = "Tells another execution something by name; the execution keeps it until a node of its own waits for it."
    about = About(
        title="Signal an execution",
        category="control",
        icon="send",
        keywords=("signal", "tell", "message", "callback", "wait", "resume"),
        output={"type": "object", "properties": {"execution": EXECUTION}},
        ports={"told": "The execution has the signal.", "over": "It has ended, or keeps too many signals already."},
    )
    ports = ("told", "over")
    takes_one_port = True
    reaches = MappingProxyType({"execution": Reached.EXECUTION})

    class Parameters(OfExecution):
        signal: str = Field(
            min_length=1, max_length=LONGEST_NAME, description="The name of the signal.", examples=["go"]
        )
        payload: JSON = Field(None, description="What is told along with it.", examples=[{"by": "Ada"}])

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        about = (parameters.execution, parameters.signal, parameters.payload)
        is_told = await executions_of(context).signal(speaker_of(context), *about)
        return Output({"execution": parameters.execution}, ("told" if is_told else "over",))


class ExecutionCancel(NodeType):
    name = "execution.cancel"
    summary = "Cancels another execution: what it runs is stopped, and nothing more of it starts."
    about = About(
        title="Cancel an execution",
        category="control",
        icon="square",
        keywords=("stop", "abort", "kill", "end", "terminate"),
        output={"type": "object", "properties": {"execution": EXECUTION}},
        ports={
            "cancelled": "The execution ends as cancelled, or has done so before.",
            "over": "It has ended in another way; nothing was changed.",
        },
    )
    ports = ("cancelled", "over")
    takes_one_port = True
    reaches = MappingProxyType({"execution": Reached.EXECUTION})

    class Parameters(OfExecution):
        reason: str | None = Field(
            None, max_length=1_000, description="Why, for those who read the log.", examples=["the order was withdrawn"]
        )

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        about = (parameters.execution, parameters.reason)
        is_cancelled = await executions_of(context).cancel(speaker_of(context), *about)
        return Output({"execution": parameters.execution}, ("cancelled" if is_cancelled else "over",))
