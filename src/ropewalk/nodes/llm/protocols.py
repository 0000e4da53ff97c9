"""The two protocols: a question as each wants it, and a reply as each gives it."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final, TypeAlias

import msgspec

from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.llm.speech import Image, Question, Reply, ToolCall, Turn

JSON: TypeAlias = Any

ANSWER: Final = "answer"
"""The tool by which a model gives an answer in a shape."""
DEFAULT_MOST_TOKENS: Final = 4_096
"""How much a model may say that wants to be told."""
PATHS: Final = {"openai": "/chat/completions", "anthropic": "/v1/messages"}
LARGEST_COUNT: Final = 10**12


def request_of(protocol: str, question: Question) -> dict[str, JSON]:
    """The body of the call."""
    return (_to_anthropic if protocol == "anthropic" else _to_openai)(question) | question.options


def reply_of(protocol: str, answer: dict[str, JSON]) -> Reply:
    """What the model said; a permanent failure if the answer is none of this protocol."""
    try:
        return (_from_anthropic if protocol == "anthropic" else _from_openai)(answer)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise NodeFailure.permanent(f"the service answered what is no reply of a model ({protocol})") from None


# OpenAI, and those who speak like it


def _to_openai(question: Question) -> dict[str, JSON]:
    system = [] if question.system is None else [{"role": "system", "content": question.system}]
    body: dict[str, JSON] = {"model": question.model, "messages": [*system, *map(_openai_turn, question.turns)]}
    if question.temperature is not None:
        body["temperature"] = question.temperature
    if question.most_tokens is not None:
        body["max_tokens"] = question.most_tokens
    if question.schema is not None:
        shape = {"name": ANSWER, "schema": question.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    if question.tools:
        body["tools"] = [
            {"type": "function",
             "function": {"name": each.name, "description": each.description, "parameters": each.schema}}
            for each in question.tools
        ]  # fmt: skip
    return body


def _openai_turn(turn: Turn) -> dict[str, JSON]:
    if turn.answers is not None:
        return {"role": "tool", "tool_call_id": turn.answers, "content": turn.text}
    if turn.calls:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _written(call.input)}}
            for call in turn.calls
        ]
        return {"role": turn.role, "content": turn.text or None, "tool_calls": calls}
    if not turn.images:
        return {"role": turn.role, "content": turn.text}
    pictures = [{"type": "image_url", "image_url": {"url": _address(each)}} for each in turn.images]
    return {"role": turn.role, "content": [{"type": "text", "text": turn.text}, *pictures]}


def _address(image: Image) -> str:
    return image.url if image.url is not None else f"data:{image.type};base64,{image.data}"


def _from_openai(answer: dict[str, JSON]) -> Reply:
    choice = answer["choices"][0]
    message, usage = choice["message"], usage_of(answer)
    calls = tuple(
        ToolCall(str(each["id"]), str(each["function"]["name"]), _read(each["function"].get("arguments") or "{}"))
        for each in message.get("tool_calls") or ()
    )
    text = message.get("content") or message.get("refusal") or ""
    if not isinstance(text, str):
        raise TypeError("content")
    counts = (count_of(usage.get("prompt_tokens")), count_of(usage.get("completion_tokens")))
    return Reply(text, str(answer.get("model", "")), choice.get("finish_reason"), *counts, calls)


# Anthropic


def _to_anthropic(question: Question) -> dict[str, JSON]:
    body: dict[str, JSON] = {
        "model": question.model,
        "max_tokens": question.most_tokens or DEFAULT_MOST_TOKENS,
        "messages": [*_anthropic_turns(question.turns)],
    }
    if question.system is not None:
        body["system"] = question.system
    if question.temperature is not None:
        body["temperature"] = question.temperature
    tools = [
        {"name": each.name, "description": each.description, "input_schema": each.schema} for each in question.tools
    ]
    if question.schema is not None:
        tools.append({"name": ANSWER, "description": "Gives the answer.", "input_schema": question.schema})
        body["tool_choice"] = {"type": "any"} if question.tools else {"type": "tool", "name": ANSWER}
    if tools:
        body["tools"] = tools
    return body


def _anthropic_turns(turns: tuple[Turn, ...]) -> Iterator[dict[str, JSON]]:
    """The messages; the results of tools that were asked for together are one."""
    for is_result, some in groupby(turns, lambda turn: turn.answers is not None):
        if is_result:
            results = [{"type": "tool_result", "tool_use_id": each.answers, "content": each.text} for each in some]
            yield {"role": "user", "content": results}
        else:
            yield from map(_anthropic_turn, some)


def _anthropic_turn(turn: Turn) -> dict[str, JSON]:
    parts: list[JSON] = [{"type": "image", "source": _source(each)} for each in turn.images]
    if turn.text:
        parts.append({"type": "text", "text": turn.text})
    parts += [{"type": "tool_use", "id": each.id, "name": each.name, "input": each.input} for each in turn.calls]
    return {"role": turn.role, "content": parts}


def _source(image: Image) -> dict[str, JSON]:
    if image.url is not None:
        return {"type": "url", "url": image.url}
    return {"type": "base64", "media_type": image.type, "data": image.data}


def _from_anthropic(answer: dict[str, JSON]) -> Reply:
    parts, usage = answer["content"], usage_of(answer)
    text = "".join(str(each["text"]) for each in parts if each["type"] == "text")
    calls = [
        ToolCall(str(each["id"]), str(each["name"]), each["input"]) for each in parts if each["type"] == "tool_use"
    ]
    shaped = next((call for call in calls if call.name == ANSWER), None)
    if shaped is not None:
        text, calls = _written(shaped.input), [call for call in calls if call is not shaped]
    counts = (count_of(usage.get("input_tokens")), count_of(usage.get("output_tokens")))
    return Reply(text, str(answer.get("model", "")), answer.get("stop_reason"), *counts, tuple(calls))


def _written(value: JSON) -> str:
    return msgspec.json.encode(value).decode()


def _read(text: str) -> JSON:
    """The input of a call; as text if the model has written no JSON: the tool's own schema then refuses it."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def usage_of(answer: dict[str, JSON]) -> dict[str, JSON]:
    """What the service tells of tokens, if it does."""
    told = answer.get("usage")
    return told if isinstance(told, dict) else {}


def count_of(told: JSON) -> int:
    """A count that the service tells; none if it tells nothing that could be one."""
    return told if type(told) is int and 0 <= told <= LARGEST_COUNT else 0
