"""A conversation with a model, in words that no protocol owns."""

from typing import Any, TypeAlias

from msgspec import Struct

JSON: TypeAlias = Any


class Image(Struct, frozen=True):
    """A picture by its address, or by its content in base64."""

    url: str | None = None
    type: str = ""
    data: str = ""


class ToolCall(Struct, frozen=True):
    """What the model wants to have done: the name of a tool, and its input."""

    id: str
    name: str
    input: JSON = None


class Turn(Struct, frozen=True):
    """One message. `answers` is the id of the call whose result the text is."""

    role: str
    text: str
    images: tuple[Image, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    answers: str | None = None


class Tool(Struct, frozen=True):
    """Something the model may ask for."""

    name: str
    description: str
    schema: JSON


class Question(Struct, frozen=True):
    """All that a model is told."""

    model: str
    system: str | None
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    schema: JSON = None
    temperature: float | None = None
    most_tokens: int | None = None
    options: dict[str, JSON] = {}


class Reply(Struct, frozen=True):
    """What a model said; `text` is JSON where a schema was asked for."""

    text: str
    model: str
    stop: str | None
    tokens_in: int
    tokens_out: int
    calls: tuple[ToolCall, ...] = ()
