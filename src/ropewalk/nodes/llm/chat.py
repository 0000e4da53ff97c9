"""`llm.chat`: asks a language model, by the API of OpenAI or of Anthropic."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias

import msgspec
from msgspec.structs import replace
from pydantic import Field, field_validator, model_validator

from ropewalk.core.duration import HOUR, SECOND, parse_duration
from ropewalk.core.errors import ErrorType
from ropewalk.core.schema import check_schema
from ropewalk.core.waits import Wait
from ropewalk.nodes.base import About, Facilities, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.llm.images import MOST_IMAGES, images_of
from ropewalk.nodes.llm.messages import LONGEST_TEXT, Message, ToolOffer, result_of
from ropewalk.nodes.llm.protocols import PATHS, reply_of, request_of
from ropewalk.nodes.llm.service import TYPES, ask, credential_of
from ropewalk.nodes.llm.shapes import fitting, repaired, shape_of
from ropewalk.nodes.llm.speech import Question, Reply, Tool, Turn
from ropewalk.nodes.llm.usage import Budget, Price, Used, count, held

JSON: TypeAlias = Any

MOST_MESSAGES: Final = 500
LONGEST_TALK: Final = 4_000_000
"""How many characters all messages may have together."""
PASSING: Final = (ErrorType.TRANSIENT, ErrorType.TIMEOUT)
TOKENS: Final = {
    "type": "object",
    "description": "How many tokens were used, repairs included.",
    "properties": {
        "input": {"type": "integer", "description": "Those that the model read."},
        "output": {"type": "integer", "description": "Those that it wrote."},
    },
}


class LlmChat(NodeType):
    name = "llm.chat"
    summary = "Asks a language model; hands on its answer as text, or as JSON that fits a schema."
    about = About(
        title="Ask a language model",
        category="reach",
        icon="sparkles",
        keywords=("ai", "gpt", "openai", "anthropic", "claude", "prompt", "chat", "agent", "extract", "classify"),
        output={
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What the model said."},
                "value": {"description": "With `schema`: the answer as JSON."},
                "model": {"type": "string", "description": "The model that answered."},
                "stop": {"type": ["string", "null"], "description": "Why it stopped, in the service's word."},
                "tokens": TOKENS,
                "cost": {"type": ["number", "null"], "description": "By `prices`; null if one is not known."},
                "toolCalls": {"type": "array", "description": "With `tools`: what the model wants to have done."},
                "messages": {"type": "array", "description": "With `tools`: the conversation, for the next question."},
            },
        },
        ports={"answer": "The model has answered.", "tools": "The model asks for tools first: see `toolCalls`."},
    )
    ports = ("answer", "tools")
    takes_one_port = True
    has_rules = True
    credentials = MappingProxyType({"": TYPES, "fallback": TYPES})

    class Parameters(Inputs):
        model: str = Field(min_length=1, max_length=200, description="The model.", examples=["gpt-4o-mini"])
        system: str | None = Field(
            None, max_length=LONGEST_TEXT, description="What the model is told beforehand.", examples=["Be brief."]
        )
        user: str | None = Field(
            None, max_length=LONGEST_TEXT, description="The question.", examples=["Summarize: {{ input.text }}"]
        )
        images: list[JSON] = Field(
            [], max_length=MOST_IMAGES, description="Pictures that go with the question: addresses or files.",
            examples=[["https://shop.example/cup.png"]],
        )  # fmt: skip
        messages: list[Message] = Field(
            [], max_length=MOST_MESSAGES, description="The conversation so far; the question comes after it.",
            examples=[[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]],
        )  # fmt: skip
        output_schema: dict[str, JSON] | None = Field(
            None, alias="schema", description="The JSON Schema that the answer must fit; the model may mend one once.",
            examples=[{"type": "object", "properties": {"label": {"enum": ["bug", "wish"]}}, "required": ["label"]}],
        )  # fmt: skip
        tools: list[ToolOffer] = Field(
            [], max_length=100, description="What the model may ask for; see docs/llm.md.",
            examples=[[{"name": "find_order", "description": "Finds an order by its id."}]],
        )  # fmt: skip
        tool_results: list[JSON] = Field(
            [], max_length=100, description="What the tools gave that the last of `messages` asks for, in its order.",
            examples=["{{ nodes.call.output }}"],
        )  # fmt: skip
        temperature: float | None = Field(None, ge=0, le=2, description="How freely it speaks.", examples=[0])
        max_tokens: int | None = Field(None, ge=1, le=1_000_000, description="How much it may say.", examples=[500])
        fallback: list[str] = Field(
            [], max_length=5, description="Models that are asked in turn if one is overloaded or does not answer.",
            examples=[["gpt-4o"]],
        )  # fmt: skip
        prices: dict[str, Price] = Field(
            {}, max_length=100, description="What a million tokens of each model cost.",
            examples=[{"gpt-4o-mini": {"input": 0.5, "output": 1.5}}],
        )  # fmt: skip
        budget: Budget | None = Field(
            None, description="What the models of one execution may use; then the execution is paused.",
            examples=[{"tokens": 100_000}],
        )  # fmt: skip
        timeout: float | str = Field(
            120.0, description="For each question: like 30s, or a number of seconds.", examples=["60s"]
        )
        options: dict[str, JSON] = Field(
            {}, max_length=50, description="Fields of the service's own that are sent as they are.",
            examples=[{"seed": 7}],
        )  # fmt: skip

        @field_validator("timeout", mode="before")
        @classmethod
        def _sensible(cls, timeout: JSON) -> JSON:
            parse_duration(timeout, SECOND, HOUR)
            return timeout

        @field_validator("output_schema")
        @classmethod
        def _a_schema(cls, schema: dict[str, JSON] | None) -> dict[str, JSON] | None:
            if schema is not None and (problems := check_schema(schema)):
                raise ValueError(f"is no schema: {problems[0]}")
            return schema

        @model_validator(mode="after")
        def _asks_something(self) -> Self:
            if self.user is None and not self.messages:
                raise ValueError("give user, messages or both")
            asked = len(self.messages[-1].tool_calls) if self.messages else 0
            if len(self.tool_results) != asked:
                raise ValueError(f"toolResults has {len(self.tool_results)} results, and {asked} were asked for last")
            if self.images and self.user is None:
                raise ValueError("images go with user only")
            if sum(len(each.content) for each in self.messages) + len(self.user or "") > LONGEST_TALK:
                raise ValueError(f"the messages have more than {LONGEST_TALK:,} characters together")
            if self.budget is not None and self.budget.cost is not None and (missing := self._unpriced()):
                raise ValueError(f"a budget of cost needs the price of {missing}")
            return self

        def conversation(self) -> list[Message]:
            """The messages so far, with the results of tools as the last of them."""
            calls = self.messages[-1].tool_calls if self.messages else []
            results = zip(calls, self.tool_results, strict=True)
            return [*self.messages, *[result_of(call, result) for call, result in results]]

        def _unpriced(self) -> str | None:
            return next((model for model in (self.model, *self.fallback) if model not in self.prices), None)

    def target(self, parameters: Parameters) -> str | None:
        return f"{self.name} {parameters.model}"

    def prepare(self, facilities: Facilities) -> None:
        _ = facilities.http

    async def run(self, parameters: Parameters, context: NodeContext) -> Output | Wait:
        if parameters.budget is not None and (wait := await held(context, parameters.budget)) is not None:
            return wait
        used = Used()
        question = await _question(parameters, context)
        try:
            return await self._answered(parameters, context, question, used)
        except NodeFailure as failure:
            raise NodeFailure(replace(failure.error, tokens=used.tokens or None)) from failure
        finally:
            await count(context, used)

    async def _answered(self, parameters: Parameters, context: NodeContext, question: Question, used: Used) -> Output:
        models = (parameters.model, *parameters.fallback)
        for place, model in enumerate(models):
            talk = Talk(parameters, context, replace(question, model=model), used, "" if place == 0 else "fallback")
            try:
                return await talk.output()
            except NodeFailure as failure:
                if failure.error.type not in PASSING or place == len(models) - 1:
                    raise
                context.log("another model is asked", model=models[place + 1], after=failure.error.message)
        raise AssertionError("the last model answers or fails")


async def _question(parameters: LlmChat.Parameters, context: NodeContext) -> Question:
    turns = [Turn(each.role, each.content, await images_of(each.images, context), each.calls(), each.tool_call_id)
             for each in parameters.conversation()]  # fmt: skip
    if parameters.user is not None:
        turns.append(Turn("user", parameters.user, await images_of(parameters.images, context)))
    tools = tuple(Tool(each.name, each.description, each.parameters) for each in parameters.tools)
    schema = None if parameters.output_schema is None else shape_of(parameters.output_schema)
    about = (parameters.temperature, parameters.max_tokens, parameters.options)
    return Question(parameters.model, parameters.system, tuple(turns), tools, schema, *about)


class Talk:
    """One model, asked until it has answered: once, or a second time if its answer does not fit the schema."""

    def __init__(self, parameters: LlmChat.Parameters, context: NodeContext, question: Question, used: Used,
                 slot: str) -> None:  # fmt: skip
        self._parameters = parameters
        self._context = context
        self._question = question
        self._used = used
        self._slot = slot

    async def output(self) -> Output:
        reply = await self._ask(self._question)
        if reply.calls and self._parameters.tools:
            return self._told(reply, None, "tools")
        schema = self._parameters.output_schema
        if schema is None:
            return self._told(reply, None, "answer")
        value, problems = fitting(reply, schema)
        if problems:
            reply = await self._ask(repaired(self._question, reply, problems))
            value, problems = fitting(reply, schema)
        if problems:
            told = "; ".join(problems)
            raise NodeFailure.permanent(f"the answer of {self._question.model} does not fit the schema: {told}")
        return self._told(reply, value, "answer")

    async def _ask(self, question: Question) -> Reply:
        credential = await self._credential()
        seconds = parse_duration(self._parameters.timeout) / SECOND
        body = request_of(credential.type, question)
        reply = reply_of(credential.type, await ask(self._context, credential, PATHS[credential.type], body, seconds))
        self._used.add(reply, self._parameters.prices.get(question.model))
        return reply

    async def _credential(self) -> Any:
        """The credential of the fallback for its models, if the node names one; else the node's only one."""
        if self._slot and (other := await self._context.credential(self._slot, *TYPES)) is not None:
            return other
        return await credential_of(self._context)

    def _told(self, reply: Reply, value: JSON, port: str) -> Output:
        used, parameters = self._used, self._parameters
        told: dict[str, JSON] = {
            "text": reply.text,
            "model": reply.model or self._question.model,
            "stop": reply.stop,
            "tokens": {"input": used.tokens_in, "output": used.tokens_out},
            "cost": used.cost,
        }
        if parameters.output_schema is not None:
            told["value"] = value
        if parameters.tools:
            told["toolCalls"] = [msgspec.to_builtins(call) for call in reply.calls]
            told["messages"] = list(_history(parameters, reply))
        return Output(told, (port,), used.tokens)


def _history(parameters: LlmChat.Parameters, reply: Reply) -> Iterator[JSON]:
    """The conversation with the reply, as `messages` of the next question takes it."""
    for each in parameters.conversation():
        yield each.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if parameters.user is not None:
        pictures = {"images": parameters.images} if parameters.images else {}
        yield {"role": "user", "content": parameters.user, **pictures}
    calls = {"toolCalls": [msgspec.to_builtins(call) for call in reply.calls]} if reply.calls else {}
    yield {"role": "assistant", "content": reply.text, **calls}
