"""Stubs: any node type does what the test says, and is still held to what the real one takes and gives."""

from typing import Any

import pytest

from ropewalk import ExecutionEnded, NodeContext, NodeFailure, Output, Workflow, node
from ropewalk.core.errors import InvalidDefinition, NotFound
from ropewalk.testing import TestEngine

FETCH = {
    "ropewalk": 1,
    "name": "fetch",
    "nodes": [
        {"id": "get", "type": "http.request", "retry": {"maxAttempts": 3, "delay": "1h"},
         "with": {"url": "https://shop.example/{{ input }}"}},
    ],
    "output": "{{ nodes.get.output }}",
}  # fmt: skip


def one(node_type: str, **parameters: Any) -> dict[str, Any]:
    return {"ropewalk": 1, "name": "one", "nodes": [{"id": "one", "type": node_type, "with": parameters}]}


def test_a_value_is_what_the_node_gives(ropewalk_engine: TestEngine):
    ropewalk_engine.stub("http.request", {"status": 200, "body": [1]})

    assert ropewalk_engine.start(FETCH, "a").result() == {"status": 200, "body": [1]}
    assert [call["url"] for call in ropewalk_engine.calls("http.request")] == ["https://shop.example/a"]


def test_a_large_value_is_shown_whole(ropewalk_engine: TestEngine):
    ropewalk_engine.stub("http.request", "x" * 100_000)
    execution = ropewalk_engine.start(FETCH, "a")

    assert execution.result() == "x" * 100_000
    assert execution.nodes()["get"]["output"] == "x" * 100_000


def test_outcomes_come_one_after_the_other_and_the_last_stays(ropewalk_engine: TestEngine):
    ropewalk_engine.stub("http.request", ConnectionError, ["first"], "last")

    given = [ropewalk_engine.start(FETCH, n).result() for n in range(3)]

    assert given == [["first"], "last", "last"]
    assert len(ropewalk_engine.calls("http.request")) == 4


def test_a_function_is_asked_with_the_inputs_and_the_context(ropewalk_engine: TestEngine):
    async def answer(inputs: dict[str, Any], context: NodeContext) -> str:
        return f"{context.node} {inputs['url']}"

    ropewalk_engine.stub("http.request", answer)

    assert ropewalk_engine.start(FETCH, 7).result() == "get https://shop.example/7"


def test_a_failure_is_raised_and_leaves_a_dead_letter(ropewalk_engine: TestEngine):
    ropewalk_engine.stub("http.request", NodeFailure.permanent("404"))

    with pytest.raises(ExecutionEnded):
        ropewalk_engine.start(FETCH, 7).result()

    (letter,) = ropewalk_engine.dead_letters()
    assert (letter["node"], letter["failureType"], letter["inputs"]["url"]) == (
        "get", "PERMANENT_ERROR", "https://shop.example/7",
    )  # fmt: skip


def test_a_requeued_letter_lets_its_execution_go_on(ropewalk_engine: TestEngine):
    ropewalk_engine.stub("http.request", NodeFailure.permanent("404"), "found")
    execution = ropewalk_engine.start(FETCH, 7)
    execution.wait()

    ropewalk_engine.requeue(ropewalk_engine.dead_letters()[0]["id"])

    assert execution.result() == "found"


def test_a_function_of_the_workflow_is_stubbed_as_itself(ropewalk_engine: TestEngine):
    @node
    def charge(cents: int) -> str:
        """Never called here."""
        raise AssertionError("a real charge")

    built = Workflow("paying")
    built.node("pay", charge, cents=5)
    ropewalk_engine.stub(charge, "stubbed")

    assert ropewalk_engine.start(built).result() == {"pay": "stubbed"}
    assert ropewalk_engine.calls(charge) == [{"cents": 5}]


def test_another_node_type_may_stand_in(ropewalk_engine: TestEngine):
    @node
    def local_shop(url: str) -> str:
        """Stands in for the network."""
        return f"local {url}"

    ropewalk_engine.stub("http.request", local_shop)

    assert ropewalk_engine.start(FETCH, 7).result() == "local https://shop.example/7"


def test_definitions_are_held_to_the_real_type(ropewalk_engine: TestEngine):
    ropewalk_engine.stub("http.request", "x")

    with pytest.raises(InvalidDefinition, match="address"):
        ropewalk_engine.start(one("http.request", address="https://shop.example"))


def test_inputs_are_held_to_the_real_type(ropewalk_engine: TestEngine):
    ropewalk_engine.stub("log", "x")
    document = {**one("log", message="{{ input }}")}

    execution = ropewalk_engine.start(document, ["no", "text"])

    assert execution.wait()["state"] == "FAILED"
    assert "message" in execution.nodes()["one"]["error"]["message"]
    assert ropewalk_engine.calls("log") == []


def test_a_stub_takes_a_port_like_the_real_type(ropewalk_engine: TestEngine):
    document = one("if", condition=True)
    ropewalk_engine.stub("if", "no port", Output(None, ("maybe",)), Output(None, ("false",)))

    wrong = [ropewalk_engine.start(document) for _ in range(2)]
    assert [each.wait()["state"] for each in wrong] == ["FAILED", "FAILED"]
    assert "maybe" in wrong[1].nodes()["one"]["error"]["message"]
    assert ropewalk_engine.start(document).wait()["state"] == "SUCCESS"


def test_a_stubbed_wait_has_been_answered(ropewalk_engine: TestEngine):
    document = one("wait", signal="paid") | {"edges": [{"from": "one", "to": "then", "on": "arrived"}]}
    document["nodes"].append({"id": "then", "type": "noop"})
    ropewalk_engine.stub("wait", {"cents": 5})

    execution = ropewalk_engine.start(document)

    assert execution.wait()["state"] == "SUCCESS"
    assert execution.nodes()["one"]["output"] == {"cents": 5}
    assert execution.nodes()["then"]["state"] == "SUCCESS"


def test_a_stub_of_a_type_that_does_not_exist_names_those_that_are_like_it(ropewalk_engine: TestEngine):
    with pytest.raises(NotFound, match=r"no node type 'http\.reqest' to stub: did you mean http\.request"):
        ropewalk_engine.stub("http.reqest", {})


def test_the_calls_of_what_is_not_stubbed_are_asked_for_in_vain(ropewalk_engine: TestEngine):
    ropewalk_engine.stub("log")

    with pytest.raises(NotFound, match="'noop' is not stubbed"):
        ropewalk_engine.calls("noop")


def test_two_types_of_one_name_are_refused(ropewalk_engine: TestEngine):
    @node(name="set")
    def other() -> None:
        """Has the name of a built-in type."""

    with pytest.raises(ValueError, match="two different node types"):
        ropewalk_engine.stub(other, 1)
