"""The example in which a model labels tickets: with a schema, a fallback, a person and a budget."""

import json

import pytest
from aiohttp import web

from tests.workflow.test_team_examples import answers, example, folder, local, site, told, waiting

__all__ = ["folder", "local", "site"]

KEY = "sk-canary-4711-0815"
TICKET = {"id": "t-1", "text": "The cup has no handle."}


def reply(**value):
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    return {"choices": [{"message": {"content": json.dumps(value)}, "finish_reason": "stop"}], "usage": usage}


@pytest.fixture
async def shop(local, site):
    values = {"apiKey": KEY, "baseUrl": site.url}
    await local.service.credentials.create("model", "openai", values, [], "local")
    answers(site, "/answers", {})
    return {"shop": site.url}


async def test_an_answer_that_is_not_urgent_is_sent_at_once(local, site, shop):
    answers(site, "/chat/completions", reply(label="none"), reply(label="bug", urgent=False, draft="Sorry."))

    result = await (await local.start(example("ticket-triage"), TICKET, vars=shop)).result()

    assert result == {"label": "bug", "isSent": True, "tokens": 240}
    assert told(site, "POST", "/answers") == [{"ticket": "t-1", "label": "bug", "text": "Sorry."}]


async def test_an_urgent_answer_is_sent_when_a_person_approves_and_not_otherwise(local, site, shop):
    answers(site, "/chat/completions", reply(label="bug", urgent=True, draft="Sorry."))
    executions = [await local.start(example("ticket-triage"), TICKET, vars=shop) for _ in range(2)]
    for each in executions:
        await waiting(each)

    await executions[0].approve("ask")
    await executions[1].reject("ask")

    assert [(await each.result())["isSent"] for each in executions] == [True, False]
    assert len(told(site, "POST", "/answers")) == 1


async def test_a_key_that_a_model_repeats_is_told_in_no_event(local, site, shop):
    async def echo(request):
        said = request.headers["Authorization"].removeprefix("Bearer ")
        return web.json_response(reply(label="bug", urgent=False, draft=f"Your key is {said}."))

    site.answers["/chat/completions"] = echo

    execution = await local.start(example("ticket-triage"), TICKET, vars=shop)
    await execution.result()

    assert [each["text"] for each in told(site, "POST", "/answers")] == ["Your key is ***."]
    assert KEY not in json.dumps([each async for each in execution.events()], default=str)
