"""What node types derive their parameters from, and how inputs become these."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from ropewalk.core.errors import Problem
from ropewalk.nodes.failure import NodeFailure, describe, reason


class Inputs(BaseModel):
    """What parameters derive from: camelCase in documents, unknown fields refused, values never shown in errors."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        hide_input_in_errors=True,
        allow_inf_nan=False,
        # A worker imports whole families of types, and uses a few of them.
        defer_build=True,
    )


class _NoParameters(Inputs):
    pass


def refused(kind: type[BaseModel] | None, inputs: Mapping[str, Any]) -> list[Problem]:
    """Every field that does not fit and why, without the values."""
    try:
        (kind or _NoParameters).model_validate(inputs)
    except ValidationError as refusal:
        return [Problem(error["loc"], reason(error)) for error in refusal.errors(include_url=False)]
    return []


def accepted(kind: type[BaseModel] | None, inputs: Mapping[str, Any]) -> BaseModel:
    """The parameters made of inputs; a permanent failure names every field that does not fit."""
    try:
        return (kind or _NoParameters).model_validate(inputs)
    except ValidationError as refusal:
        raise NodeFailure.permanent(describe(refusal, "with")) from None
