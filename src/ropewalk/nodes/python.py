"""The node that calls a registered Python function by name."""

from typing import Any, Literal

from pydantic import Field, model_validator

from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output, Placement
from ropewalk.nodes.functions import Function, isolated
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.limits import Limits, as_limits


class ProcessLimits(Inputs):
    """What the function's process may take at most."""

    memory: str | int | None = Field(
        None,
        description="Address space that the function may take, like 256MiB, or a number of bytes; at least 16MiB.",
        examples=["256MiB"],
    )
    cpu_seconds: int | None = Field(None, description="Seconds of a processor in one call.", examples=[10])
    files: int | None = Field(None, description="Open files; at least 16.", examples=[64])

    @model_validator(mode="after")
    def _known(self) -> "ProcessLimits":
        self.as_limits()
        return self

    def as_limits(self) -> Limits:
        """The same as a process takes them."""
        return as_limits(self.model_dump(by_alias=True)) or Limits()


class Python(NodeType):
    name = "python"
    summary = "Calls a registered Python function with keyword arguments."
    about = About(
        title="Python function",
        category="code",
        icon="code",
        keywords=("function", "code", "script", "call"),
        output={"description": "What the function returns."},
        ports={"<port>": "The function returned an Output that names this port."},
    )
    # Only the function knows.
    ports = None
    # The function decides; most block.
    placement = Placement.THREAD
    has_rules = True

    class Parameters(Inputs):
        function: str = Field(
            min_length=1, max_length=256, description="The name it was registered under.", examples=["price"]
        )
        args: dict[str, Any] = Field({}, description="Its keyword arguments.", examples=[{"sku": "{{ input.sku }}"}])
        placement: Literal["process"] | None = Field(
            None,
            description="`process` calls it in a process of its own, wherever it was registered to be.",
            examples=["process"],
        )
        limits: ProcessLimits | None = Field(
            None,
            description="What that process may take; a run that dies of it twice becomes a dead letter.",
            examples=[{"memory": "256MiB", "cpuSeconds": 10, "files": 64}],
        )

        @model_validator(mode="after")
        def _limits_need_a_process(self) -> "Python.Parameters":
            if self.limits is not None and self.placement is None:
                raise ValueError("limits need `placement: process`")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        function = context.facilities.functions.get(parameters.function)
        if parameters.placement is not None:
            function = _isolated(function, parameters.limits)
        return as_output(await context.carry_out(function, parameters.args))


def _isolated(function: Function, limits: ProcessLimits | None) -> Function:
    try:
        return isolated(function, None if limits is None else limits.as_limits())
    except ValueError as error:
        raise NodeFailure.permanent(f"with.placement: {error}") from None


def as_output(value: Any) -> Output:
    """What a function returned, as an output; one that chose its ports did so itself."""
    return value if isinstance(value, Output) else Output(value)
