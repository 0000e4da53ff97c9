"""`json`: values to text and back."""

from collections.abc import AsyncIterator
from typing import Any, Literal, Self, TypeAlias

import msgspec
from pydantic import Field, model_validator

from ropewalk.core.measured import TooLarge, measured
from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.files import KEY, LONGEST_NAME, as_value
from ropewalk.nodes.folder import on_a_thread
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.streams import given_file, text_of_file

JSON: TypeAlias = Any

LONGEST_TEXT = 16 * 1024 * 1024
"""A longer one would be held by one call of a parser for too long."""
BRIEF_TEXT = 4_096


class Json(NodeType):
    name = "json"
    summary = "Reads a value from JSON text or a file, or writes a value as JSON text or a file; also JSON Lines."
    about = About(
        title="JSON",
        category="data",
        icon="braces",
        keywords=("parse", "stringify", "encode", "decode", "jsonl", "ndjson", "text"),
        output={"description": "The value that was read; with `do: write` the text, or the file."},
    )
    only_shapes = True
    has_rules = True

    class Parameters(Inputs):
        do: Literal["parse", "write"] = Field("parse", description="Whether to read or to write.", examples=["write"])
        value: JSON = Field(
            description="The text or file to read, or the value to write.", examples=['{"total": 12.5}']
        )
        lines: bool = Field(False, description="Whether each line is a value: a list of values.", examples=[True])
        indent: int = Field(0, ge=0, le=8, description="By how many spaces written text is indented.", examples=[2])
        sort_keys: bool = Field(False, description="Whether written keys are in order.", examples=[True])
        as_: Literal["text", "file"] = Field(
            "text", alias="as", description="What is written: a `text`, or a `file`.", examples=["file"]
        )
        file_name: str | None = Field(
            None, max_length=LONGEST_NAME, examples=["orders.json"],
            description="What a written file is called; `value.json` or `values.jsonl` by default.",
        )  # fmt: skip

        @model_validator(mode="after")
        def _fits(self) -> Self:
            if self.do == "parse" and not (isinstance(self.value, str) or is_file(self.value)):
                raise ValueError("value must be the text or file to read; to write a value say do: write")
            if self.do == "parse" and (self.as_ == "file" or self.file_name is not None):
                raise ValueError("as and fileName go with do: write")
            if self.do == "write" and self.lines and not isinstance(self.value, list):
                raise ValueError("lines writes a list: one line for each of its values")
            if self.lines and self.indent:
                raise ValueError("lines are not indented: give one of lines and indent")
            return self

    def waits(self, parameters: Parameters) -> bool:
        return parameters.as_ == "file" or (parameters.do == "parse" and is_file(parameters.value))

    def takes_long(self, parameters: Parameters) -> bool:
        return not isinstance(parameters.value, str) or len(parameters.value) > BRIEF_TEXT

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        if parameters.as_ == "file":
            return Output(await _kept(parameters, context))
        if parameters.do == "write":
            return Output(_written(parameters))
        if not is_file(parameters.value):
            return Output(_read(within(parameters.value, "with.value"), parameters.lines))
        file = given_file(parameters.value, "with.value")
        text = await text_of_file(context, file, "with.value", LONGEST_TEXT)
        return Output(await on_a_thread(_read, text, parameters.lines))


def is_file(value: JSON) -> bool:
    """Whether a value is meant as a file."""
    return isinstance(value, dict) and KEY in value


async def _kept(how: Json.Parameters, context: NodeContext) -> JSON:
    """The file that the value is written to."""

    async def content() -> AsyncIterator[bytes]:
        yield (await on_a_thread(_written, how)).encode()

    default, kind = ("values.jsonl", "application/x-ndjson") if how.lines else ("value.json", "application/json")
    return as_value(await context.files.write(content(), how.file_name or default, kind))


def _read(text: str, has_lines: bool) -> JSON:
    if not has_lines:
        return _parsed(text, "")
    rows = ((at, line) for at, line in enumerate(text.splitlines(), start=1) if line.strip())
    return [_parsed(line, f"line {at}: ") for at, line in rows]


def within(text: str, place: str, longest: int = LONGEST_TEXT) -> str:
    """The text, if it is not too long to be parsed."""
    if len(text) > longest:
        raise NodeFailure.permanent(f"{place}: is longer than {longest // 1024:,} Ki characters; read it in parts")
    return text


def _parsed(text: str, place: str) -> JSON:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise NodeFailure.permanent(f"with.value: {place}is no JSON: {error}") from None
    except RecursionError:
        raise NodeFailure.permanent(f"with.value: {place}is nested too deeply") from None


def _written(how: Json.Parameters) -> str:
    try:
        if how.lines:
            return "".join(f"{_measured(each, how)}\n" for each in how.value)
        text = _measured(how.value, how)
    except TooLarge:
        raise NodeFailure.permanent(f"with.value: is longer than {LONGEST_TEXT // 2**20} MiB as JSON") from None
    return msgspec.json.format(text, indent=how.indent) if how.indent else text


def _measured(value: JSON, how: Json.Parameters) -> str:
    return measured(value, LONGEST_TEXT, is_sorted=how.sort_keys).decode()
