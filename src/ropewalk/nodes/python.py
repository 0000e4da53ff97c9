"""The node that calls a registered Python function by name."""

from typing import Any

from pydantic import Field

from ropewalk.nodes.base import About, NodeContext, NodeType, Output, Placement
from ropewalk.nodes.inputs import Inputs


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

    class Parameters(Inputs):
        function: str = Field(
            min_length=1, max_length=256, description="The name it was registered under.", examples=["price"]
        )
        args: dict[str, Any] = Field({}, description="Its keyword arguments.", examples=[{"sku": "{{ input.sku }}"}])

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        function = context.facilities.functions.get(parameters.function)
        return as_output(await context.facilities.carry_out(function, parameters.args))


def as_output(value: Any) -> Output:
    """What a function returned, as an output; one that chose its ports did so itself."""
    return value if isinstance(value, Output) else Output(value)
