"""Workflows written in Python."""

from datetime import timedelta
from decimal import Decimal

import pytest

from ropewalk.authoring import index, item, last
from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import InvalidDefinition
from ropewalk.nodes.base import Registry
from ropewalk.nodes.function import node
from ropewalk.workflow import Workflow


@node(retry={"maxAttempts": 5}, timeout="10s")
def charge(amount: float, currency: str = "EUR") -> str:
    return f"{amount} {currency}"


@node
def greet(name: str) -> str:
    return f"hello {name}"


def registry_of(workflow):
    registry = Registry.builtin()
    for node_type in workflow.node_types:
        registry.register(node_type)
    return registry


def chain(*ids):
    workflow = Workflow("chain")
    return workflow, *(workflow.node(name, "noop") for name in ids)


def edges_of(workflow):
    return [tuple(edge.values()) for edge in workflow.document().get("edges", [])]


def test_a_builder_makes_the_document_a_file_would_hold():
    workflow = Workflow(
        "refund",
        input={"type": "object"},
        vars={"shop": "https://shop.example"},
        timeout=timedelta(minutes=10),
        on_failure="stop",
        max_parallel=3,
    )
    order = workflow.node("order", "http.request", url=f"{workflow.vars.shop}/orders/{workflow.input.orderId}")
    pay = workflow.node("pay", charge, amount=order.output.body.total, retry={"maxAttempts": 2}, name="Pay back")
    order >> pay
    workflow.output = {"id": pay.output.id}

    assert workflow.document() == {
        "ropewalk": 1,
        "name": "refund",
        "input": {"type": "object"},
        "vars": {"shop": "https://shop.example"},
        "timeout": "10m",
        "onFailure": "stop",
        "maxParallel": 3,
        "nodes": [
            {
                "id": "order",
                "type": "http.request",
                "with": {"url": "{{ vars.shop }}/orders/{{ input.orderId }}"},
            },
            {
                "id": "pay",
                "type": "charge",
                "name": "Pay back",
                "retry": {"maxAttempts": 2},
                "timeout": "10s",
                "with": {"amount": "{{ nodes.order.output.body.total }}"},
            },
        ],
        "edges": [{"from": "order", "to": "pay"}],
        "output": {"id": "{{ nodes.pay.output.id }}"},
    }


def test_what_a_builder_makes_keeps_the_rules_of_definitions():
    workflow = Workflow("shop", concurrency_key=Workflow("shop").input.id, triggers=[{"cron": "0 3 * * *"}])
    each = workflow.node(
        "each",
        charge,
        amount=item.price,
        for_each=workflow.input.orders,
        concurrency=5,
        failure_tolerance="10%",
        on_item_failure="continue",
        dead_letters="always",
        cache={"ttl": timedelta(hours=1)},
        pool="bank",
        ui={"x": 1},
    )
    workflow.node("rest", "delay", for_="5s", after=each)
    mail = {"to": "a@example.org", "from_": "b@example.org", "credentials": "mail"}
    workflow.node("mail", "email.send", **mail, after=[each.on_error()])

    definition = parse_definition(workflow.document(), registry_of(workflow).infos())

    assert [each["id"] for each in definition.nodes] == ["each", "rest", "mail"]
    assert definition.nodes[0]["cache"] == {"ttl": "1h"}
    assert (definition.nodes[0]["onItemFailure"], definition.nodes[0]["deadLetters"]) == ("continue", "always")


def test_arrows_make_edges_in_every_direction():
    workflow, a, b, c, d, e = chain("a", "b", "c", "d", "e")

    a >> [b, c] >> d
    b.on("some") >> e
    [a, d.on_error()] >> e
    workflow.edge("c", e, on="none")

    assert edges_of(workflow) == [
        *[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
        *[("b", "e", "some"), ("a", "e"), ("d", "e", "error"), ("c", "e", "none")],
    ]


def test_the_ways_of_a_failure_may_ask_which_it_is():
    workflow, a, b, c = chain("a", "b", "c")

    a.on_error("{{ error.status == 404 }}") >> [b, c]
    a.on_error("{{ error.type == 'TIMEOUT' }}") >> b
    a.on_error() >> b

    assert [(edge["to"], edge.get("when")) for edge in workflow.document()["edges"]] == [
        ("b", "{{ error.status == 404 }}"),
        ("c", "{{ error.status == 404 }}"),
        ("b", "{{ error.type == 'TIMEOUT' }}"),
        ("b", None),
    ]
    assert {edge["on"] for edge in workflow.document()["edges"]} == {"error"}


def test_a_node_may_be_repeated():
    workflow = Workflow("again")

    workflow.node("a", "set", values={"x": last.x, "n": index}, repeat={"until": "{{ last.x }}"})

    assert workflow.document()["nodes"][0]["repeat"] == {"until": "{{ last.x }}"}
    assert workflow.document()["nodes"][0]["with"] == {"values": {"x": "{{ last.x }}", "n": "{{ index }}"}}


def test_after_makes_edges_too():
    workflow, a, b = chain("a", "b")

    workflow.node("c", "noop", after=a, on="true")
    workflow.node("d", "noop", after=[a, b.on("false")])

    assert edges_of(workflow) == [("a", "c", "true"), ("a", "d"), ("b", "d", "false")]


def test_the_types_of_functions_travel_with_the_workflow():
    workflow = Workflow("w")
    for name in ("a", "b"):
        workflow.node(name, charge, amount=1)
    workflow.node("c", greet, with_={"name": "Ada"})
    workflow.node("d", "noop")

    assert workflow.node_types == [charge, greet]


def test_a_parameter_named_like_an_option_is_given_apart():
    workflow = Workflow("w")
    workflow.node("a", "http.request", url="https://a.example", timeout="1m", with_={"timeout": "5s"})

    assert workflow.document()["nodes"] == [
        {"id": "a", "type": "http.request", "timeout": "1m", "with": {"url": "https://a.example", "timeout": "5s"}}
    ]


def test_a_workflow_that_was_read_can_be_built_upon():
    workflow = Workflow.from_document({"name": "w", "nodes": [{"id": "a", "type": "noop"}]})
    workflow["a"] >> workflow.node("b", "noop", value=workflow["a"].output)

    assert workflow.document() == {
        "name": "w",
        "nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop", "with": {"value": "{{ nodes.a.output }}"}}],
        "edges": [{"from": "a", "to": "b"}],
    }


def test_a_workflow_is_loaded_from_a_file(tmp_path):
    file = tmp_path / "w.json"
    file.write_text('{"name": "w", "ropewalk": 1}')

    assert Workflow.load(file).document() == {"name": "w", "ropewalk": 1}


def test_neither_the_given_nor_the_returned_document_is_shared():
    given = {"name": "w", "vars": {"a": [1]}}
    workflow = Workflow.from_document(given)
    given["vars"]["a"].append(2)
    workflow.document()["vars"]["a"].append(3)

    assert workflow.document()["vars"] == {"a": [1]}


def test_an_output_of_none_is_the_default_one():
    workflow, a = chain("a")
    workflow.output = a.output
    workflow.output = None

    assert workflow.output is None
    assert "output" not in workflow.document()


def test_nodes_and_workflows_show_what_they_are():
    workflow, a = chain("a")

    assert [repr(workflow), repr(a), repr(a.on("x"))] == [
        "<workflow chain of 1 nodes>",
        "<node a of chain>",
        "<port x of <node a of chain>>",
    ]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda w, a, b: w.node("a", "noop"), "nodes[2].id: duplicate id 'a'"),
        (lambda w, a, b: w.edge("a", "bb"), "there is no node 'bb'"),
        (lambda w, a, b: w["ordr"], "there is no node 'ordr'"),
        (lambda w, a, b: [a >> b, a >> b], "there is an edge from a to b already"),
        (lambda w, a, b: [w.edge(a, b, on="x"), a.on("x") >> b], "there is an edge from a to b on 'x' already"),
        (lambda w, a, b: Workflow("other").node("c", "noop", after=a), "<node a of chain> belongs to another workflow"),
        (lambda w, a, b: w.node("c", "noop", value=Decimal(1)), "nodes[2].with.value: must be JSON, not Decimal"),
        (lambda w, a, b: w.node("c", "noop", value=[a]), "nodes[2].with.value[0]: must be JSON, not Node"),
        (lambda w, a, b: w.node("c", "noop", value=float("nan")), "nodes[2].with.value: must be a finite number"),
        (lambda w, a, b: w.node("c", "noop", value={1: 2}), "the key must be text"),
        (lambda w, a, b: Workflow("w", vars={"x": object()}), "vars.x: must be JSON, not object"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(build, message):
    workflow, a, b = chain("a", "b")

    with pytest.raises(InvalidDefinition) as refused:
        build(workflow, a, b)

    assert message in str(refused.value)


def test_a_value_that_holds_itself_is_refused():
    value = []
    value.extend([value, value])

    with pytest.raises(InvalidDefinition, match="nested more than 64 levels"):
        Workflow("w").node("a", "noop", value=value)


def test_two_functions_of_one_name_are_refused():
    workflow = Workflow("w")
    workflow.node("a", charge, amount=1)

    with pytest.raises(InvalidDefinition, match="two node types are called 'charge'"):
        workflow.node("b", node(name="charge")(print_nothing))


def print_nothing() -> None:
    return None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"amuont": 1}, "charge has no parameter 'amuont'; did you mean 'amount'?"),
        ({"amount": 1, "forEach": []}, "charge has no parameter 'forEach'; did you mean 'for_each'?"),
        ({"amount": 1, "retries": {}}, "charge has no parameter 'retries'; did you mean 'retry'?"),
        ({"amount": 1, "zzz": {}}, "charge has no parameter 'zzz'"),
        ({}, "charge needs amount"),
        ({"amount": 1, "on": "true"}, "on names a port of the nodes in after"),
    ],
)
def test_a_function_gets_the_arguments_it_asks_for_or_the_author_is_told(options, message):
    with pytest.raises(TypeError) as refused:
        Workflow("w").node("pay", charge, **options)

    assert str(refused.value).startswith(message)


def test_an_option_is_not_mistaken_for_a_parameter():
    with pytest.raises(TypeError, match=r"greet: name configures the node; give the parameter as with_=\{'name': …\}"):
        Workflow("w").node("a", greet, name="Ada")


def test_an_unknown_default_of_a_function_is_refused():
    misspelt = node(retires={"maxAttempts": 2})(print_nothing)

    with pytest.raises(TypeError, match="@node has no option 'retires'"):
        Workflow("w").node("a", misspelt)


def test_a_function_without_node_is_refused():
    with pytest.raises(TypeError, match="put @node on the function"):
        Workflow("w").node("a", print_nothing)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "(document): must be an object"),
        ({"nodes": {}}, "nodes: must be a list"),
        ({"nodes": [{"id": "a"}, {"type": "x"}, 3]}, "nodes[1]: must be an object with id\nnodes[2]: must be"),
        ({"edges": [{"from": "a"}]}, "edges[0]: must be an object with from and to"),
    ],
)
def test_a_document_that_is_no_workflow_is_refused_with_its_places(document, message):
    with pytest.raises(InvalidDefinition) as refused:
        Workflow.from_document(document)

    assert str(refused.value).startswith(message)


def test_a_node_says_what_undoes_it_and_what_comes_last():
    workflow = Workflow("order")
    pay = workflow.node("pay", charge, amount=3)
    pay.compensate(greet, name=pay.output, timeout="5s").compensate(charge, amount=pay.output, retry={"maxAttempts": 1})
    workflow.node("tell", "log", message="{{ execution.outcome }}", finally_=True)

    document = workflow.document()

    assert document["nodes"][0]["compensate"] == {
        "type": "charge",
        "timeout": "10s",
        "retry": {"maxAttempts": 1},
        "with": {"amount": "{{ nodes.pay.output }}"},
    }
    assert [node["id"] for node in document["finally"]] == ["tell"]
    assert list(parse_definition(document, registry_of(workflow).infos()).index) == ["pay", "tell", "pay.compensate"]
    assert Workflow.from_document(document)["tell"].id == "tell"
    with pytest.raises(InvalidDefinition, match="duplicate id"):
        workflow.node("tell", "noop")
