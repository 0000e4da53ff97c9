"""Language models: both protocols against servers that speak them, and servers that do anything else."""

import asyncio
import base64
import json

import pytest
from aiohttp import web

from ropewalk.core.errors import ErrorType
from ropewalk.engines.kept_values import StoredValues
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.files import File, as_value
from ropewalk.nodes.inputs import refused
from ropewalk.nodes.llm.chat import LlmChat
from ropewalk.nodes.llm.embed import LlmEmbed
from ropewalk.store.sqlite import SqliteStore

KEY = "sk-canary-4711-0815"
ASK = {"model": "small", "user": "Say hello."}
LABEL = {"type": "object", "properties": {"label": {"enum": ["bug", "wish"]}}, "required": ["label"]}
PATH = {"openai": "/chat/completions", "anthropic": "/v1/messages"}
PNG = b"\x89PNG not really"
CUP = File("0" * 64, len(PNG), "cup.png", "image/png")


class Kept:
    """The credentials of a workspace."""

    def __init__(self):
        self.all = {}

    async def get(self, workspace, name):
        return self.all[name]


class OneFile:
    """Where the content of one picture is."""

    async def read(self, file):
        yield PNG


class Model:
    """A service that speaks one of the protocols, and says what it is told to say."""

    def __init__(self, site, protocol):
        self.site = site
        self.protocol = protocol
        self.path = PATH[protocol]
        self.says = []
        site.answers[self.path] = self._answer

    def reply(self, text="", *, calls=(), tokens=(10, 5)):
        """The next answer."""
        made = self._openai(text, calls, tokens) if self.protocol == "openai" else self._anthropic(text, calls, tokens)
        self.says.append(lambda: web.json_response(made))

    def refuse(self, status, code="bad", **headers):
        error = {"error": {"type": code, "code": code, "message": f"you sent {KEY}"}}
        self.says.append(lambda: web.json_response(error, status=status, headers=headers))

    async def _answer(self, request):
        return self.says.pop(0)()

    def _openai(self, text, calls, tokens):
        made = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for n, (name, given) in enumerate(calls)
        ]
        message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
        usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
        return {"model": "small-1", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}

    def _anthropic(self, text, calls, tokens):
        parts = [{"type": "text", "text": text}] if text else []
        parts += [{"type": "tool_use", "id": f"c{n}", "name": name, "input": given}
                  for n, (name, given) in enumerate(calls)]  # fmt: skip
        usage = {"input_tokens": tokens[0], "output_tokens": tokens[1]}
        return {"model": "small-1", "content": parts, "stop_reason": "end_turn", "usage": usage}

    @property
    def asked(self):
        return [json.loads(body) for _, _, _, body in self.site.requests]


@pytest.fixture
def kept(facilities):
    facilities.credentials = Kept()
    return facilities.credentials


@pytest.fixture(params=["openai", "anthropic"])
def model(request, site, kept):
    kept.all["model"] = Credential("model", request.param, {"apiKey": KEY, "baseUrl": site.url}, secrets=(KEY,))
    return Model(site, request.param)


@pytest.fixture
def openai(site, kept):
    kept.all["model"] = Credential("model", "openai", {"apiKey": KEY, "baseUrl": site.url}, secrets=(KEY,))
    return Model(site, "openai")


@pytest.fixture
def chat(run):
    async def ask(**given):
        return await run("llm.chat", ASK | given, get_credentials=lambda: "model")

    return ask


@pytest.fixture
def failed(chat):
    async def ask(**given):
        with pytest.raises(NodeFailure) as caught:
            await chat(**given)
        return caught.value.error

    return ask


async def test_a_model_is_asked_with_everything_and_answers(model, chat):
    model.reply("Hello!")

    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
    prices = {"small": {"input": 2, "output": 4}}
    more = {"temperature": 0.5, "maxTokens": 7, "options": {"seed": 1}, "prices": prices}
    said = await chat(system="Be brief.", messages=history, **more)

    assert said.value == {
        "text": "Hello!", "model": "small-1", "stop": "stop" if model.protocol == "openai" else "end_turn",
        "tokens": {"input": 10, "output": 5}, "cost": pytest.approx(40e-6),
    }  # fmt: skip
    assert (said.ports, said.tokens) == (("answer",), 15)
    [asked] = model.asked
    about = {name: asked[name] for name in ("model", "temperature", "max_tokens", "seed")}
    assert about == {"model": "small", "temperature": 0.5, "max_tokens": 7, "seed": 1}
    texts = [each["content"] if isinstance(each["content"], str) else each["content"][0]["text"]
             for each in asked["messages"]]  # fmt: skip
    assert texts[-3:] == ["Hi", "Yes?", "Say hello."]
    assert "Be brief." in (texts[0], asked.get("system"))
    assert KEY in (model.site.headers.get("x-api-key"), model.site.headers.get("authorization", "").split(" ")[-1])


@pytest.mark.parametrize("schema", [LABEL, {"enum": ["bug", "wish"]}])
async def test_an_answer_that_fits_a_schema_is_a_value(model, chat, schema):
    given = {"label": "bug"} if schema is LABEL else {"value": "bug"}
    if model.protocol == "openai":
        model.reply(f"```json\n{json.dumps(given)}\n```")
    else:
        model.reply(calls=[("answer", given)])

    said = await chat(schema=schema)

    assert (said.value["value"], said.ports) == (given if schema is LABEL else "bug", ("answer",))
    [asked] = model.asked
    shape = asked["response_format"]["json_schema"]["schema"] if model.protocol == "openai" else (
        asked["tools"][0]["input_schema"])  # fmt: skip
    assert shape["type"] == "object"


async def test_an_answer_that_does_not_fit_is_mended_once(model, chat):
    for label in ("none of these", "wish"):
        said = {"label": label}
        model.reply(json.dumps(said)) if model.protocol == "openai" else model.reply(calls=[("answer", said)])

    said = await chat(schema=LABEL)

    assert said.value["value"] == {"label": "wish"}
    assert (said.tokens, len(model.asked)) == (30, 2)
    assert "does not fit" in json.dumps(model.asked[1]["messages"][-1])


async def test_an_answer_that_does_not_fit_twice_fails_for_good_and_tells_the_tokens(model, failed):
    model.reply("no JSON at all")
    model.reply('{"label": 7}')

    error = await failed(schema=LABEL)

    assert (error.type, error.tokens, len(model.asked)) == (ErrorType.PERMANENT, 30, 2)
    assert "does not fit the schema" in error.message


async def test_tools_that_the_model_asks_for_are_handed_on_and_their_results_go_back(model, chat):
    model.reply("", calls=[("find_order", {"orderId": "A-7"}), ("find_order", {"orderId": "B-8"})])
    tools = [{"name": "find_order", "description": "Finds an order.", "parameters": {"type": "object"}}]

    first = await chat(tools=tools)
    calls = [{"id": f"c{n}", "name": "find_order", "input": {"orderId": each}} for n, each in enumerate(["A-7", "B-8"])]
    assert (first.ports, first.value["toolCalls"]) == (("tools",), calls)
    model.reply("It is paid.")
    results = {"messages": first.value["messages"], "toolResults": [{"paid": True}, "no such order"]}
    second = await chat(user=None, tools=tools, **results)

    assert (second.ports, second.value["text"]) == (("answer",), "It is paid.")
    told = model.asked[1]["messages"]
    assert all(each in json.dumps(told) for each in ("c0", "c1", "find_order", "A-7", "paid", "Say hello."))
    assert len(told) == (4 if model.protocol == "openai" else 3)
    assert [each["role"] for each in second.value["messages"]] == ["user", "assistant", "tool", "tool", "assistant"]


async def test_pictures_go_along_by_address_and_by_content(model, facilities, chat):
    facilities.files = OneFile()
    model.reply("A cup.")

    await chat(images=["https://shop.example/cup.png", as_value(CUP)])

    told = json.dumps(model.asked[0]["messages"])
    assert "https://shop.example/cup.png" in told
    assert base64.b64encode(PNG).decode() in told


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("ftp://x", "is no address"),
        (7, "must be an address or a file"),
        (as_value(File("0" * 64, 9_000_000, "a.png", "image/png")), "is larger than 5 MiB"),
        (as_value(File("0" * 64, 9, "a.svg", "image/svg+xml")), "is image/svg+xml"),
    ],
)
async def test_what_is_no_picture_is_refused_before_anything_is_asked(model, failed, image, message):
    error = await failed(images=[image])

    assert (error.type, model.asked) == (ErrorType.PERMANENT, [])
    assert message in error.message


@pytest.mark.parametrize(
    ("status", "kind", "wish"),
    [(429, "TRANSIENT", 7.0), (529, "TRANSIENT", 7.0), (500, "TRANSIENT", 7.0), (401, "PERMANENT", None),
     (403, "PERMANENT", None), (400, "PERMANENT", None), (413, "PERMANENT", None), (302, "PERMANENT", None)],
)  # fmt: skip
async def test_a_refusal_is_classified_and_tells_no_key(model, failed, status, kind, wish):
    model.refuse(status, **{"Retry-After": "7"})

    error = await failed()

    assert (error.type, error.status, error.retry_after) == (kind, status, wish)
    assert KEY not in str(error)


async def test_an_account_without_money_is_no_overload(model, failed):
    model.refuse(429, "insufficient_quota", **{"Retry-After": "7"})

    error = await failed()

    assert (error.type, error.retry_after) == (ErrorType.PERMANENT, None)


async def test_another_model_is_asked_where_one_is_overloaded(model, chat):
    model.refuse(529)
    model.refuse(429)
    model.reply("Here.")

    said = await chat(fallback=["middle", "large"])

    assert [each["model"] for each in model.asked] == ["small", "middle", "large"]
    assert said.value["text"] == "Here."


async def test_a_fallback_may_have_a_service_of_its_own(openai, other_site, kept, run):
    kept.all["other"] = Credential("other", "anthropic", {"apiKey": KEY, "baseUrl": other_site.url})
    other = Model(other_site, "anthropic")
    openai.refuse(503)
    other.reply("Here.")

    slots = {"": "model", "fallback": "other"}
    said = await run("llm.chat", ASK | {"fallback": ["big"]}, get_credentials=lambda: slots)

    assert (said.value["text"], other.asked[0]["model"]) == ("Here.", "big")


async def test_a_refusal_for_good_asks_no_other_model(model, failed):
    model.refuse(400)

    assert (await failed(fallback=["large"])).status == 400
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("says", "kind"),
    [
        ({"text": "{", "content_type": "application/json"}, "PERMANENT"),
        ({"text": 'data: {"choices": []}\n\ndata: [DONE]\n', "content_type": "text/event-stream"}, "PERMANENT"),
        ({"text": "[]", "content_type": "application/json"}, "PERMANENT"),
        ({"text": "{}", "content_type": "application/json"}, "PERMANENT"),
        ({"text": '{"choices": [], "content": 7}', "content_type": "application/json"}, "PERMANENT"),
        ({"text": '{"choices": [{"message": {"content": 7}}], "content": [7]}'}, "PERMANENT"),
        ({"text": '{"error": {"code": 503, "message": "later"}}'}, "TRANSIENT"),
        ({"text": '{"error": {"code": 400, "message": "no"}}'}, "PERMANENT"),
        ({"text": " " * 17_000_000}, "PERMANENT"),
        ({"text": ""}, "PERMANENT"),
    ],
    ids=["half", "stream", "list", "empty object", "no parts", "odd parts", "gateway", "refusal", "huge", "nothing"],
)
async def test_an_answer_that_is_none_is_a_failure(model, failed, says, kind):
    model.says.append(lambda: web.Response(**says))

    assert (await failed()).type == kind


@pytest.mark.parametrize("usage", [None, 7, {"prompt_tokens": -1, "input_tokens": "many"}, {"prompt_tokens": 1e9}])
async def test_counts_that_are_none_count_nothing(model, chat, usage):
    model.reply("Hello!")
    made = json.loads(model.says.pop()().text) | {"usage": usage}
    model.says.append(lambda: web.json_response(made))

    assert (await chat()).value["tokens"] == {"input": 0, "output": 0}


async def test_a_service_that_says_nothing_is_a_timeout(model, failed):
    asleep = asyncio.Event()

    async def never(request):
        await asleep.wait()

    model.site.answers[model.path] = never

    error = await failed(timeout=1)
    asleep.set()

    assert error.type is ErrorType.TIMEOUT


async def test_a_node_without_a_credential_or_with_one_for_another_host_asks_nothing(openai, kept, run, failed):
    with pytest.raises(NodeFailure, match="name a credential of type openai or anthropic"):
        await run("llm.chat", ASK)
    kept.all["model"] = Credential("model", "openai", dict(kept.all["model"].values), ("api.openai.com",))

    assert "is for api.openai.com" in (await failed()).message
    assert openai.asked == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"user": None}, "give user, messages or both"),
        ({"schema": {"type": "nonsense"}}, "is no schema"),
        ({"user": None, "messages": [{"role": "user"}], "images": ["https://x"]}, "images go with user only"),
        ({"toolResults": [1]}, "toolResults has 1 results, and 0 were asked for last"),
        ({"budget": {}}, "give tokens, cost or both"),
        ({"budget": {"cost": 1}}, "a budget of cost needs the price of small"),
        ({"timeout": "soon"}, ""),
        ({"tools": [{"name": "no spaces, please"}]}, "should match"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(given, message):
    problems = refused(LlmChat.Parameters, ASK | given)

    assert message in str(problems[0].message)


# Vectors


async def test_texts_are_embedded_in_batches_and_their_order_is_kept(openai, run):
    async def embed(request):
        texts = (await request.json())["input"]
        data = [{"index": place, "embedding": [len(text), 0.5]} for place, text in enumerate(texts)]
        return web.json_response({"data": data[::-1], "usage": {"total_tokens": len(texts)}})

    openai.site.answers["/embeddings"] = embed

    given = {"model": "e", "texts": ["a", "bb", "ccc", "dddd", "eeeee"], "batch": 2, "price": {"input": 1, "output": 0}}
    said = await run("llm.embed", given, get_credentials=lambda: "model")

    assert said.value["vectors"] == [[1, 0.5], [2, 0.5], [3, 0.5], [4, 0.5], [5, 0.5]]
    assert (said.tokens, said.value["cost"], len(openai.asked)) == (5, pytest.approx(5e-6), 3)


@pytest.mark.parametrize(
    "data",
    [None, [], [{"index": 0}], [{"index": 3, "embedding": [1]}], [{"embedding": ["x"]}], [7], [{"embedding": []}]],
)
async def test_vectors_that_are_none_are_a_failure(openai, run, data):
    openai.site.answer("/embeddings", text=json.dumps({"data": data}), content_type="application/json")

    with pytest.raises(NodeFailure, match="no vectors of these texts") as caught:
        await run("llm.embed", {"model": "e", "texts": ["a"]}, get_credentials=lambda: "model")

    assert caught.value.error.type is ErrorType.PERMANENT


@pytest.mark.parametrize("texts", [[], [""], ["x" * 100_001], ["x" * 100_000] * 81])
def test_texts_that_are_none_or_too_many_are_refused(texts):
    assert refused(LlmEmbed.Parameters, {"model": "e", "texts": texts})


# What is counted


async def test_what_the_models_of_an_execution_used_is_counted_also_where_they_fail(
    openai, chat, failed, facilities, tmp_path
):
    store = await SqliteStore.open(str(tmp_path / "kept.db"))
    facilities.kept_values = StoredValues(store)
    openai.reply("Hello!")
    openai.reply("no JSON")
    openai.reply("still none")

    await chat(prices={"small": {"input": 1_000_000, "output": 0}})
    await failed(schema=LABEL)

    spent = [(await facilities.kept_values.get("w1", f"llm/e1/{what}")).value for what in ("tokens", "cost")]
    assert spent == [45, 10]
    await store.close()
