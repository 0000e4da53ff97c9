"""Laws that hold for any value."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.core.expression import ExpressionError, Scope, check_template, compile_expression, compile_template
from tests.core.expression.test_syntax import value_of

INTEGERS = st.integers(-(2**53), 2**53)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def same(left, right):
    """Equality of JSON, the slow and plain way."""
    if isinstance(left, bool) or isinstance(right, bool) or left is None or right is None:
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right


@given(VALUES, VALUES)
def test_equality_is_that_of_json(left, right):
    assert value_of("input == vars", input=left, vars=right) is same(left, right)
    assert value_of("input == vars", input=left, vars=json.loads(json.dumps(left))) is True


@given(VALUES)
def test_any_value_written_as_json_reads_back_the_same(value):
    assert value_of("json_decode(json_encode(input)) == input", input=value) is True


@given(VALUES)
def test_any_value_can_be_written_as_a_literal(value):
    assert same(value_of(json.dumps(value)), value)


@given(st.lists(VALUES, max_size=8))
def test_unique_keeps_the_first_of_equals(items):
    kept = value_of("unique(input)", input=items)

    assert all(any(same(item, other) for other in kept) for item in items)
    assert not any(same(left, right) for place, left in enumerate(kept) for right in kept[:place])


@given(INTEGERS, INTEGERS, st.sampled_from("+-*/%"))
def test_arithmetic_of_integers_is_exact_or_refused(left, right, operator):
    try:
        found = value_of(f"input {operator} vars", input=left, vars=right)
    except ExpressionError:
        found = None
    exact = {"+": left + right, "-": left - right, "*": left * right}.get(operator)

    if exact is not None:
        assert found == (exact if abs(exact) <= 2**53 else None)
    elif right == 0:
        assert found is None
    elif operator == "%":
        assert found == left % right
    else:
        assert found == (left // right if left % right == 0 else left / right)


@given(TEXTS, TEXTS)
def test_splitting_and_joining_are_inverse(value, separator):
    if separator:
        assert value_of("input | split(vars) | join(vars)", input=value, vars=separator) == value


@given(TEXTS)
def test_encodings_are_undone_by_their_decodings(value):
    assert value_of("input | base64_encode | base64_decode", input=value) == value
    assert value_of("input | url_encode | url_decode", input=value) == value


@given(st.integers(-(10**10), 10**10))
def test_an_instant_survives_being_written(seconds):
    assert value_of("epoch(date(input))", input=seconds) == seconds


@given(st.lists(INTEGERS | FLOATS, max_size=20))
def test_sorting_orders_and_loses_nothing(items):
    assert value_of("sort(input)", input=items) == sorted(items)
    assert value_of("sort(input, x => -x) | reverse | sort", input=items) == sorted(items)


@settings(max_examples=300)
@given(st.text(max_size=60))
def test_any_text_at_all_is_an_expression_or_an_error_with_a_place(source):
    position = 0
    try:
        compile_expression(source).evaluate(Scope(input={"a": [1]}))
    except ExpressionError as error:
        position = error.position

    assert 0 <= position <= len(source)


@settings(max_examples=300)
@given(st.text(st.sampled_from("{} abinput.'\"\\[]()|?:=>,0é\ud800\n"), max_size=60))
def test_any_text_at_all_is_a_template_or_a_problem(text):
    template, problems = check_template({"a": text})

    assert (template is None) is bool(problems)


@given(VALUES)
def test_any_constant_tree_resolves_to_itself(value):
    if "{{" not in json.dumps(value):
        assert compile_template(value).resolve(Scope()) is value
