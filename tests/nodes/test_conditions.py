"""Condition rows."""

import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import ErrorType, InvalidDefinition
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.conditions import _ASKED, Comparison, Condition


@pytest.mark.parametrize(
    ("left", "operator", "right", "more"),
    [
        (1, "equals", 1.0, {}),
        ("1", "equals", 1, {"type": "number"}),
        ("Ada", "equals", "aDA", {"ignore_case": True}),
        ({"a": [1]}, "equals", {"a": [1.0]}, {}),
        ("2026-03-01T12:00:00+02:00", "equals", "2026-03-01T10:00:00Z", {"type": "datetime"}),
        (True, "notEquals", 1, {}),
        (None, "notEquals", 0, {}),
        (2, "greater", 1, {}),
        ("10", "greater", "9", {"type": "number"}),
        ("2026-03-02", "greater", "2026-03-01T12:00:00Z", {"type": "datetime"}),
        (2, "greaterOrEqual", 2, {}),
        ("a", "less", "b", {}),
        ("A", "lessOrEqual", "a", {"ignore_case": True}),
        ("invoice 17", "contains", "17", {}),
        ("Invoice", "contains", "INV", {"ignore_case": True}),
        (["a", 1], "contains", 1, {}),
        ({"a": 1}, "contains", "a", {}),
        (None, "notContains", "a", {}),
        ("abc", "startsWith", "ab", {}),
        (170, "startsWith", "17", {"type": "text"}),
        ("abc", "endsWith", "BC", {"ignore_case": True}),
        ("AB-12", "matches", "^[A-Z]+-[0-9]+$", {}),
        ("ab-12", "matches", "^[A-Z]+-", {"ignore_case": True}),
        (None, "notMatches", ".", {}),
        ("DE", "in", ["FR", "DE"], {}),
        ("de", "in", ["DE"], {"ignore_case": True}),
        (True, "notIn", [1], {}),
        (0, "exists", None, {}),
        (None, "missing", None, {}),
        ([], "empty", None, {}),
        (0, "notEmpty", None, {}),
    ],
)
def test_a_condition_holds(left, operator, right, more):
    asked = {} if operator in ("exists", "missing", "empty", "notEmpty") else {"right": right}
    aliases = {"ignore_case": "ignoreCase"}
    row = {"operator": operator, **asked, **{aliases.get(name, name): value for name, value in more.items()}}

    assert Comparison.model_validate(row).holds(left) is True


def test_every_operator_is_known():
    assert list(_ASKED) == list(Comparison.model_fields["operator"].annotation.__args__)


@pytest.mark.parametrize("operator", ["greater", "greaterOrEqual", "less", "lessOrEqual", "startsWith", "endsWith"])
def test_null_is_neither_less_nor_greater_than_anything(operator):
    assert Comparison.model_validate({"operator": operator, "right": "a"}).holds(None) is False


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"left": 1, "operator": "greater", "right": "a"}, "cannot compare a text and a number; say which type"),
        ({"left": "x", "operator": "less", "right": 5, "type": "number"}, "'x' cannot be read as a number"),
        ({"left": 1, "operator": "startsWith", "right": "1"}, "is no text on both sides"),
        ({"left": [], "operator": "less", "right": []}, "cannot compare"),
        ({"left": "x" * 70_000, "operator": "matches", "right": "a"}, "a text of at most 64 KiB"),
    ],
)
async def test_sides_that_cannot_be_compared_are_a_permanent_failure_with_the_row(run, row, message):
    with pytest.raises(NodeFailure) as caught:
        await run("if", {"conditions": [{"left": 1, "operator": "exists"}, row]})

    assert caught.value.error.type is ErrorType.PERMANENT
    assert caught.value.error.message.startswith("with.conditions[1]: ")
    assert message in caught.value.error.message


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"left": 1, "operator": "equals"}, "equals needs a right side: give right"),
        ({"left": 1, "operator": "exists", "right": 1}, "exists takes no right side"),
        ({"left": 1, "operator": "in", "right": 1}, "in needs a list as its right side"),
        ({"left": 1, "operator": "matches", "right": "("}, "cannot use the pattern '('"),
        ({"left": 1, "operator": "matches", "right": 1}, "a pattern must be text"),
        ({"left": 1, "operator": "less", "right": 1, "type": "object"}, "less compares no objects"),
        ({"left": 1, "operator": "endsWith", "right": "1", "type": "number"}, "endsWith is for texts"),
        ({"left": 1, "operator": "is", "right": 1}, "must be one of"),
        ({"left": 1, "right": 1, "type": "date"}, "must be one of"),
        ({"lefd": 1, "right": 1}, "unknown"),
    ],
)
def test_a_row_that_makes_no_sense_is_refused_when_it_is_saved(registry, row, message):
    document = {"ropewalk": 1, "name": "t", "nodes": [{"id": "a", "type": "if", "with": {"conditions": [row]}}]}

    with pytest.raises(InvalidDefinition) as refused:
        parse_definition(document, registry.infos())

    [problem] = refused.value.problems
    assert str(problem).startswith("nodes[0].with.conditions[0]")
    assert message in str(problem) or message == "unknown"


@pytest.mark.parametrize(("match", "port"), [("all", "false"), ("any", "true")])
async def test_all_conditions_must_hold_or_any(run, match, port):
    rows = [{"left": 1, "right": 1}, {"left": 1, "right": 2}]

    assert (await run("if", {"conditions": rows, "match": match})).ports == (port,)


def test_a_condition_is_equality_unless_it_says_otherwise():
    assert Condition.model_validate({"left": 5, "right": 5}).holds(5)


@pytest.mark.parametrize(
    ("ticket", "port"),
    [({"kind": "q"}, "question"), ({"age": 9}, "old"), ({"age": 1}, "rest"), ({"who": "Ada"}, "vip")],
)
async def test_a_switch_takes_the_first_case_that_fits_by_value_by_rows_or_by_expression(run, ticket, port):
    cases = [
        {"port": "question", "equals": "q"},
        {"port": "vip", "conditions": [{"left": ticket.get("who"), "operator": "in", "right": ["Ada"]}]},
        {"port": "old", "when": ticket.get("age", 0) > 7},
    ]

    made = await run("switch", {"value": ticket.get("kind"), "cases": cases, "default": "rest"})

    assert made.ports == (port,)


@pytest.mark.parametrize("case", [{"port": "a"}, {"port": "a", "equals": None, "when": True}])
def test_a_case_that_says_nothing_or_too_much_is_refused_when_it_is_saved(registry, case):
    document = {"ropewalk": 1, "name": "t", "nodes": [{"id": "a", "type": "switch", "with": {"cases": [case]}}]}

    with pytest.raises(InvalidDefinition, match="give exactly one of equals, when and conditions"):
        parse_definition(document, registry.infos())
