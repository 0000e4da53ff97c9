"""Worst documents the limits allow, as data: each a workflow and what is asked of a server to make it do its worst.

`WORST` is what campaigns go through: `/healthz` has to answer within 100 ms (p99) beside each of them.
"""

from itertools import pairwise
from typing import Any

from msgspec import Struct

Json = dict[str, Any]

COSTLY = "{{ map(range(0, 90), a => map(range(0, 9), b => a * b + 1)) }}"
"""Nearly all the steps an expression has without large values."""
FILTER = "length(filter(map(range(0, 100), a => a * 2), a => any(range(0, 8), b => a == b))) > 0 and item.of == 'x'"


class Ask(Struct, frozen=True):
    """One request under /api/v1; `{id}` in the body stands for the id of the workflow."""

    method: str
    path: str
    body: Json
    times: int = 1


class Worst(Struct, frozen=True):
    """A workflow that is saved first, and the requests that are made then, all at once."""

    name: str
    document: Json
    asks: tuple[Ask, ...]


def start(value: Any = None, times: int = 1) -> Ask:
    return Ask("POST", "/workflow/executions/start", {"workflowDefinitionId": "{id}", "input": value}, times)


def batch(*values: Any) -> Ask:
    starts = [{"workflowDefinitionId": "{id}", "input": value} for value in values]
    return Ask("POST", "/workflow/executions/start-batch", {"starts": starts})


def document(name: str, nodes: list[Json], edges: list[Json] | None = None, **fields: Any) -> Json:
    return {"ropewalk": 1, "name": name, "nodes": nodes, "edges": edges or [], **fields}


def setting(node: str, values: Json, **fields: Any) -> Json:
    return {"id": node, "type": "set", "with": {"values": values}, **fields}


def _map_of_costly_expressions() -> Worst:
    values = {f"v{n}": COSTLY for n in range(60)}
    nodes = [setting("each", values, forEach="{{ range(0, 400) }}", concurrency=400)]
    return Worst("a map times a costly expression", document("map", nodes), (start(),))


def _wide_with_costly_expressions() -> Worst:
    nodes = [setting(f"n{n}", {"a": COSTLY, "b": COSTLY}) for n in range(2_000)]
    return Worst("a wide fan-out of costly expressions", document("wide", nodes), (start(),))


def _long_texts() -> Worst:
    text = "{{ input.name }} of {{ input.count + 1 }}, " * 4_000
    nodes = [setting(f"n{n}", {"text": text}) for n in range(20)]
    return Worst("long texts of many expressions", document("texts", nodes), (start({"name": "x", "count": 1}, 5),))


def _large_schema() -> Worst:
    schema = {"type": "array", "allOf": [{"items": {"anyOf": [{"minimum": n}, {"maximum": n}]}} for n in range(200)]}
    value = list(range(20_000))
    return Worst("an input that takes long to check", document("schema", [], input=schema), (start(value, 10),))


def _chained_schema() -> Worst:
    steps = {f"l{n}": {"items": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2}} for n in range(30)}
    schema = {"$ref": "#/$defs/l0", "$defs": {**steps, "l30": {"type": "array"}}}
    value: Any = []
    for _ in range(30):
        value = [value, value][:1]
    return Worst("chained references, in a batch", document("chained", [], input=schema), (batch(*[value] * 1_000),))


def _deep_values() -> Worst:
    value: Any = list(range(200))
    for _ in range(50):
        value = {"below": value, "beside": list(range(200))}
    nodes = [setting(f"n{n}", {"all": "{{ input }}", "copy": "{{ [input] }}"}) for n in range(200)]
    return Worst("deep and large values", document("deep", nodes), (start(value, 3),))


def _many_patterns() -> Worst:
    pattern = "(x?){40}(y|z)*w"
    calls = {f"v{n}": f"{{{{ matches(input, '{pattern}{n}') }}}}" for n in range(100)}
    nodes = [setting(f"n{n}", calls) for n in range(50)]
    return Worst("many patterns", document("patterns", nodes), (start("x" * 2_000, 3),))


def _huge_concurrency() -> Worst:
    nodes = [setting("each", {"a": "{{ item * 2 }}"}, forEach="{{ input }}", concurrency=10_000)]
    return Worst("a map of very many at once", document("many", nodes), (start(list(range(20_000))),))


def _ten_thousand_nodes() -> Worst:
    nodes = [setting(f"n{n}", {"a": "{{ input.count + " + str(n) + " }}"}) for n in range(10_000)]
    return Worst("10,000 nodes with expressions", document("nodes", nodes), (start({"count": 1}),))


def _skipped_edges() -> Worst:
    first: Json = {"id": "first", "type": "if", "with": {"condition": "{{ input }}"}}
    layers = [[f"n{layer}_{n}" for n in range(200)] for layer in range(40)]
    nodes: list[Json] = [first, *({"id": node, "type": "noop"} for layer in layers for node in layer)]
    edges: list[Json] = [{"from": "first", "to": node, "on": "true"} for node in layers[0]]
    for above, below in pairwise(layers):
        edges += [{"from": above[(n + k) % 200], "to": below[n]} for n in range(200) for k in range(6)]
    return Worst("many skipped nodes and edges", document("skipped", nodes, edges), (start(False, 5),))


def _costly_output() -> Worst:
    output = {f"v{n}": "{{ filter(map(input, x => x * 2 + 1), x => x > 3 and x < 90000) }}" for n in range(10)}
    value = list(range(10_000))
    return Worst("an output over large values", document("output", [], output=output), (start(value, 10),))


def _many_filters() -> Worst:
    waiting = {"id": "late", "type": "wait", "with": {"event": "order.paid", "filter": FILTER}}
    publish = Ask("POST", "/events", {"subject": "order.paid", "payload": {"of": "y"}}, times=3)
    return Worst("a filter asked by many waits", document("filters", [waiting]), (batch(*[None] * 300), publish))


def _large_batches() -> Worst:
    schema = {"type": "object", "properties": {"rows": {"items": {"type": "integer"}}}}
    values = [{"rows": list(range(180))} for _ in range(1_000)]
    key = "{{ text(sum(input.rows)) }}"
    one = document("batches", [setting("a", {"n": "{{ length(input.rows) }}"})], input=schema, concurrencyKey=key)
    return Worst("batches of large inputs", one, (batch(*values), batch(*values)))


def _evaluations() -> Worst:
    body = {"expression": " ".join([COSTLY] * 60), "context": {}}
    ask = Ask("POST", "/workflow/expressions/evaluate", body, times=200)
    return Worst("200 evaluations at once", document("evaluations", []), (ask,))


WORST: tuple[Worst, ...] = (
    _map_of_costly_expressions(),
    _wide_with_costly_expressions(),
    _long_texts(),
    _large_schema(),
    _chained_schema(),
    _deep_values(),
    _many_patterns(),
    _huge_concurrency(),
    _ten_thousand_nodes(),
    _skipped_edges(),
    _costly_output(),
    _many_filters(),
    _large_batches(),
    _evaluations(),
)
