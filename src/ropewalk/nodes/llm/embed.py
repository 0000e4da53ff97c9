"""`llm.embed`: texts as vectors, by the API of OpenAI or of those who speak like it."""

from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias

from msgspec.structs import replace
from pydantic import Field, field_validator, model_validator

from ropewalk.core.duration import HOUR, SECOND, parse_duration
from ropewalk.nodes.base import About, Facilities, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.llm.protocols import count_of, usage_of
from ropewalk.nodes.llm.service import ask
from ropewalk.nodes.llm.speech import Reply
from ropewalk.nodes.llm.usage import Price, Used, count

JSON: TypeAlias = Any

MOST_TEXTS: Final = 10_000
LONGEST_TEXT: Final = 100_000
LONGEST_TOGETHER: Final = 8_000_000
LONGEST_VECTOR: Final = 16_384


class LlmEmbed(NodeType):
    name = "llm.embed"
    summary = "Gives texts as vectors, in their order, by an embedding model."
    about = About(
        title="Embed texts",
        category="reach",
        icon="sparkles",
        keywords=("ai", "vector", "embedding", "similarity", "search", "openai", "rag"),
        output={
            "type": "object",
            "properties": {
                "vectors": {"type": "array", "description": "One vector for each text, in the same order."},
                "model": {"type": "string", "description": "The model."},
                "tokens": {"type": "integer", "description": "How many tokens were used."},
                "cost": {"type": ["number", "null"], "description": "By `price`; null without one."},
            },
        },
    )
    credentials = MappingProxyType({"": ("openai",)})
    has_rules = True

    class Parameters(Inputs):
        model: str = Field(min_length=1, max_length=200, description="The model.", examples=["text-embedding-3-small"])
        texts: list[str] = Field(
            min_length=1, max_length=MOST_TEXTS, description="The texts.", examples=[["a cup", "a plate"]]
        )
        batch: int = Field(100, ge=1, le=2_048, description="How many texts go with one call.", examples=[500])
        dimensions: int | None = Field(
            None, ge=1, le=LONGEST_VECTOR, description="How long a vector is, if the model lets one choose.",
            examples=[256],
        )  # fmt: skip
        price: Price | None = Field(
            None, description="What a million tokens cost.", examples=[{"input": 0.5, "output": 0}]
        )
        timeout: float | str = Field(
            120.0, description="For each call: like 30s, or a number of seconds.", examples=["60s"]
        )

        @field_validator("timeout", mode="before")
        @classmethod
        def _sensible(cls, timeout: JSON) -> JSON:
            parse_duration(timeout, SECOND, HOUR)
            return timeout

        @model_validator(mode="after")
        def _bounded(self) -> Self:
            if any(not text or len(text) > LONGEST_TEXT for text in self.texts):
                raise ValueError(f"texts must have from 1 to {LONGEST_TEXT:,} characters each")
            if sum(map(len, self.texts)) > LONGEST_TOGETHER:
                raise ValueError(f"the texts have more than {LONGEST_TOGETHER:,} characters together")
            return self

    def target(self, parameters: Parameters) -> str | None:
        return f"{self.name} {parameters.model}"

    def prepare(self, facilities: Facilities) -> None:
        _ = facilities.http

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        credential = await context.credential("", "openai")
        if credential is None:
            raise NodeFailure.permanent("credentials: name a credential of type openai")
        used, vectors = Used(), []
        try:
            for first in range(0, len(parameters.texts), parameters.batch):
                some = parameters.texts[first : first + parameters.batch]
                vectors += await _embedded(some, parameters, context, credential, used)
        except NodeFailure as failure:
            raise NodeFailure(replace(failure.error, tokens=used.tokens or None)) from failure
        finally:
            await count(context, used)
        told = {"vectors": vectors, "model": parameters.model, "tokens": used.tokens, "cost": used.cost}
        return Output(told, tokens=used.tokens)


async def _embedded(texts: list[str], parameters: LlmEmbed.Parameters, context: NodeContext, credential: Credential,
                    used: Used) -> list[JSON]:  # fmt: skip
    chosen = {} if parameters.dimensions is None else {"dimensions": parameters.dimensions}
    body = {"model": parameters.model, "input": texts, "encoding_format": "float", **chosen}
    seconds = parse_duration(parameters.timeout) / SECOND
    answer = await ask(context, credential, "/embeddings", body, seconds)
    tokens = count_of(usage_of(answer).get("total_tokens"))
    used.add(Reply("", parameters.model, None, tokens, 0), parameters.price)
    return _in_order(answer.get("data"), len(texts))


def _in_order(data: JSON, wanted: int) -> list[JSON]:
    """The vectors by the places that the service tells; a permanent failure if one is missing or is none."""
    found: dict[int, JSON] = {}
    for place, each in enumerate(data if isinstance(data, list) else ()):
        if isinstance(each, dict) and _is_vector(each.get("embedding")):
            told = each.get("index")
            found[told if type(told) is int else place] = each["embedding"]
    if sorted(found) != list(range(wanted)):
        raise NodeFailure.permanent("the service answered what are no vectors of these texts")
    return [found[place] for place in range(wanted)]


def _is_vector(value: JSON) -> bool:
    return (
        isinstance(value, list)
        and 0 < len(value) <= LONGEST_VECTOR
        and all(type(number) in (int, float) for number in value)
    )
