"""What takes long is done beside the loop."""

import threading

import pytest

from ropewalk.local import LocalEngine
from ropewalk.nodes.base import NodeType, Output, Registry
from ropewalk.nodes.inputs import Inputs
from ropewalk.wiring import Settings, open_service


class Where(NodeType):
    name = "where"
    only_shapes = True

    class Parameters(Inputs):
        is_long: bool

    def takes_long(self, parameters):
        return parameters.is_long

    async def run(self, parameters, context):
        return Output(threading.current_thread() is threading.main_thread())


@pytest.mark.parametrize("is_long", [True, False])
async def test_a_type_that_says_that_it_takes_long_is_run_beside_the_loop(tmp_path, is_long):
    types = Registry.builtin()
    types.register(Where)
    document = {"ropewalk": 1, "name": "w", "nodes": [{"id": "a", "type": "where", "with": {"isLong": is_long}}]}

    async with open_service(Settings(db=str(tmp_path / "w.db"), is_thrown_away=True), types) as service:
        execution = await LocalEngine(service).start(document)
        assert await execution.result() == {"a": not is_long}


@pytest.mark.parametrize(
    ("name", "with_"),
    [
        ("sort", {"items": list(range(100))}),
        ("filter", {"items": list(range(100)), "keep": [True] * 100}),
        ("aggregate", {"items": list(range(100))}),
        ("merge", {"mode": "append", "values": [list(range(60)), list(range(60))]}),
        ("set", {"from": [{}] * 100}),
        ("csv.parse", {"text": "a\n" * 5000}),
        ("json", {"value": "1" * 5000}),
        ("xml", {"value": "<a/>" + " " * 5000}),
        ("html.extract", {"html": "", "extract": [{"name": "a"}]}),
        ("markdown.render", {"text": ""}),
        ("text.template", {"template": ""}),
        ("crypto.sign", {"value": "", "key": "k"}),
    ],
)
def test_what_goes_through_more_than_a_little_says_that_it_takes_long(registry, name, with_):
    node_type = registry.get(name)

    assert node_type.only_shapes
    assert node_type.takes_long(node_type.accept(with_))
