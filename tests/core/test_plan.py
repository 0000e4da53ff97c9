"""The compiled plan: what it answers, and that size does not hurt it."""

import time
import tracemalloc

import msgspec
import pytest

from ropewalk.core.definition import Definition, Limits, parse_definition
from ropewalk.core.duration import HOUR, MINUTE, SECOND
from ropewalk.core.expression import Scope
from ropewalk.core.plan import compile_plan, load_plan
from ropewalk.core.retry import DEFAULT_RETRY, RetryPolicy
from tests.core.node_types import NODE_TYPES
from tests.core.test_definition import REFUND, document


def plan_of(written):
    return compile_plan(parse_definition(written, NODE_TYPES))


def test_nodes_are_numbered_in_document_order():
    plan = plan_of(REFUND)

    assert plan.ids == ("order", "big", "ask", "pay", "notify", "alert")
    assert plan.index["pay"] == 3
    assert plan.types[1] == "if"
    assert len(plan) == 6


def test_edges_are_adjacency_in_document_order_with_their_ports():
    plan = plan_of(REFUND)

    assert plan.targets == [(1,), (2, 3), (3,), (4, 5), (), ()]
    assert plan.ports == [(None,), ("true", "false"), ("approved",), (None, "error"), (), ()]
    assert plan.indegree == [0, 1, 1, 2, 1, 1]
    assert (plan.roots, plan.sinks, plan.order) == ([0], (4, 5), [0, 1, 2, 3, 4, 5])
    assert list(plan.has_error_edge) == [0, 0, 0, 1, 0, 0]
    assert "approved" in plan.port_names[2]
    assert plan.predecessors(3) == (1, 2)


def test_settings_of_nodes_are_values_and_not_text():
    plan = plan_of(REFUND)

    assert plan.retries[0] == RetryPolicy(max_attempts=5, delay=SECOND, factor=2.0, max_delay=MINUTE, jitter=0.5)
    assert plan.retries[1] is DEFAULT_RETRY
    assert (plan.timeouts[0], plan.timeouts[1]) == (30 * SECOND, None)
    assert (plan.concurrency[4], plan.concurrency[0]) == (5, 20)
    assert (plan.for_each[4] is not None, plan.for_each[0]) == (True, None)


def test_settings_of_the_whole_are_values_and_not_text():
    plan = plan_of(REFUND)

    assert (plan.timeout, plan.stop_on_failure, plan.max_parallel) == (10 * MINUTE, False, None)
    assert plan.output.references == (("nodes", "pay", "output", "body"),)
    assert plan.concurrency_key.resolve(Scope(input={"orderId": "7"})) == "7"


def test_a_document_that_sets_nothing_has_the_defaults():
    plan = plan_of({"name": "empty"})

    assert (plan.output, plan.concurrency_key, plan.timeout) == (None, None, None)
    assert (len(plan), plan.order, plan.roots, plan.sinks) == (0, [], [], ())


def test_inputs_are_compiled_at_first_use_and_kept():
    plan = plan_of(REFUND)

    resolved = plan.with_template(0).resolve(Scope(vars=REFUND["vars"], input={"orderId": 5}))

    assert resolved == {"url": "https://shop.example/orders/5"}
    assert plan.with_template(0) is plan.with_template(0)


def test_a_node_without_parameters_has_an_empty_input():
    assert plan_of(document("a")).with_template(0).resolve(Scope()) == {}


@pytest.mark.parametrize(
    ("written", "items", "tolerated"),
    [
        (0, 50, 0),
        (3, 50, 3),
        (3, 2, 3),
        ("10%", 50, 5),
        ("10%", 9, 0),
        ("29%", 100, 29),
        ("12.5%", 8, 1),
        ("100%", 7, 7),
    ],
)
def test_a_tolerance_is_a_count_or_an_exact_share(written, items, tolerated):
    plan = plan_of(document([{"id": "a", "forEach": [], "failureTolerance": written}]))

    assert plan.tolerated(0, items) == tolerated


def test_a_delay_longer_than_the_default_maximum_is_not_cut_short():
    plan = plan_of(
        document([{"id": "a", "retry": {"delay": "2h"}}, {"id": "b", "retry": {"delay": "2h", "maxDelay": "1h"}}])
    )

    assert (plan.retries[0].max_delay, plan.retries[1].max_delay) == (2 * HOUR, HOUR)


def test_the_configuration_hash_follows_the_work_and_ignores_the_rest():
    first = {"id": "a", "with": {"x": 1}}
    same_work = {"id": "b", "with": {"x": 1}, "name": "B", "retry": {"maxAttempts": 9}, "timeout": 5, "ui": {"x": 1}}
    others = [{**first, **change} for change in ({"with": {"x": 2}}, {"type": "set"}, {"forEach": [1]}, {"pool": "p"})]
    plan = plan_of(document([first, same_work, *({**other, "id": f"o{i}"} for i, other in enumerate(others))]))

    hashes = [plan.config_hash(i) for i in range(len(plan))]

    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 1 + len(others)


def test_a_stored_definition_gives_the_same_plan():
    plan = plan_of(REFUND)

    again = load_plan(plan.definition.canonical())

    assert (again.ids, again.targets, again.ports, again.order) == (plan.ids, plan.targets, plan.ports, plan.order)
    assert again.retries == plan.retries
    assert [again.config_hash(i) for i in range(6)] == [plan.config_hash(i) for i in range(6)]


def layered(size, width=100):
    """Layers of nodes, each with three edges from the layer before."""
    edges = [(i - width + (i + k) % width - i % width, i) for i in range(width, size) for k in (0, 1, 7)]
    return {
        "name": "layered",
        "nodes": [{"id": f"n{i}", "type": "noop"} for i in range(size)],
        "edges": [{"from": f"n{source}", "to": f"n{target}"} for source, target in edges],
    }


def test_100_000_nodes_and_300_000_edges_compile_in_seconds():
    written = msgspec.json.decode(msgspec.json.encode(layered(100_000)))
    before = time.process_time()

    plan = compile_plan(parse_definition(written, NODE_TYPES, Limits(nodes=100_000, edges=300_000)))

    # Two seconds on a quiet machine; the room is for busy ones.
    assert time.process_time() - before < 10
    assert plan.order == list(range(100_000))


def test_a_plan_of_20_000_nodes_takes_little_memory_beside_its_document():
    written = layered(20_000)
    tracemalloc.start()

    plan = compile_plan(Definition(written))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert taken / len(plan) < 1_000
