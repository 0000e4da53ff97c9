"""The types that shape values and choose ways."""

import logging

import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import ErrorType, InvalidDefinition
from ropewalk.nodes.base import NodeFailure, Output


@pytest.mark.parametrize(
    ("type_name", "inputs", "output"),
    [
        ("set", {"values": {"a": [1]}}, Output({"a": [1]})),
        ("set", {}, Output({})),
        ("noop", None, Output(None)),
        ("noop", {"value": 7}, Output(7)),
        ("if", {"condition": True}, Output(True, ("true",))),
        ("if", {"condition": False}, Output(False, ("false",))),
        ("merge", {"values": [{"a": 1, "b": 1}, None, {"b": 2}]}, Output({"a": 1, "b": 2})),
        ("merge", {}, Output({})),
        ("merge", {"mode": "list", "values": [1, None, [2]]}, Output([1, [2]])),
        ("merge", {"mode": "first", "values": [None, 0, 1]}, Output(0)),
        ("merge", {"mode": "first", "values": [None]}, Output(None)),
        ("filter", {"items": [1, 2, 3], "keep": [True, False, True]}, Output([1, 3], ("some",))),
        ("filter", {"items": [], "keep": []}, Output([], ("none",))),
        (
            "filter",
            {"items": [{"a": {"b": 1}, "c": 2}, {"a": {"b": True}}, {"a": 1}, 5], "where": {"a.b": 1.0}},
            Output([{"a": {"b": 1}, "c": 2}], ("some",)),
        ),
        ("filter", {"items": [{"a": None}, {}, {"a": 1}], "where": {"a": None}}, Output([{"a": None}, {}], ("some",))),
    ],
)
async def test_values_are_shaped_as_asked(run, type_name, inputs, output):
    assert await run(type_name, inputs) == output


CASES = [{"port": "one", "equals": 1}, {"port": "yes", "equals": True}, {"port": "list", "equals": [{"a": 1}]}]


@pytest.mark.parametrize(
    ("value", "port"),
    [(1, "one"), (1.0, "one"), (True, "yes"), ([{"a": 1}], "list"), ([{"a": True}], "rest"), ("1", "rest")],
)
@pytest.mark.parametrize("cases", [CASES, {case["port"]: case["equals"] for case in CASES}])
async def test_a_switch_takes_the_first_case_that_is_json_equal(run, cases, value, port):
    assert await run("switch", {"value": value, "cases": cases, "default": "rest"}) == Output(value, (port,))


@pytest.mark.parametrize(
    ("written", "ports"),
    [
        ({"cases": {"one": 1, "{{ two }}": "{{ input }}"}}, ("one", "{{ two }}", "default")),
        ({"cases": [{"port": "one", "equals": "{{ input }}"}], "default": "rest"}, ("one", "rest")),
        ({"cases": {}}, ("default",)),
        ({"cases": "{{ input.cases }}"}, None),
        ({"cases": [{"port": "{{ input.port }}", "equals": 1}, {"port": "two", "equals": 2}]}, None),
        ({"cases": ["{{ input.case }}"]}, None),
        ({"cases": {"one": 1}, "default": "{{ input.rest }}"}, None),
        ({"cases": [{"port": 5}]}, None),
        ({}, None),
    ],
)
def test_a_switch_knows_its_ports_unless_an_expression_names_one(registry, written, ports):
    assert registry.infos()["switch"].ports_with(written) == ports


@pytest.mark.parametrize(
    "written",
    [
        {"cases": {"one": 1, "error": 2}},
        {"cases": [{"port": "error", "equals": "{{ input }}"}]},
        {"cases": {"one": 1}, "default": "error"},
    ],
)
def test_a_switch_with_a_port_for_failures_is_refused_when_it_is_written(registry, written):
    document = {"ropewalk": 1, "name": "test", "nodes": [{"id": "a", "type": "switch", "with": written}]}

    with pytest.raises(InvalidDefinition) as refused:
        parse_definition(document, registry.infos())

    assert list(map(str, refused.value.problems)) == [
        "nodes[0].with: a port cannot be named 'error', which is the edge of failures"
    ]


@pytest.mark.parametrize(
    ("type_name", "inputs", "message"),
    [
        ("if", {"condition": "true"}, "with.condition: Input should be a valid boolean"),
        ("if", {"condition": 1}, "with.condition: Input should be a valid boolean"),
        ("if", {}, "with: give either condition, which must be true or false, or conditions"),
        ("set", {"values": {}, "extra": 1}, "with.extra: Extra inputs are not permitted"),
        ("filter", {"items": [1]}, "with: give exactly one of where, conditions and keep"),
        ("filter", {"items": [1], "keep": []}, "with: keep has 0 marks for 1 items"),
        ("switch", {"cases": {"error": 1}}, "with: a port cannot be named 'error', which is the edge of failures"),
        ("noop", {"valve": 1}, "with.valve: Extra inputs are not permitted"),
        ("merge", {"values": [{"a": 1}, 2]}, "with.values: mode object merges objects only; use mode list or first"),
    ],
)
async def test_inputs_that_do_not_fit_are_a_permanent_failure_with_the_field(run, type_name, inputs, message):
    with pytest.raises(NodeFailure) as caught:
        await run(type_name, inputs)

    assert (caught.value.error.type, caught.value.error.message) == (ErrorType.PERMANENT, message)


@pytest.mark.parametrize("kind", [ErrorType.PERMANENT, ErrorType.TRANSIENT, ErrorType.TIMEOUT])
async def test_fail_fails_the_way_it_is_told(run, kind):
    with pytest.raises(NodeFailure) as caught:
        await run("fail", {"message": "no stock", "type": kind.value, "retryAfter": 5})

    assert (caught.value.error.type, caught.value.error.message, caught.value.error.retry_after) == (
        kind,
        "no stock",
        5,
    )


async def test_log_writes_a_line_that_names_the_attempt(run, caplog):
    caplog.set_level(logging.INFO, "ropewalk.node")

    output = await run("log", {"message": 42, "level": "warning", "fields": {"level": 1}}, attempt=2, item=3)

    [record] = caplog.records
    assert output == Output({"message": "42"})
    assert (record.levelname, record.getMessage(), record.fields) == ("WARNING", "42", {"level": 1})
    assert record.about == {"execution": "e1", "workspace": "w1", "node": "a", "attempt": 2, "item": 3}
