"""What the filter of a wait for an event sees: SPEC §3, 10."""

from typing import Any

import pytest

from ropewalk.core.errors import ErrorType
from ropewalk.core.events import NodeFailed, RunWaiting
from ropewalk.core.execution import Execution
from ropewalk.core.expression import ExpressionError, Scope, captured, compile_expression
from ropewalk.core.signals import Expanded, Start, Suspended
from ropewalk.core.waits import EventWait
from tests.core.executions import accepted, each, ok, tell, workflow

CHAIN = workflow("a b", "a->b")


def suspended(filter: str, output: Any = None, **given: Any) -> EventWait:  # noqa: A002 (the name authors write)
    """The wait of `b`, as it is recorded after `a` gave this."""
    execution = accepted(CHAIN, **given)
    tell(execution, Start(), ok("a", output))
    event = tell(execution, Suspended("b", 1, EventWait("paid", filter)))[0]
    assert isinstance(event, RunWaiting)
    assert isinstance(event.wait, EventWait)
    return event.wait


def test_a_filter_takes_along_the_values_it_reads_and_no_others():
    wait = suspended(
        "item.of == input.of and item.by == vars.who.name and item.n > nodes.a.output.n",
        {"n": 1, "secret": 2},
        input={"of": 7, "secret": 3},
        vars={"who": {"name": "ann", "secret": 4}},
    )

    assert wait.scope == {"input": {"of": 7}, "vars": {"who": {"name": "ann"}}, "nodes": {"a": {"output": {"n": 1}}}}


@pytest.mark.parametrize(
    ("filter", "scope"),
    [
        ("item.total > 3", None),
        ("input == item", {"input": {"of": 7, "list": [{"x": 1}]}}),
        ("input.of == item and input != null", {"input": {"of": 7, "list": [{"x": 1}]}}),
        ("input.list[0].x == item", {"input": {"list": [{"x": 1}]}}),
        ("input.none.deep == item", {"input": {}}),
        ("input.of.deep == item", {"input": {"of": 7}}),
        ("nodes.a.state == 'SUCCESS' and nodes.a.error == null", {"nodes": {"a": {"state": "SUCCESS", "error": None}}}),
        ("workspace == 'default' and execution.id == item", {"workspace": "default", "execution": {"id": "e1"}}),
        ("index == null", {"index": None}),
    ],
)
def test_what_a_filter_takes_along_is_what_its_paths_lead_to(filter: str, scope: Any):  # noqa: A002 (the author's name)
    assert suspended(filter, input={"of": 7, "list": [{"x": 1}]}).scope == scope


def test_a_node_type_cannot_make_up_what_its_filter_sees():
    execution = accepted(workflow("a"))

    event = tell(execution, Start(), Suspended("a", 1, EventWait("paid", "item == 1", {"no such name": 1})))[-2]

    assert isinstance(event, RunWaiting)
    assert event.wait == EventWait("paid", "item == 1")


@pytest.mark.parametrize(
    "source", ["input.of", "input.none.deep", "input.of.deep", "input.list[0].x", "input", "index"]
)
def test_an_expression_gives_the_same_over_the_values_taken_along(source: str):
    scope = Scope(input={"of": 7, "list": [{"x": 1}]}, index=3)
    expression = compile_expression(source)
    part = Scope(**captured(scope, expression.references))

    def outcome(of: Scope) -> Any:
        try:
            return expression.evaluate(of)
        except ExpressionError as error:
            return str(error)

    assert outcome(part) == outcome(scope)


def test_a_map_hands_each_filter_its_own_index():
    execution = accepted(workflow([each("a")]), input=[1, 2])
    tell(execution, Start(), Expanded("a", 1, 2))

    event = tell(execution, Suspended("a", 1, EventWait("paid", "item == input[index]"), item=1))[0]

    assert isinstance(event, RunWaiting)
    assert isinstance(event.wait, EventWait)
    assert event.wait.scope == {"input": [1, 2], "index": 1}


def failure(execution: Execution, filter: str) -> NodeFailed:  # noqa: A002 (the name authors write)
    event = tell(execution, Start(), Suspended("a", 1, EventWait("paid", filter)))[-2]
    assert isinstance(event, NodeFailed)
    return event


def test_a_filter_that_reads_too_much_fails_its_node_for_good():
    error = failure(accepted(workflow("a"), input={"text": "x" * 20_000}), "item == input.text").error

    assert error.type is ErrorType.PERMANENT
    assert "16,384 bytes" in error.message


def test_a_filter_of_an_earlier_version_that_is_made_of_text_fails_its_node_for_good():
    plan = workflow([{"id": "a", "type": "wait", "with": {"event": "paid", "filter": 'item.of == "{{ input.of }}"'}}])

    error = failure(accepted(plan, input={"of": 'me" or true or "'}), 'item.of == "me" or true or ""').error

    assert error.type is ErrorType.PERMANENT
    assert "write the expression itself" in error.message
