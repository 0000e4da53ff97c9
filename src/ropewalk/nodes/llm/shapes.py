"""Answers that have to fit a JSON Schema: what the model is told of it, whether one fits, and how one is mended."""

from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ropewalk.core.schema import validate
from ropewalk.nodes.failure import shortened
from ropewalk.nodes.llm.speech import Question, Reply, Turn

JSON: TypeAlias = Any

MOST_TOLD: Final = 5
VALUE: Final = "value"


def _is_object(schema: JSON) -> bool:
    return bool(schema.get("type") == "object")


def shape_of(schema: JSON) -> JSON:
    """The schema as services take one: of an object, in which anything else is the value."""
    return schema if _is_object(schema) else {"type": "object", "properties": {VALUE: schema}, "required": [VALUE]}


def fitting(reply: Reply, schema: JSON) -> tuple[JSON, list[str]]:
    """The answer as JSON, and what keeps it from fitting."""
    try:
        value = msgspec.json.decode(_unfenced(reply.text))
    except (msgspec.DecodeError, RecursionError):
        return None, ["it is no JSON"]
    if not _is_object(schema):
        if not isinstance(value, dict) or VALUE not in value:
            return None, [f"it has no field {VALUE!r}"]
        value = value[VALUE]
    return value, [shortened(str(problem), 200) for problem in validate(schema, value)[:MOST_TOLD]]


def _unfenced(text: str) -> str:
    """The text without the fence that some models put around JSON."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and "\n" in bare:
        bare = bare[bare.index("\n") + 1 : -3]
    return bare


def repaired(question: Question, reply: Reply, problems: list[str]) -> Question:
    """The question with the answer that does not fit, and the wish for another."""
    told = "; ".join(problems)
    wish = f"Your answer does not fit the JSON Schema: {told}. Answer again, with JSON that fits it and nothing else."
    return replace(question, turns=(*question.turns, Turn("assistant", reply.text or "(nothing)"), Turn("user", wish)))
