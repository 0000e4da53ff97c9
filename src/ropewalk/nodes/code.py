"""`code.python`: a few lines of Python in a sandbox, out of the worker's process."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from pydantic import Field, field_validator

from ropewalk.core.errors import Problem
from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.limits import MIB, as_bytes
from ropewalk.nodes.sandbox import LARGEST_MEMORY, MISSING, is_there, syntax_problem
from ropewalk.nodes.sandboxed import LONGEST, Code

JSON: TypeAlias = Any

LONGEST_CODE: Final = 64 * 1024
LARGEST_INPUTS: Final = 16 * MIB
SMALLEST_MEMORY: Final = 4 * MIB
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class CodeLimits(Inputs):
    """What the code may take at most."""

    seconds: float = Field(1.0, ge=0.01, le=LONGEST, description="How long it may run.", examples=[5])
    memory: str | int = Field(
        "64MiB", description="How much memory it may take, 4MiB to 256MiB; a text like 64MiB, or bytes.",
        examples=["128MiB"],
    )  # fmt: skip
    output: str | int = Field(
        "1MiB", description="How large its result may be, up to 16MiB.", examples=["4MiB"]
    )  # fmt: skip
    recursion: int = Field(200, ge=1, le=1_000, description="How deep its calls may be nested.", examples=[500])

    @field_validator("memory")
    @classmethod
    def _some_memory(cls, memory: str | int) -> int:
        return _between(as_bytes(memory), SMALLEST_MEMORY, LARGEST_MEMORY)

    @field_validator("output")
    @classmethod
    def _some_output(cls, output: str | int) -> int:
        return _between(as_bytes(output), 1, LARGEST_INPUTS)


def _between(size: int, least: int, most: int) -> int:
    if not least <= size <= most:
        raise ValueError(f"must be between {least} and {most} bytes")
    return size


class CodePython(NodeType):
    name = "code.python"
    summary = "Runs Python code in a sandbox: no files, no network, no environment; JSON in, JSON out."
    about = About(
        title="Python code",
        category="code",
        icon="code",
        keywords=("script", "code", "transform", "sandbox", "function", "compute"),
        output={"description": "The value of the last expression, or what a `return` gives."},
    )
    has_rules = True

    class Parameters(Inputs):
        code: str = Field(
            min_length=1,
            max_length=LONGEST_CODE,
            description=(
                "The code. Its result is what a `return` at the top gives, or else the value of the last line if that "
                "is an expression. What it prints goes to the log."
            ),
            examples=["total = sum(line['price'] for line in lines)\n{'total': total}"],
        )
        inputs: dict[str, JSON] = Field(
            {},
            description="Values by name; each is a variable of the code.",
            examples=[{"lines": "{{ input.lines }}"}],
        )
        limits: CodeLimits | None = Field(
            None,
            description="What the code may take at most.",
            examples=[{"seconds": 5, "memory": "128MiB"}],
        )

        @field_validator("inputs")
        @classmethod
        def _names(cls, inputs: dict[str, JSON]) -> dict[str, JSON]:
            for name in inputs:
                if not _NAME.fullmatch(name):
                    raise ValueError(f"{name[:64]!r} is no name for a variable")
            return inputs

    def problems_in(self, constant: Mapping[str, Any]) -> Sequence[Problem]:
        if not is_there():
            return [Problem((), MISSING)]
        code = constant.get("code")
        problem = syntax_problem(code) if isinstance(code, str) else None
        return [] if problem is None else [Problem(("code",), problem)]

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        size = len(msgspec.json.encode(parameters.inputs))
        if size > LARGEST_INPUTS:
            raise NodeFailure.permanent(f"with.inputs: are larger than {LARGEST_INPUTS // MIB} MiB")
        ran = await context.run_code(_code_of(parameters, context), size)
        if ran.printed:
            context.log("the code printed", printed=ran.printed)
        return Output(ran.value)


def _code_of(parameters: CodePython.Parameters, context: NodeContext) -> Code:
    limits = parameters.limits or CodeLimits.model_validate({})
    return Code(
        parameters.code, parameters.inputs, limits.seconds, as_bytes(limits.memory), limits.recursion,
        as_bytes(limits.output), context.now, context.idempotency_key,
    )  # fmt: skip
