"""Tools that are workflows: the model asks, the workflow calls each as a child, and the model hears what came of it."""

import json

import pytest
from aiohttp import web

from ropewalk.core.events import RoundEnded
from tests.engines.worlds import act, flow, node
from tests.nodes.test_llm_budget import world

__all__ = ["world"]

TOOLS = [{"name": "find_order", "description": "Finds an order.", "parameters": {"type": "object"}}]
TOOL = flow(act("find", "paid: {{ input.orderId }}"), name="find_order", output="{{ nodes.find.output }}")


def agent():
    more = {"model": "small", "tools": TOOLS, "retry": {"maxAttempts": 1}}
    ask = node("ask", "llm.chat", user="Is A-7 paid?", **more) | {"credentials": "model"}
    call = node(
        "call", "subworkflow", workflow="{{ item.name }}", input="{{ item.input }}",
        forEach="{{ nodes.ask.output.toolCalls }}",
    )  # fmt: skip
    told = {"messages": "{{ nodes.ask.output.messages }}", "toolResults": "{{ nodes.call.output }}"}
    answer = node("answer", "llm.chat", **told, **more) | {"credentials": "model"}
    edges = "ask->call:tools call->answer"
    return flow(ask, call, answer, edges=edges, output="{{ nodes.answer.output.text }}")


@pytest.fixture
def model(site):
    """A model that asks for a tool twice, and then tells what it heard."""

    async def reply(request):
        said = (await request.json())["messages"]
        heard = [each["content"] for each in said if each["role"] == "tool"]
        calls = [
            {"id": f"c{n}", "type": "function", "function": {"name": "find_order", "arguments": json.dumps(given)}}
            for n, given in enumerate([{"orderId": "A-7"}, {"orderId": "B-8"}])
        ]
        message = {"content": ", ".join(heard)} if heard else {"content": None, "tool_calls": calls}
        return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}]})

    site.answers["/chat/completions"] = reply


async def test_each_call_of_a_tool_is_a_child_execution_whose_output_goes_back(world, model):
    await world.save(TOOL)

    ended = await world.run(agent())

    assert ended.output == "paid: A-7, paid: B-8"
    assert len(await world.children(ended.execution)) == 2


ROUND = {
    "ropewalk": 1,
    "name": "agent-round",
    "nodes": [
        {
            "id": "ask",
            "type": "llm.chat",
            "credentials": "model",
            "with": {
                "model": "small",
                "user": "{{ input.last == null ? input.question : null }}",
                "messages": "{{ input.last.messages ?: [] }}",
                "toolResults": "{{ input.last.results ?: [] }}",
                "tools": TOOLS,
            },
        },
        {
            "id": "call",
            "type": "subworkflow",
            "forEach": "{{ nodes.ask.output.toolCalls }}",
            "with": {"workflow": "{{ item.name }}", "input": "{{ item.input }}"},
        },
    ],
    "edges": [{"from": "ask", "to": "call", "on": "tools"}],
    "output": {
        "text": "{{ nodes.ask.output.text }}",
        "messages": "{{ nodes.ask.output.messages }}",
        "results": "{{ nodes.call.output }}",
        "isDone": "{{ nodes.call.output == null }}",
    },
}
AGENT = {
    "ropewalk": 1,
    "name": "agent",
    "nodes": [
        {
            "id": "agent",
            "type": "subworkflow",
            "with": {"workflow": "agent-round", "input": {"question": "{{ input }}", "last": "{{ last }}"}},
            "repeat": {"until": "{{ last.isDone }}", "max": 10},
        }
    ],
    "output": "{{ nodes.agent.output.text }}",
}


@pytest.fixture
def curious(site):
    """A model that asks for one order after the other, until it has heard of three."""

    async def reply(request):
        said = (await request.json())["messages"]
        heard = [each["content"] for each in said if each["role"] == "tool"]
        given = json.dumps({"orderId": f"A-{len(heard)}"})
        call = {"id": f"c{len(heard)}", "type": "function", "function": {"name": "find_order", "arguments": given}}
        message = {"content": ", ".join(heard)} if len(heard) == 3 else {"content": None, "tool_calls": [call]}
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

    site.answers["/chat/completions"] = reply


async def test_a_model_asks_for_tools_round_by_round_until_it_is_done_also_over_a_restart(world, curious, site):
    await world.save(TOOL)
    await world.save(ROUND)

    execution = await world.start(AGENT, "Which orders are paid?")
    await world.until(execution, RoundEnded, count=2)
    await world.restart()
    ended = await world.ended(execution)

    assert ended.output == "paid: A-0, paid: A-1, paid: A-2"
    assert len(site.asked) >= 4
    assert len(await world.children(execution)) == 4
