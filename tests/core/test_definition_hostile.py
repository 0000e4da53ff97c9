"""Definitions made to hurt: each is refused with paths, soon, and never with a crash."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.core.canonical import canonical
from ropewalk.core.definition import Limits, parse_definition
from ropewalk.core.definition.fields import EDGE, NODE, TOP
from ropewalk.core.errors import InvalidDefinition
from ropewalk.core.plan import compile_plan, load_plan
from tests.core.node_types import NODE_TYPES

MANY = 100_000
ROOM = Limits(nodes=MANY, edges=4 * MANY)
# Some thirty times what these take on a slow machine, and a hundredth of what a quadratic walk would.
SOON = 40

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["a", "b", "5s"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def like(record):
    """Objects with the right names and anything in them."""
    named = st.fixed_dictionaries({}, optional=dict.fromkeys(record.fields, JSON))
    typical = {"id": st.sampled_from("abc"), "from": st.sampled_from("abcd"), "to": st.sampled_from("abcd")}
    sound = {name: kind for name, kind in typical.items() if name in record.fields}
    if "type" in record.fields:
        sound["type"] = st.sampled_from(["noop", "log", "if", "?"])
    return named | st.fixed_dictionaries(sound) | st.fixed_dictionaries(sound, optional={"ui": JSON, "on": JSON})


DOCUMENTS = st.fixed_dictionaries(
    {"name": st.just("x") | JSON},
    optional={
        **{name: JSON for name in TOP.fields if name not in ("name", "nodes", "edges")},
        "nodes": st.lists(like(NODE), max_size=5) | JSON,
        "edges": st.lists(like(EDGE), max_size=6) | JSON,
    },
)


def sound(sizes, ends, options):
    """A document without fault: edges forward, options from the lists of what is legal."""
    size = len(sizes)
    edges = {tuple(sorted(pair)) for pair in ends if max(pair) < size and pair[0] != pair[1]}
    nodes = [{"id": f"n{i}", "type": "noop", **fields} for i, fields in enumerate(sizes)]
    return {
        "name": "x",
        "nodes": nodes,
        "edges": [{"from": f"n{source}", "to": f"n{target}"} for source, target in sorted(edges)],
        **options,
    }


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "with": st.sampled_from([{}, {"x": 1}, {"x": "{{ input.y }}", "z": ["{{ vars.v }} and {{ 1 + 2 }}"]}]),
        "forEach": st.sampled_from([[], ["{{ input.a }}"], "{{ input.list }}"]),
        "timeout": st.sampled_from(["5s", 0.5, "P1D"]),
        "retry": st.sampled_from([{}, {"delay": "1h"}, {"maxAttempts": 1, "factor": 1, "jitter": 0, "maxDelay": 0}]),
        "failureTolerance": st.sampled_from([0, 5, "5%", "99.99%"]),
        "concurrency": st.integers(1, 10_000),
    },
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "output": st.sampled_from([None, "{{ input.x }}", {"a": ["{{ vars.x }}"]}]),
        "timeout": st.sampled_from(["10m", 5]),
        "concurrencyKey": st.sampled_from(["all", "{{ input.x }}"]),
        "maxParallel": st.integers(1, 100_000),
    },
)
SOUND = st.builds(
    sound,
    st.lists(FIELDS, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8),
    OPTIONS,
)


def problems(written, limits=ROOM):
    before = time.process_time()
    with pytest.raises(InvalidDefinition) as refused:
        parse_definition(written, NODE_TYPES, limits)
    assert time.process_time() - before < SOON
    return refused.value.problems


def nested(levels, make=lambda inner: [inner]):
    value = 1
    for _ in range(levels):
        value = make(value)
    return value


def chain(length):
    return {
        "name": "chain",
        "nodes": [{"id": f"n{i}", "type": "noop"} for i in range(length)],
        "edges": [{"from": f"n{i}", "to": f"n{i + 1}"} for i in range(length - 1)],
    }


def definition_or_problems(written):
    try:
        return parse_definition(written, NODE_TYPES), ()
    except InvalidDefinition as refused:
        return None, refused.problems


@given(written=JSON | DOCUMENTS)
def test_any_json_is_a_definition_or_refused_with_reasons(written):
    definition, found = definition_or_problems(written)

    assert (definition is None) == bool(found)
    assert all(str(problem).encode() for problem in found)


@given(written=SOUND)
def test_what_is_sound_compiles_now_and_when_it_is_loaded_again(written):
    plan = compile_plan(parse_definition(written, NODE_TYPES))

    again = load_plan(plan.definition.canonical())

    assert told(plan) == told(again)


def told(plan):
    """What an execution may ask of a plan."""
    inputs = [plan.with_template(i).references for i in range(len(plan))]
    settings = (plan.retries, plan.timeouts, plan.concurrency, plan.tolerance, plan.timeout, plan.max_parallel)
    maps = (plan.goes_on, plan.keeps_letters)
    return plan.order, plan.targets, plan.ports, inputs, settings, maps, plan.definition.content_hash


def test_a_cycle_at_the_end_of_100_000_nodes_is_found():
    written = chain(MANY)
    written["edges"].append({"from": f"n{MANY - 1}", "to": f"n{MANY - 2}"})

    [problem] = problems(written)

    assert str(problem) == "edges[99999]: makes a cycle: n99998 → n99999 → n99998"


def test_a_cycle_of_100_000_nodes_is_told_in_short():
    written = chain(MANY)
    written["edges"].append({"from": f"n{MANY - 1}", "to": "n0"})

    [problem] = problems(written)

    assert problem.message.startswith("makes a cycle: n0 → n1 → ")
    assert problem.message.endswith(" → n19 → … (100000 nodes) → n0")


@pytest.mark.parametrize(
    "place",
    [
        lambda deep: deep,
        lambda deep: {"name": deep},
        lambda deep: {"name": "x", "vars": {"v": deep}},
        lambda deep: {"name": "x", "input": {"const": deep}},
        lambda deep: {"name": "x", "output": deep},
        lambda deep: {"name": "x", "nodes": deep},
        lambda deep: {"name": "x", "triggers": deep},
        lambda deep: {"name": "x", "triggers": [{"cron": "@daily", "input": deep}]},
        lambda deep: {"name": "x", "unknown": deep},
        lambda deep: {"name": "x", "edges": [{"from": deep, "to": deep}]},
        lambda deep: {"name": "x", "nodes": [{"id": "a", "type": "noop", "with": {"v": deep}}]},
        lambda deep: {"name": "x", "nodes": [{"id": "a", "type": "noop", "ui": {"v": deep}}]},
        lambda deep: {"name": "x", "nodes": [{"id": "a", "type": "noop", "forEach": [deep]}]},
        lambda deep: {"name": "x", "nodes": [{"id": deep, "type": deep, "retry": deep, "credentials": deep}]},
    ],
)
@pytest.mark.parametrize("make", [lambda inner: [inner], lambda inner: {"k": inner}], ids=["lists", "objects"])
def test_nesting_100_000_deep_is_refused_wherever_it_is(place, make):
    found = problems(place(nested(MANY, make)))

    assert found
    assert max(len(str(problem)) for problem in found) < 1_000


def test_nesting_up_to_64_levels_is_fine():
    written = {
        "name": "x",
        "nodes": [{"id": "a", "type": "noop", "with": {"v": nested(63)}}],
        "vars": {"v": nested(63)},
    }

    assert canonical(parse_definition(written, NODE_TYPES).document)


def test_100_000_duplicate_ids_make_a_hundred_problems_and_a_number():
    found = problems({"name": "x", "nodes": [{"id": "a", "type": "noop"}] * MANY})

    assert len(found) == 101
    assert found[-1].message == "… and 99899 more problems"


def test_100_000_nodes_that_are_wrong_in_every_way_are_refused_soon():
    wrong = {
        "id": "a b",
        "type": "?",
        "with": {"x": "{{ ( }}", "y": "{{ nodes.q.output }}"},
        "forEach": 5,
        "timeout": "x",
    }
    edges = [{"from": "q", "to": "r", "on": 5}] * MANY

    assert len(problems({"name": "x", "nodes": [wrong] * (MANY // 10), "edges": edges})) == 101


def test_references_across_a_long_chain_are_checked_soon():
    written = chain(20_000)
    for i, node in enumerate(written["nodes"][10_000:]):
        node["with"] = {"v": "{{ nodes.n%d.output }}" % i}  # noqa: UP031 braces are the subject here
    written["nodes"][5]["with"] = {"v": "{{ nodes.n19999.output }}"}

    [problem] = problems(written)

    assert str(problem) == "nodes[5].with.v: refers to n19999, which does not come before this node"


def test_huge_texts_and_keys_are_refused_in_short():
    huge = "x" * 5_000_000
    node = {"id": huge, "type": huge, "timeout": huge, "pool": huge, huge: 1, "retry": {huge: 1}}

    found = problems({"name": huge, huge: 1, "nodes": [node], "edges": [{"from": huge, "to": huge, "on": huge}]})

    assert len(found) == 13
    assert sum(len(str(problem)) for problem in found) < 5_000


def test_names_that_cannot_be_written_are_refused_in_words_that_can():
    half = "\ud800"

    found = problems({"name": half, half: 1, "nodes": [{"id": half, "type": half, half: 1, "with": {half: half}}]})

    assert all(str(problem).encode() for problem in found)
    assert len(found) >= 6
