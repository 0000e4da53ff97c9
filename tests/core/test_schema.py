"""JSON Schema: what fits, what does not, and that nothing makes it hang or crash."""

import contextlib
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.core.errors import Unfinished
from ropewalk.core.schema import Allowance, Certainty, check_schema, validate

PERSON = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer", "minimum": 0}},
    "additionalProperties": False,
}
TREE = {
    "$ref": "#/$defs/tree",
    "$defs": {"tree": {"type": "object", "properties": {"below": {"items": {"$ref": "#/$defs/tree"}}}}},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


def nested(levels, inner=None):
    value = inner
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("schema", "fitting", "unfitting"),
    [
        (True, [None, 1, "x"], []),
        (False, [], [None, 1, "x"]),
        ({}, [None, {}, []], []),
        ({"type": "object"}, [{}], [[], "x", None]),
        ({"type": "array"}, [[]], [{}, "x"]),
        ({"type": "string"}, ["", "x"], [1, None]),
        ({"type": "number"}, [1, 1.5, -2], [True, "1"]),
        ({"type": "integer"}, [1, 1.0, 2**53], [1.5, True, math.inf, math.nan, "1"]),
        ({"type": "boolean"}, [True, False], [0, 1, "true"]),
        ({"type": "null"}, [None], [0, "", False]),
        ({"type": ["string", "null"]}, ["x", None], [1, []]),
        ({"enum": [1, "a", None, [1, {"x": True}]]}, [1, 1.0, "a", None, [1, {"x": True}]], [True, "b", [1, {"x": 1}]]),
        ({"const": {"a": [1]}}, [{"a": [1]}, {"a": [1.0]}], [{"a": [True]}, {"a": [1], "b": 2}, {}]),
        ({"minimum": 1, "maximum": 3}, [1, 3, 2.5, "x"], [0.9, 3.1, 10**400, -(10**400)]),
        ({"exclusiveMinimum": 1, "exclusiveMaximum": 3}, [1.1, 2.9], [1, 3]),
        ({"multipleOf": 0.1}, [0.3, 1, 1e300, "x", math.nan], [0.35]),
        ({"multipleOf": 3}, [0, 9, -3, 3.0], [4, 3.5]),
        ({"minLength": 2, "maxLength": 3}, ["ab", "äöü", 7], ["a", "abcd"]),
        ({"pattern": "^a+$"}, ["aaa", 3], ["b", "aab", "\ud800"]),
        ({"format": "date-time"}, ["2030-01-31T12:00:00Z", "2016-12-31T23:59:60+01:00"], ["2030-02-30T12:00:00Z", "x"]),
        ({"format": "date"}, ["2030-01-31", 5], ["2030-13-01", "31.1.2030"]),
        ({"format": "email"}, ["a@b.example"], ["a@", "@b", "a b@c.d", "x" * 10_000 + "@a.b"]),
        ({"format": "uri"}, ["https://a.example/b?c#d", "urn:x:y"], ["a.example", "http://a b"]),
        ({"format": "uuid"}, ["018F3C5E-0000-7000-8000-000000000000"], ["018f3c5e"]),
        ({"format": "of our own"}, ["anything"], []),
        (PERSON, [{"name": "x"}, {"name": "x", "age": 3}], [{}, {"name": ""}, {"name": "x", "ages": 1}]),
        ({"dependentRequired": {"a": ["b"]}}, [{"a": 1, "b": 1}, {"b": 1}, {}, 1], [{"a": 1}]),
        ({"patternProperties": {"^n_": {"type": "number"}}}, [{"n_a": 1, "x": "y"}, 5], [{"n_a": "x"}]),
        (
            {"patternProperties": {"^x": True}, "additionalProperties": {"type": "null"}},
            [{"xa": 1, "b": None}],
            [{"b": 1}],
        ),
        ({"propertyNames": {"maxLength": 2}}, [{"ab": 1}, 5], [{"abc": 1}]),
        ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 2}]),
        ({"items": {"type": "string"}}, [[], ["a"], "x"], [["a", 1]]),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "null"}}, [["a"], ["a", None], []], [[1], ["a", 1]]),
        ({"contains": {"const": 1}}, [[2, 1], 5], [[], [2]]),
        ({"contains": {"const": 1}, "minContains": 0, "maxContains": 1}, [[], [1, 2]], [[1, 1]]),
        ({"minItems": 1, "maxItems": 2}, [[1], [1, 2]], [[], [1, 2, 3]]),
        (
            {"uniqueItems": True},
            [[1, True, "1", [1], {"a": 1}], "xx"],
            [[1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]],
        ),
        ({"uniqueItems": False}, [[1, 1]], []),
        ({"allOf": [{"type": "string"}, {"minLength": 2}]}, ["ab"], ["a", 1]),
        ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, ["a", 6], [4]),
        ({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}, [2, 3], [1, 6]),
        ({"not": {"type": "string"}}, [1], ["a"]),
        (
            {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 5}},
            ["ab", 5],
            ["a", 4],
        ),
        (TREE, [{"below": [{"below": []}]}], [{"below": [1]}, {"below": [{"below": [None]}]}]),
        ({"$defs": {"a/b~c": {"const": 1}}, "$ref": "#/$defs/a~1b~0c"}, [1], [2]),
    ],
)
def test_a_value_fits_or_does_not(schema, fitting, unfitting):
    assert check_schema(schema) == []
    assert [value for value in fitting if validate(schema, value)] == []
    assert [value for value in unfitting if not validate(schema, value)] == []


def test_every_misfit_is_told_with_its_place():
    people = {"items": PERSON}

    problems = validate(people, [{"name": "x"}, {"name": 5, "old": 1}, {"age": -1}], ("input",))

    assert [str(problem) for problem in problems] == [
        "input[1].name: must be text, not a number",
        "input[1].old: unknown field; known are name, age",
        "input[2]: needs the field 'name'",
        "input[2].age: must be at least 0",
    ]


def test_a_value_that_fits_no_form_hears_why_for_each():
    optional = {"anyOf": [{"type": "string"}, {"properties": {"a": {"const": 1}}, "type": "object"}]}

    assert [str(problem) for problem in validate(optional, {"a": 2}, ("x",))] == [
        "x: must be text, not an object; or a: must be 1"
    ]


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        (5, "(document)"),
        ({"typ": "string"}, "typ"),
        ({"type": "text"}, "type"),
        ({"type": []}, "type"),
        ({"type": ["string", 5]}, "type[1]"),
        ({"enum": []}, "enum"),
        ({"minimum": "1"}, "minimum"),
        ({"multipleOf": 0}, "multipleOf"),
        ({"multipleOf": -1}, "multipleOf"),
        ({"minLength": -1}, "minLength"),
        ({"minLength": 1.5}, "minLength"),
        ({"uniqueItems": 1}, "uniqueItems"),
        ({"pattern": "("}, "pattern"),
        ({"pattern": "(?=a)"}, "pattern"),
        ({"pattern": "a" * 2_000}, "pattern"),
        ({"pattern": "((a{1,1000}){1,1000}){1,1000}"}, "pattern"),
        ({"patternProperties": {"(": True}}, "patternProperties.("),
        ({"required": "name"}, "required"),
        ({"required": [1]}, "required[0]"),
        ({"properties": []}, "properties"),
        ({"properties": {"a": 5}}, "properties.a"),
        ({"properties": {"a": {"items": {"tpye": 1}}}}, "properties.a.items.tpye"),
        ({"allOf": []}, "allOf"),
        ({"anyOf": [True, {"x": 1}]}, "anyOf[1].x"),
        ({"$ref": "https://elsewhere.example"}, "$ref"),
        ({"$ref": "#/$defs/none"}, "$ref"),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"c": True}}, "properties.a.$ref"),
        ({"anyOf": [{"$ref": "#/$defs/b"}]}, "anyOf[0].$ref"),
        ({"not": {"$ref": "#/$defs/a/b"}}, "not.$ref"),
        ({"const": math.nan}, "const"),
    ],
)
def test_a_bad_schema_is_refused_where_it_is_bad(schema, where):
    assert [problem.where for problem in check_schema(schema)] == [where]


def test_annotations_and_extensions_are_let_be():
    assert check_schema({"title": "T", "default": {"any": 1}, "examples": [1], "x-widget": "wide"}) == []


def a_guess(text):
    return {"?": Certainty.UNKNOWN, "?text": Certainty.SOME_TEXT}.get(text, Certainty.KNOWN)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer", "minimum": 3}, "?"),
        ({"type": "string", "minLength": 9, "pattern": "^x$", "format": "date", "enum": ["a"]}, "?text"),
        ({"enum": [{"a": 1}, {"a": 2}]}, {"a": "?"}),
        ({"const": ["a"]}, ["?"]),
        ({"not": {"type": "string"}}, "?"),
        ({"not": {"const": {"a": 1}}}, {"a": "?"}),
        ({"oneOf": [{"type": "string"}, {"minLength": 1}]}, "?"),
        ({"if": {"const": "a"}, "then": False, "else": False}, "?"),
        ({"uniqueItems": True}, ["?", "?", {"a": "?"}, {"a": "?"}]),
        ({"contains": {"const": 1}, "maxContains": 1}, ["?", "?", 1]),
        ({"anyOf": [{"type": "null"}, {"const": "b"}]}, "?text"),
    ],
)
def test_what_might_fit_is_no_problem(schema, value):
    assert validate(schema, value, certainty=a_guess) == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, "?text"),
        ({"anyOf": [{"type": "null"}, {"type": "object"}]}, "?text"),
        ({"const": ["a", 1]}, ["?", 2]),
        ({"maxItems": 1}, ["?", "?"]),
        ({"contains": {"const": 1}}, [2, 3]),
        ({"required": ["a"]}, {"b": "?"}),
        ({"uniqueItems": True}, ["?", 1, 1]),
    ],
)
def test_what_cannot_fit_is_a_problem_even_with_unknown_parts(schema, value):
    assert validate(schema, value, certainty=a_guess) != []


def doubling(keyword, levels=40, last=True):
    """A schema of two kilobytes that leads to its last definition in 2⁴⁰ ways."""
    steps = {f"l{n}": {keyword: [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/l0", "$defs": {**steps, f"l{levels}": last}}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("last", [True, False])
def test_a_schema_that_doubles_its_work_at_each_step_is_checked_at_once(keyword, last):
    allowance = Allowance(is_brief=True)

    problems = validate(doubling(keyword, last=last), 1, allowance=allowance)

    assert bool(problems) is (not last or keyword == "oneOf")


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_a_schema_that_doubles_its_work_at_each_step_is_refused_with_its_place(keyword):
    (problem,) = check_schema(doubling(keyword), ("input",))

    assert problem.where.startswith("input")
    assert "10,000 schemas" in problem.message


def test_forms_in_forms_are_each_tried_once():
    schema = {"const": 1}
    for _ in range(30):
        schema = {"oneOf": [schema, {"const": 2}]}

    assert validate(schema, 3, allowance=Allowance(is_brief=True)) != []


def test_a_schema_that_doubles_at_each_level_of_a_value_is_checked_at_once():
    twice = {"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}

    assert check_schema(twice) == []
    assert validate(twice, nested(30), allowance=Allowance(is_brief=True)) == []


def test_references_keep_the_places_of_what_they_refuse():
    schema = {"items": {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}, "$defs": {"n": {"type": "number"}}}

    assert [problem.where for problem in validate(schema, ["x", 1, "x"])] == ["[0]", "[2]"]


EXPENSIVE = [
    ({"allOf": [{"items": {"type": "number"}}] * 500}, [1] * 100_000),
    ({"allOf": [{"items": {"minimum": 2}}] * 500}, [1] * 100_000),
    ({"items": {"const": {"a": ["x"] * 50_000}}}, [1] * 100_000),
    ({"items": {"enum": [{"a": ["x"] * 5_000}] * 10}}, [1] * 100_000),
    ({"items": {"multipleOf": 1e-300}}, [1e300] * 100_000),
    ({"pattern": "(a?){500}(b|c)*d"}, "a" * 1_000_000),
    ({"patternProperties": {f"{n}(a?){{40}}b": False for n in range(100)}}, {f"a{n}": 1 for n in range(50_000)}),
    ({"items": {"format": "email"}}, ["x" * 2_000] * 500),
    ({"propertyNames": {"anyOf": [{"const": n} for n in range(500)]}}, {str(n): 1 for n in range(50_000)}),
    ({"allOf": [{"uniqueItems": True}] * 100}, [[n] * 10 for n in range(20_000)]),
    ({"allOf": [{"contains": {"const": 5}}] * 100}, [1] * 100_000),
    ({"allOf": [{"required": [str(n) for n in range(1_000)]}] * 500}, {"a": 1}),
    ({"additionalProperties": False}, {str(n): 1 for n in range(100_000)}),
    ({"items": False}, [1] * 400_000),
]


MOST_SECONDS = 40.0
"""Ten times what the whole allowance takes: the tests run under a tracer too, and on busy machines."""


@pytest.mark.parametrize(("schema", "value"), EXPENSIVE, ids=range(len(EXPENSIVE)))
def test_steps_mean_time_in_every_keyword(schema, value):
    before = time.process_time()
    validate(schema, value)
    whole = time.process_time() - before
    with contextlib.suppress(Unfinished):
        validate(schema, value, allowance=Allowance(is_brief=True))
    brief = time.process_time() - before - whole

    assert whole < MOST_SECONDS
    assert brief < MOST_SECONDS / 40


def test_a_check_that_takes_too_long_says_so_with_its_place():
    (problem,) = validate({"allOf": [{"items": {"minimum": 2}}] * 500}, [3] * 10_000, ("input",))

    assert (problem.where, problem.message) == ("input", "takes too long to check against its schema")


def test_many_checks_that_share_an_allowance_take_no_longer_than_one():
    schema, shared = {"allOf": [{"items": {"minimum": 2}}] * 500}, Allowance()
    before = time.process_time()

    problems = [validate(schema, [3] * 300, allowance=shared) for _ in range(1_000)]

    assert problems[0] == []
    assert problems[-1] != []
    assert time.process_time() - before < MOST_SECONDS


@pytest.mark.parametrize("loop", [{"$ref": "#"}, {"anyOf": [{"$ref": "#"}]}, {"not": {"$ref": "#"}}])
def test_a_schema_that_refers_to_itself_is_refused_and_gives_up(loop):
    assert "refers to itself" in check_schema(loop)[0].message
    assert "refers to itself" in validate(loop, 1)[0].message


def test_a_deep_value_is_refused_and_not_recursed_into():
    assert [problem.message for problem in validate({"items": {"$ref": "#"}}, nested(100_000))] == [
        "is nested too deeply to check"
    ]
    assert [problem.message for problem in validate({"uniqueItems": True}, [nested(100_000)])] == ["cannot be compared"]


def test_a_deep_schema_is_refused():
    schema = {}
    for _ in range(100_000):
        schema = {"not": schema}

    assert [problem.message for problem in check_schema(schema)] == ["is nested more than 64 levels deep"]


def test_a_thousand_misfits_are_told_as_a_hundred_and_a_number():
    problems = validate({"items": {"type": "string"}}, [1] * 1_000)

    assert len(problems) == 101
    assert problems[-1].message == "… and 900 more problems"


def test_many_unique_items_are_compared_in_linear_time():
    assert validate({"uniqueItems": True}, [{"n": n} for n in range(100_000)]) == []


@given(schema=JSON, value=JSON)
def test_any_json_is_a_schema_or_refused_and_a_good_one_judges_any_value(schema, value):
    if not check_schema(schema):
        assert isinstance(validate(schema, value), list)


@given(value=JSON)
def test_any_value_can_be_judged(value):
    assert isinstance(validate({"anyOf": [PERSON, TREE, {"uniqueItems": True, "enum": [1]}]}, value), list)
