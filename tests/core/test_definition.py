"""What a definition may say, and what it hears when it says something else."""

import math

import pytest

from ropewalk.core.definition import Definition, Limits, parse_definition
from ropewalk.core.errors import InvalidDefinition, InvalidInput
from tests.core.node_types import NODE_TYPES

REFUND = {
    "ropewalk": 1,
    "name": "refund",
    "input": {"type": "object", "required": ["orderId"], "properties": {"orderId": {"type": "string"}}},
    "vars": {"shop": "https://shop.example"},
    "timeout": "10m",
    "onFailure": "continue",
    "concurrencyKey": "{{ input.orderId }}",
    "nodes": [
        {
            "id": "order",
            "type": "http.request",
            "with": {"url": "{{ vars.shop }}/orders/{{ input.orderId }}"},
            "retry": {"maxAttempts": 5, "delay": "1s", "factor": 2, "maxDelay": "1m", "jitter": 0.5},
            "timeout": "30s",
        },
        {"id": "big", "type": "if", "with": {"condition": "{{ nodes.order.output.body.total > 100 }}"}},
        {"id": "ask", "type": "approval", "with": {"title": "Refund {{ input.orderId }}?"}, "timeout": "2d"},
        {"id": "pay", "type": "http.request", "with": {"method": "POST", "url": "{{ vars.shop }}/refunds"}},
        {
            "id": "notify",
            "type": "email.send",
            "forEach": "{{ nodes.order.output.body.watchers }}",
            "concurrency": 5,
            "with": {"to": "{{ item }}"},
        },
        {"id": "alert", "type": "log", "with": {"message": "refund failed: {{ nodes.pay.error.message }}"}},
    ],
    "edges": [
        {"from": "order", "to": "big"},
        {"from": "big", "to": "ask", "on": "true"},
        {"from": "big", "to": "pay", "on": "false"},
        {"from": "ask", "to": "pay", "on": "approved"},
        {"from": "pay", "to": "notify"},
        {"from": "pay", "to": "alert", "on": "error"},
    ],
    "output": "{{ nodes.pay.output.body }}",
}
PORTS = [f"p{i}" for i in range(30)]
FIRST_PORTS = ", ".join(PORTS[:20])
NO_PORT = "a port cannot be named 'error', which is the edge of failures"
NO_WORD = "the node type '{}' cannot say which ports these parameters give it"
NO_NAMES = "ports_with must answer with a tuple of names, or with None"
NO_DURATION = "is no duration; write it like 30s, 5m, 1h30m, 2d or PT30S"


def document(nodes="a b", *edges, **fields):
    """`document("a b", "a-b")`: no-ops, unless a node is given as a dict."""
    listed = [{"id": each} for each in nodes.split()] if isinstance(nodes, str) else nodes
    ends = [dict(zip(("from", "to", "on"), each.split("-"), strict=False)) for each in edges]
    return {"name": "test", "nodes": [{"type": "noop", **node} for node in listed], "edges": ends, **fields}


def problems(written, limits=None):
    with pytest.raises(InvalidDefinition) as refused:
        parse_definition(written, NODE_TYPES, *([limits] if limits else []))
    return [str(problem) for problem in refused.value.problems]


def node(**fields):
    return document([{"id": "a", **fields}])


def choice(ports, *edges, **fields):
    """`a` says in its parameters which ports it has."""
    return document([{"id": "a", "type": "choose", "with": {"ports": ports}, **fields}, {"id": "b"}], *edges)


def trigger(**fields):
    return document(triggers=[fields])


def test_the_example_of_the_specification_is_a_definition():
    definition = parse_definition(REFUND, NODE_TYPES)

    assert (definition.name, len(definition.nodes), definition.vars) == ("refund", 6, REFUND["vars"])


@pytest.mark.parametrize(
    "written",
    [
        {"name": "empty"},
        {"name": "empty", "nodes": [], "edges": []},
        document("a b c d", "a-b", "c-d"),
        document([{"id": "s", "type": "switch"}, {"id": "b"}], "s-b-anything at all", "s-b-error", "s-b"),
        choice(["b"], "a-b-b", "a-b-error"),
        choice(None, "a-b-anything at all"),
        choice(["b"], "a-b-error", forEach=[1]),
        document([{"id": "w", "type": "approval"}, {"id": "b"}], "w-b-expired", "w-b-rejected"),
        document([{"id": "w", "type": "listen"}, {"id": "b"}], "w-b-expired", "w-b-arrived"),
        node(forEach=[1, 2], failureTolerance="12.5%", concurrency=10_000, **{"with": {"x": "{{ item }}{{ index }}"}}),
        node(cache={"ttl": "1d"}, pool="gpu", credentials="shop", ui={"x": 1, "y": [2]}, name="A node"),
        node(credentials={"source": "shop", "target": "bank"}, failureTolerance=3),
        node(forEach=[1], onItemFailure="stop", deadLetters="beyondTolerance"),
        node(forEach="{{ input }}", onItemFailure="continue", deadLetters="always", failureTolerance="10%"),
        document(output={"all": ["{{ nodes.a.output }}", "{{ nodes.b.state }}"]}),
        document(
            triggers=[
                {
                    "cron": "*/5 * * * *",
                    "zone": "Europe/Berlin",
                    "overlap": "skip",
                    "misfire": "latest",
                    "jitter": "5s",
                },
                {"every": "15m", "aligned": False, "overlap": "queue", "when": "{{ vars.on }}"},
                {"event": "order.*", "filter": "{{ event.total > 5 }}", "input": {"id": "{{ event.id }}"}},
                {
                    "webhook": "orders",
                    "methods": ["POST"],
                    "auth": "hmac",
                    "credential": "shop",
                    "dedupeKey": "{{ event.id }}",
                },
                {"queue": "ORDERS", "credential": "nats", "subject": "orders.new", "priority": 9, "enabled": False},
            ]
        ),
    ],
)
def test_what_is_legal_is_accepted(written):
    assert parse_definition(written, NODE_TYPES).document is written


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, ["(document): needs the field 'name'"]),
        ([], ["(document): must be an object, not a list"]),
        (None, ["(document): must be an object, not null"]),
        (document(name=""), ["name: '' must be a line of text"]),
        (document(ropewalk=2), ["ropewalk: must be an integer from 1 to 1"]),
        (document(ropewalk=True), ["ropewalk: must be an integer from 1 to 1"]),
        ({"name": "x", "nodes": {}}, ["nodes: must be a list, not an object"]),
        ({"name": "x", "edges": "a"}, ["edges: must be a list, not text"]),
        (document(timeout="5 minutes"), [f"timeout: '5 minutes' {NO_DURATION}"]),
        (document(timeout=0), ["timeout: must be from 1ms to 52w1d"]),
        (document(timeout="2000w"), ["timeout: must be from 1ms to 52w1d"]),
        (document(onFailure="explode"), ["onFailure: 'explode' must be one of continue, stop, cancel"]),
        (document(maxParallel=0), ["maxParallel: must be an integer from 1 to 100000"]),
        (document(vars=[1]), ["vars: must be an object, not a list"]),
        (document(vars={"x": math.nan}), ["vars.x: must be a finite number"]),
        (document(vars={"x": 2**53 + 1}), ["vars.x: must be an integer within ±2⁵³"]),
        (document(vars={"x": "\ud800"}), ["vars.x: must be text without NUL and lone surrogates"]),
        (document(vars={7: 1}), ["vars.7: the key must be text without NUL and lone surrogates"]),
        (document(vars={"x": b"bytes"}), ["vars.x: must be JSON, not bytes"]),
        (document(input={"uniqueItems": 1}), ["input.uniqueItems: must be true or false, not a number"]),
        (document(concurrencyKey="{{ vars.x }}"), ["concurrencyKey: cannot use vars here: it sees input only"]),
        (document(triggers=[{}]), ["triggers[0]: needs exactly one of the fields cron, every, event, webhook, queue"]),
        (trigger(cron="*"), ["triggers[0].cron: '*' must be five or six fields, or a word like @daily"]),
        (trigger(event="a", filter="input.x"), ["triggers[0].filter: must hold an {{ expression }}"]),
        (trigger(event="a", filter="{{ item }}"), ["triggers[0].filter: cannot use item here: nothing has run yet"]),
        (
            trigger(event="a", input="{{ input }}"),
            ["triggers[0].input: cannot use input here: a trigger sees event and vars"],
        ),
        (
            node(**{"with": {"message": "{{ event.body }}"}}),
            ["nodes[0].with.message: cannot use event here: only a trigger has it; its `input` hands it on"],
        ),
        (
            trigger(event="a..b"),
            ["triggers[0].event: 'a..b' is no pattern; write it like order.paid, order.* or order.>"],
        ),
        (
            trigger(cron="@daily", zone="Mars/X"),
            ["triggers[0].zone: there is no zone 'Mars/X'; write its IANA name, such as Europe/Berlin or UTC"],
        ),
        (trigger(every="0s"), ["triggers[0].every: must be from 1s to 52w2d"]),
        (
            document(triggers=[{"every": "1m", "name": "a"}, {"every": "2m", "name": "a"}]),
            ["triggers[1].name: 'a' is the name of triggers[0] already"],
        ),
        (node(id="1a"), ["nodes[0].id: '1a' must be a letter, then letters, digits or _, 64 at most"]),
        (node(id="a" * 65), ["nodes[0].id: must have at most 64 characters"]),
        (node(id=["a"]), ["nodes[0].id: must be text, not a list"]),
        ({"name": "x", "nodes": [5]}, ["nodes[0]: must be an object, not a number"]),
        (node(type="nope"), ["nodes[0].type: unknown node type 'nope'"]),
        (node(type={}), ["nodes[0].type: must be text, not an object"]),
        (document("a b a"), ["nodes[2].id: duplicate id 'a', first used by nodes[0]"]),
        (node(concurrency=10_001), ["nodes[0].concurrency: must be an integer from 1 to 10000"]),
        (node(failureTolerance="110%"), ["nodes[0].failureTolerance: '110%' must be a count, or a share like 10%"]),
        (node(failureTolerance=-1), ["nodes[0].failureTolerance: must be an integer from 0 to 100000"]),
        (
            node(onItemFailure="continue", deadLetters="always"),
            [
                "nodes[0].onItemFailure: has an effect only together with 'forEach', which is missing",
                "nodes[0].deadLetters: has an effect only together with 'forEach', which is missing",
            ],
        ),
        (node(forEach=[], onItemFailure=True), ["nodes[0].onItemFailure: a boolean must be one of stop, continue"]),
        (node(forEach=[], deadLetters="no"), ["nodes[0].deadLetters: 'no' must be one of beyondTolerance, always"]),
        (node(retry={"maxAttempts": 0}), ["nodes[0].retry.maxAttempts: must be an integer from 1 to 100"]),
        (node(retry={"factor": math.nan}), ["nodes[0].retry.factor: must be a number from 1 to 100"]),
        (node(retry={"jitter": 1.5}), ["nodes[0].retry.jitter: must be a number from 0 to 1"]),
        (node(retry={"delay": -1}), ["nodes[0].retry.delay: must be from 0s to 52w1d"]),
        (node(retry=3), ["nodes[0].retry: must be an object, not a number"]),
        (node(cache={}), ["nodes[0].cache: needs the field 'ttl'"]),
        (node(credentials={"a": 5}), ["nodes[0].credentials.a: must be text, not a number"]),
        (document([{"id": "a", "type": "log", "with": {"message": "x"}, "credentials": "shop"}]),
         ["nodes[0].credentials: log takes no credentials; leave the field out"]),
        (document([{"id": "a", "type": "listen", "credentials": {"left": "x", "up": "y"}}]),
         ["nodes[0].credentials.up: listen takes no credential 'up'; it takes left, right"]),
        (document([{"id": "a", "type": "listen", "credentials": "x"}]),
         ["nodes[0].credentials: say which is for what: listen takes left, right"]),
        (node(ui=5), ["nodes[0].ui: must be an object, not a number"]),
        (node(forEach=5), ["nodes[0].forEach: must be text, not a number"]),
        (node(forEach="abc"), ["nodes[0].forEach: must hold an {{ expression }}"]),
        (node(forEach="{{ item }}"), ["nodes[0].forEach: cannot use item here: forEach makes the items"]),
        (document("a b", "a-c"), ["edges[0].to: there is no node 'c'"]),
        (document("a b", "c-b"), ["edges[0].from: there is no node 'c'"]),
        (document("a b", "a-b", "a-b"), ["edges[1]: is the same as edges[0]"]),
        (document("a b", "a-b-error", "a-b", "a-b-error"), ["edges[2]: is the same as edges[0]"]),
        (document("a b", "a-b-true"), ["edges[0].on: noop has no port 'true'; it has error"]),
        (document("a b", "a-b-expired"), ["edges[0].on: noop has no port 'expired'; it has error"]),
        (document("a b", "a-b-arrived"), ["edges[0].on: noop has no port 'arrived'; it has error"]),
        (document([{"id": "w", "type": "approval"}, {"id": "b"}], "w-b-arrived"),
         ["edges[0].on: approval has no port 'arrived'; it has approved, rejected, error, expired"]),
        (choice(["b"], "a-b-b", "a-b-c"), ["edges[1].on: choose has no port 'c'; it has b, error"]),
        (choice([], "a-b-b"), ["edges[0].on: choose has no port 'b'; it has error"]),
        (choice(PORTS, "a-b-x"), [f"edges[0].on: choose has no port 'x'; it has {FIRST_PORTS}, … (30 ports), error"]),
        (choice(["b"], "a-b-b", forEach=[1]), ["edges[0].on: a node with forEach has no port 'b'; it has error"]),
        (choice(["error"], "a-b-error"), [f"nodes[0].with: {NO_PORT}"]),
        (choice(["b", "error"], forEach=[1]), [f"nodes[0].with: {NO_PORT}"]),
        (document([{"id": "a", "type": "torn"}, {"id": "b"}], "a-b-b", "a-b-c"),
         [f"nodes[0].with: {NO_WORD.format('torn')}: KeyError: 'ports'"]),
        (choice(["b", 5]), [f"nodes[0].with: {NO_WORD.format('choose')}: TypeError: {NO_NAMES}"]),
        (choice("b"), [f"nodes[0].with: {NO_WORD.format('choose')}: TypeError: {NO_NAMES}"]),
        (document([{"id": "w", "type": "approval", "forEach": [1]}, {"id": "b"}], "w-b-expired"),
         ["edges[0].on: a node with forEach has no port 'expired'; it has error"]),
        (document("a", "a-a"), ["edges[0]: makes a cycle: a → a"]),
        (document("a b c d", "a-b", "b-c", "c-d", "d-b"), ["edges[3]: makes a cycle: b → c → d → b"]),
        (document(edges=[{"from": "a", "to": "b", "on": True}]), ["edges[0].on: must be text, not a boolean"]),
        (document(edges=[{"from": ["a"], "to": "b"}]), ["edges[0].from: must be text, not a list"]),
        (document(edges=[{"from": "a"}]), ["edges[0]: needs the field 'to'"]),
        (document(edges=["a-b"]), ["edges[0]: must be an object, not text"]),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_refused_with_its_place(written, expected):
    assert problems(written) == expected


@pytest.mark.parametrize(
    ("written", "where"),
    [
        (document(colour="red"), "colour"),
        (node(colour="red"), "nodes[0].colour"),
        (node(retry={"colour": 1}), "nodes[0].retry.colour"),
        (node(cache={"ttl": 1, "colour": 1}), "nodes[0].cache.colour"),
        (document(edges=[{"from": "a", "to": "b", "colour": 1}]), "edges[0].colour"),
        (document(triggers=[{"cron": "@daily", "filter": "{{ 1 }}"}]), "triggers[0].filter"),
        (document(triggers=[{"event": "a", "zone": "UTC"}]), "triggers[0].zone"),
        (document(triggers=[{"webhook": "a", "colour": 1}]), "triggers[0].colour"),
        (document(triggers=[{"queue": "a", "colour": 1}]), "triggers[0].colour"),
    ],
)
def test_an_unknown_field_is_refused_everywhere(written, where):
    assert [problem.split(";")[0] for problem in problems(written)] == [f"{where}: unknown field"]


def request(**parameters):
    return document([{"id": "a", "type": "http.request", "with": parameters}])


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, ["nodes[0].with: needs the field 'url'"]),
        ({"url": 5}, ["nodes[0].with.url: must be text, not a number"]),
        ({"url": "short"}, ["nodes[0].with.url: must have at least 8 characters, not 5"]),
        ({"url": "{{ vars.x }}", "retries": "n{{ vars.n }}"}, ["nodes[0].with.retries: must be an integer, not text"]),
        ({"url": "{{ vars.x }}", "method": "PUT"}, ["nodes[0].with.method: must be one of 'GET', 'POST'"]),
        ({"url": "{{ vars.x }}", "mhd": "GET"}, ["nodes[0].with.mhd: unknown field; known are url, method, retries"]),
    ],
)  # fmt: skip
def test_parameters_must_fit_the_node_type(parameters, expected):
    assert problems(request(**parameters)) == expected


def test_parameters_that_are_not_known_yet_are_let_through():
    written = request(url="{{ vars.x }}", method="{{ vars.m }}", retries="{{ vars.n }}")

    assert parse_definition(written, NODE_TYPES).nodes == written["nodes"]


def using(*texts, **fields):
    """A chain a → b → c and a bystander d, where c uses these texts."""
    nodes = [{"id": "a"}, {"id": "b"}, {"id": "c", "with": {"deep": list(texts)}, **fields}, {"id": "d"}]
    return document(nodes, "a-b", "b-c")


@pytest.mark.parametrize("text", ["{{ nodes.a.output }}", "x {{ nodes.b.error.message }} {{ nodes.a.state }}"])
def test_a_node_may_refer_to_every_ancestor(text):
    assert parse_definition(using(text), NODE_TYPES).name == "test"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ nodes.d.output }}", "refers to d, which does not come before this node"),
        ("{{ nodes.c.output }}", "refers to c, which does not come before this node"),
        ("{{ nodes.x.output }}", "there is no node 'x'"),
        ("{{ item }}", "cannot use item here: only a node with forEach has it"),
        ("{{ index }}", "cannot use index here: only a node with forEach or repeat has it"),
    ],
)
def test_a_reference_that_can_have_no_value_is_refused(text, reason):
    assert problems(using("fine", "{{ nodes.a.output }}", text)) == [f"nodes[2].with.deep[2]: {reason}"]


def listening(text, **fields):
    """A chain a → b → c and a bystander d, where c waits for an event with this filter."""
    wait = {"id": "c", "type": "listen", "with": {"event": "paid.{{ input.id }}", "filter": text}, **fields}
    return document([{"id": "a"}, {"id": "b"}, wait, {"id": "d"}], "a-b", "b-c")


@pytest.mark.parametrize(
    "text", ["item.of == input.of", "item == vars.x and nodes.a.output.n < item.n", "env.A == workspace", "'x' == item"]
)
def test_a_filter_may_use_the_names_of_its_node_and_the_event_as_item(text):
    assert parse_definition(listening(text), NODE_TYPES).name == "test"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("item.of == nodes.d.output", "refers to d, which does not come before this node"),
        ("item.of == nodes.x.output", "there is no node 'x'"),
        ("item.of == index", "cannot use index here: only a node with forEach or repeat has it"),
        ("item.of == inptu.of", "at 11: unknown name 'inptu'; did you mean input? there are "),
        ("item.of ==", "at 10: "),
    ],
)
def test_a_filter_that_can_have_no_value_is_refused(text, reason):
    (problem,) = problems(listening(text))

    assert problem.startswith(f"nodes[2].with.filter: {reason}")


@pytest.mark.parametrize("text", ['item.of == "{{ input.of }}"', "{{ vars.filter }}", 'item == {{ "1" }}'])
def test_a_filter_that_is_made_of_text_is_refused_with_what_to_write_instead(text):
    assert problems(listening(text)) == [
        "nodes[2].with.filter: must not be made of text with {{ }}: write the expression itself, which sees input, "
        "vars and nodes by value, like item.id == input.id"
    ]


def test_a_bad_expression_is_refused_with_its_position():
    [problem] = problems(using("{{ nodes.a.output }}", "a {{ 1 + }}"))

    assert problem.startswith("nodes[2].with.deep[1]: ")
    assert "9" in problem


def test_a_reference_in_the_output_need_only_exist():
    assert problems(document(output=["{{ nodes.a.output }}", "{{ nodes.x.output }}", "{{ item }}"])) == [
        "output[1]: there is no node 'x'",
        "output[2]: cannot use item here: only a node with forEach has it",
    ]


def test_all_problems_are_told_at_once():
    written = document(
        [{"id": "a", "timeout": "x"}, {"id": "a", "type": "log"}, {"id": "c", "type": "?", "with": {"x": "{{ ( }}"}}],
        "a-z", "c-c",
        input={"type": 5}, vars=1, extra=1,
    )  # fmt: skip

    assert [problem.split(": ")[0] for problem in problems(written)] == [
        "vars", "extra", "nodes[1].id", "nodes[0].timeout", "nodes[1].with", "nodes[2].type", "nodes[2].with.x",
        "edges[0].to", "edges[1]", "input.type",
    ]  # fmt: skip


def test_limits_bound_the_size_and_can_be_raised():
    written = document("a b c", "a-b", "b-c")

    assert problems(written, Limits(nodes=2, edges=1)) == [
        "nodes: has 3 nodes, at most 2 are allowed",
        "edges: has 2 edges, at most 1 are allowed",
    ]
    assert parse_definition(written, NODE_TYPES, Limits(nodes=3, edges=2)).name == "test"


def test_the_default_limits_are_ten_thousand_nodes_and_fifty_thousand_edges():
    written = {"name": "x", "nodes": [{}] * 10_001, "edges": [{}] * 50_001}

    assert [problem.split(":")[0] for problem in problems(written)] == ["nodes", "edges"]


def test_the_hash_ignores_the_order_of_keys_and_nothing_else():
    same = dict(reversed(REFUND.items()))
    moved = {**REFUND, "nodes": [{**REFUND["nodes"][0], "ui": {"x": 1}}, *REFUND["nodes"][1:]]}

    hashes = [Definition(each).content_hash for each in (REFUND, same, moved)]

    assert hashes[0] == hashes[1] != hashes[2]


def test_an_input_is_checked_against_the_schema():
    definition = parse_definition(REFUND, NODE_TYPES)
    definition.check_input({"orderId": "7"})

    with pytest.raises(InvalidInput, match=r"^input\.orderId: must be text, not a number$"):
        definition.check_input({"orderId": 7})


def test_without_a_schema_any_json_is_an_input_and_nothing_else():
    definition = parse_definition(document(), NODE_TYPES)
    definition.check_input([1, {"x": None}])

    with pytest.raises(InvalidInput, match="must be a finite number"):
        definition.check_input({"x": math.inf})
