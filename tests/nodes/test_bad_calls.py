"""Whatever a parameter holds, a node type that calls a server gives an output or a classified failure."""

import random
from contextlib import suppress

import pytest
from aiohttp import web

from ropewalk.nodes.base import NodeFailure, check_output

from .conftest import context_of
from .credentials_at_hand import AtHand
from .services import SERVICES
from .test_bad_input import STRANGE, given

ROUNDS = 100


def nearly_right(model, schema, chance):
    """Examples of every field that is needed and of some others, and now and then something strange in one of them."""
    fields = model["properties"]
    chosen = [name for name in fields if name in model.get("required", ()) or chance.random() < 0.3]
    inputs = {name: fields[name]["examples"][0] for name in chosen}
    if chosen and chance.random() < 0.6:
        inputs[chance.choice(chosen)] = chance.choice(STRANGE)
    return inputs


@pytest.fixture
def echo(site):
    """A server that answers every path, with JSON of any shape."""
    chance = random.Random("echo")
    shapes = [
        {},
        [],
        None,
        "text",
        {"ok": True},
        {"error": 1},
        {"data": {}},
        {"items": [1]},
        {"ok": True, "result": []},
    ]

    async def answer(request):
        return web.json_response(chance.choice(shapes), status=chance.choice([200, 200, 400, 500]))

    site.answers = type("Any", (dict,), {"__missing__": lambda self, path: answer})()
    return site


@pytest.mark.parametrize("name", ["http.request", *SERVICES])
async def test_strange_parameters_never_meet_a_fault_of_ours(registry, facilities, echo, name):
    facilities.credentials = AtHand()
    if name in SERVICES:
        service = SERVICES[name]
        service.serve(echo)
        facilities.credentials.add("service", service.credential, **service.at(echo.url))
    node_type = registry.get(name)
    schema = registry.infos()[name].parameters
    chance = random.Random(name)
    for _ in range(ROUNDS):
        inputs = chance.choice([given, nearly_right])(schema, schema, chance)
        if name == "http.request":
            inputs |= {"url": echo.url + chance.choice(["", "/a", "/%", "/é?x=1", ":x", "/a b\r\n"]), "timeout": "2s"}
        with suppress(NodeFailure):
            context = context_of(facilities, get_credentials=lambda: "service" if name in SERVICES else None)
            parameters = node_type.accept(inputs)
            node_type.target(parameters)
            check_output((await node_type.run(parameters, context)).value)
    assert echo.requests
