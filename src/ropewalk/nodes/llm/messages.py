"""Messages and tools, as the parameters of a node say them."""

from typing import Any, Final, Literal, TypeAlias

import msgspec
from pydantic import Field

from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.llm.images import MOST_IMAGES
from ropewalk.nodes.llm.speech import ToolCall

JSON: TypeAlias = Any

LONGEST_TEXT: Final = 1_000_000


class Call(Inputs):
    """A call of a tool that the model asked for."""

    id: str = Field(min_length=1, max_length=200, description="Its id.", examples=["call_1"])
    name: str = Field(min_length=1, max_length=64, description="The tool.", examples=["find_order"])
    input: JSON = Field(None, description="What the tool is given.", examples=[{"orderId": "A-7"}])


class Message(Inputs):
    """A message of the conversation so far."""

    role: Literal["user", "assistant", "tool"] = Field(description="The speaker.", examples=["user"])
    content: str = Field("", max_length=LONGEST_TEXT, description="What was said.", examples=["Hello"])
    images: list[JSON] = Field([], max_length=MOST_IMAGES, description="Pictures: addresses or files.", examples=[[]])
    tool_calls: list[Call] = Field([], max_length=100, description="What the model asked for.", examples=[[]])
    tool_call_id: str | None = Field(
        None, max_length=200, description="Of role tool: the call that this is the result of.", examples=["call_1"]
    )

    def calls(self) -> tuple[ToolCall, ...]:
        """What the model asked for in this message."""
        return tuple(ToolCall(each.id, each.name, each.input) for each in self.tool_calls)


class ToolOffer(Inputs):
    """A tool that the model may ask for; the workflow carries it out."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Its name.", examples=["find_order"])
    description: str = Field("", max_length=4_000, description="What it does.", examples=["Finds an order by its id."])
    parameters: dict[str, JSON] = Field(
        {"type": "object"}, description="The JSON Schema of its input, an object.", examples=[{"type": "object"}]
    )


def result_of(call: Call, result: JSON) -> Message:
    """What a tool gave, as a message."""
    text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
    return Message.model_validate({"role": "tool", "content": text, "toolCallId": call.id})
