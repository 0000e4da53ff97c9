"""Hostile expressions: each ends in a value or a typed error, soon and in little memory."""

import contextlib
import sys
import time
import tracemalloc

import pytest

from ropewalk.core.errors import Unfinished
from ropewalk.core.expression import ExpressionError, Scope, compile_expression, compile_template
from tests.core.expression.test_syntax import error_of, value_of

# A tracer (coverage) makes everything several times slower; the promise is for the program as it runs.
MAX_MILLISECONDS = 50 if sys.gettrace() is None else 1000
# The ceiling: a million steps, each of a microsecond at most.
MOST_MILLISECONDS = 20 * MAX_MILLISECONDS
DOUBLED = " | map(x => [x, x])"


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


LARGE = {
    "list": list(range(60_000)),
    "longer": [None] * 200_000,
    "text": "x" * 1_000_000,
    "wide": "é" * 400_000,
    "texts": ["abc" * 30] * 30_000,
    "records": [{"a": number, "b": "t"} for number in range(20_000)],
    "object": {str(number): number for number in range(20_000)},
    "deep": nested(5_000),
    "huge": 10**5000,
    "nan": float("nan"),
    "infinite": float("inf"),
}

HOSTILE = [
    "repeat('ab', 9007199254740992)",
    "pad_start('', 9007199254740992)",
    "pad_end('é', 1000000)",
    "range(0, 9007199254740992)",
    "join(input.list, input.text)",
    "join(map(range(0, 900), x => input.text), '')",
    "replace(input.text, 'x', input.text)",
    "replace(input.text, 'x', 'yyy')",
    "split(input.text, 'x')",
    "input.text + input.text",
    "map(range(0, 3000), x => input.text + 'a')",
    "map(range(0, 3000), x => input.list + input.list)",
    "[" + ",".join(["repeat('a', 1000000)"] * 100) + "]",
    "input.wide | upper | lower | upper | lower | upper | lower | upper",
    "map(range(0, 90), a => map(range(0, 90), b => map(range(0, 90), c => 1)))",
    "map(range(0, 3000), x => input.text == input.text + '')",
    "map(range(0, 3000), x => input.text < input.text)",
    "map(range(0, 3000), x => 'y' in input.text)",
    "map(range(0, 3000), x => sha256(input.text))",
    "map(range(0, 900), x => input.list == input.list)",
    "map(range(0, 3000), x => -1 in input.list)",
    "map(range(0, 3000), x => sort(input.texts))",
    "map(range(0, 900), x => starts_with(input.text, input.text))",
    "sort(map(range(0, 900), x => input.text))",
    "[1]" + DOUBLED * 200,
    "json_encode([1]" + DOUBLED * 30 + ")",
    "([1]" + DOUBLED * 30 + ") == ([1]" + DOUBLED * 30 + ")",
    "unique([1]" + DOUBLED * 100 + ")",
    "[[1]" + DOUBLED * 60 + "] | flatten | flatten | flatten | flatten" + " | flatten" * 200,
    "json_decode(repeat('[', 60000))",
    "json_decode('[' + repeat('[],', 60000) + '1]')",
    "json_decode(repeat('9', 60000))",
    "json_decode(repeat('{\"a\":', 9000))",
    "matches(input.text, 'x')",
    "find_all(slice(input.text, 0, 65000), 'x(?:.*y)?')",
    "find_all(slice(input.text, 0, 3000), 'x(?:[xy]*x[xy]{40}z)?')",
    "match(slice(input.text, 0, 60000), '" + "(x?)" * 100 + "')",
    "matches(slice(input.text, 0, 60000), '" + "x?" * 200 + "x' + repeat('x', 100))",
    "map(range(0, 1000), n => matches('a', 'a{' + text(n) + '}'))",
    "map(range(1, 1000), n => matches('a', '[\\\\pL\\\\pN]{' + text(n % 6 + 1) + '}' + text(n)))",
    "matches('a', repeat('a', 513))",
    "matches('a', '((a{100}){100}){100}')",
    "regex_replace(slice(input.text, 0, 2000), 'x', slice(input.text, 0, 2000))",
    "regex_replace(slice(input.text, 0, 3000), '(x)', '$1$1$1$1$1$1$1$1')",
    "map(range(0, 9000), x => date_parse('2026-01-01', '%Y-%m-%d'))",
    "values(input)",
    "[input]",
    "[input.records]",
    "json_encode(input.records)",
    "unique(input.records)",
    "group_by(input.records, x => text(x.a))",
    "entries(input.object)",
    "merge(input.object, input.object)",
    "[input.deep]",
    "json_encode(input.deep)",
    "unique([input.deep])",
    "input.deep == input.deep",
    "input.huge * input.huge",
    "text(input.huge)",
    "abs(input.huge)",
    "[input.huge]",
    "[input.nan]",
    "input.nan + 1",
    "max([input.nan, 1])",
    "round(input.infinite)",
    "date(input.nan)",
    "url_encode(input.wide)",
    "base64_encode(input.text)",
]


@pytest.mark.parametrize("source", HOSTILE, ids=[source[:40] for source in HOSTILE])
def test_a_hostile_expression_ends_soon_and_stays_small(source):
    scope = Scope(input=LARGE)

    assert min(milliseconds(source, scope) for _ in range(2)) < MOST_MILLISECONDS
    assert peak_mebibytes(source, scope) < 20


@pytest.mark.parametrize("source", HOSTILE, ids=[source[:40] for source in HOSTILE])
def test_a_brief_evaluation_of_a_hostile_expression_ends_at_once(source):
    scope = Scope(input=LARGE)

    assert min(brief_milliseconds(source, scope) for _ in range(3)) < MAX_MILLISECONDS / 2


def test_a_brief_evaluation_gives_the_value_or_is_unfinished():
    template = compile_template("{{ sum(map(input, x => x * 2)) }}")

    assert template.resolve_briefly(Scope(input=[1, 2, 3])) == 12
    with pytest.raises(Unfinished):
        template.resolve_briefly(Scope(input=[1] * 1_000))


def test_many_expressions_are_not_evaluated_briefly():
    with pytest.raises(Unfinished):
        compile_template(["{{ input }}"] * 2_001).resolve_briefly(Scope(input=1))


@pytest.mark.parametrize(
    "source",
    [
        "filter(input, x => x.a > 3 and x.b == 't')",
        "map(input, x => {a: x.a * 2, b: upper(x.b), c: x.a > 3 ? 'large' : 'small'})",
        "input | filter(x => x.a > 3) | map(x => x.b) | unique",
    ],
)
@pytest.mark.parametrize("rows", [1_000, 10_000])
def test_one_pass_over_a_large_list_of_any_length_fits(source, rows):
    assert value_of(source, input=[{"a": number, "b": "t"} for number in range(rows)])


def test_each_item_of_a_large_list_with_each_does_not_fit():
    rows = list(range(10_000))

    assert "steps" in error_of("filter(input, x => any(input, y => y == -x - 1))", input=rows).message


@pytest.mark.parametrize("part", ["{{ input == input }}", "{{ sum(input) }}", "{{ any(input, x => x < 0) }}"])
def test_a_text_of_many_hostile_expressions_ends_soon_too(part):
    template = compile_template(part * 2_000)

    began = time.process_time()
    with pytest.raises(ExpressionError, match="1,000,000 steps together"):
        template.resolve(Scope(input=[0] * 1_500))

    assert 1000 * (time.process_time() - began) < MOST_MILLISECONDS


@pytest.mark.parametrize("text", ["{{ sum(input) }}", "of {{ sum(input) }}"])
def test_a_tree_of_hostile_texts_ends_soon_too(text):
    template = compile_template({"all": [text] * 2_000})

    began = time.process_time()
    with pytest.raises(ExpressionError, match="1,000,000 steps together"):
        template.resolve(Scope(input=[0] * 4_000))

    assert 1000 * (time.process_time() - began) < 100 * MAX_MILLISECONDS


def test_a_scope_is_not_used_up():
    template, scope = compile_template(["{{ sum(input) }}"] * 150), Scope(input=[0] * 4_000)

    values = [template.resolve(scope)[0] for _ in range(3)]

    assert values == [0, 0, 0]


def outcome(source, scope):
    try:
        return compile_expression(source).evaluate(scope)
    except ExpressionError as error:
        return error


def milliseconds(source, scope):
    began = time.process_time()
    outcome(source, scope)
    return 1000 * (time.process_time() - began)


def brief_milliseconds(source, scope):
    began = time.process_time()
    with contextlib.suppress(ExpressionError, Unfinished):
        compile_template("{{ " + source + " }}").resolve_briefly(scope)
    return 1000 * (time.process_time() - began)


def peak_mebibytes(source, scope):
    tracemalloc.start()
    outcome(source, scope)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / (1 << 20)


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("map(range(0, 9999), x => x)", "10,000 steps"),
        ("repeat('a', 1048577)", "1 MiB"),
        ("repeat('é', 600000)", "1 MiB"),
        ("map(range(0, 9), x => length(repeat('a', 1000000)))", "4 MiB"),
        ("[input.text, input.text]", "only a bare path"),
        ("[input.longer]", "only a bare path"),
        ("input.nan + 1", "out of range"),
        ("[input.nan]", "out of range"),
        ("[input.huge]", "out of range"),
        ("input.huge + 1", "out of range"),
        ("abs(input.huge)", "within ±2**53"),
        ("[input.deep]", "deeper than 128"),
        ("matches(input.text, 'a')", "64 KiB"),
        ("matches('a', repeat('a', 513))", "512 characters"),
        ("find_all(slice(input.text, 0, 60000), 'x(?:.*y)?')", "takes too long"),
    ],
)
def test_the_limit_that_was_met_is_named(source, hint):
    assert hint in error_of(source, input=LARGE).message


def test_a_value_of_exactly_the_limit_is_allowed():
    assert len(value_of("repeat('a', 1048568)")) == (1 << 20) - 8


@pytest.mark.parametrize("name", ["list", "text", "deep", "records", "huge", "nan"])
def test_a_bare_path_may_be_of_any_size_and_is_not_copied(name):
    assert value_of(f"input.{name}", input=LARGE) is LARGE[name]
    assert value_of("input[item]", input=LARGE, item=name) is LARGE[name]


def test_something_that_is_no_json_does_not_get_out():
    assert "not JSON" in error_of("[input.x]", input={"x": object()}).message


@pytest.mark.parametrize(
    "source",
    [
        "(" * 2000 + "1" + ")" * 2000,
        "[" * 2000,
        "{a:" * 1000,
        "not " * 1000 + "true",
        "-" * 2000 + "1",
        "1 ? " * 1000,
        "upper(" * 600,
        "map([1], x => " * 290,
        "vars[" * 800,
        "[1] | map(x => " * 250,
        "1 or 1 and 1 == 1 ?? 1 + 1 * (" * 130,
    ],
)
def test_nesting_is_refused_where_it_gets_too_deep(source):
    error = error_of(source)

    assert "nested deeper than 64 levels" in error.message
    assert error.position < 2000


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("+".join(["1"] * 2000), 2000),
        ("1" + "-1" * 2000, -1999),
        (" and ".join(["1"] * 580), True),
        (" or ".join(["0"] * 580), False),
        ("??".join(["null"] * 600), None),
        ("0?1:" * 1000 + "2", 2),
        ("[[1]]" + "|first" * 2 + "|abs" * 900, 1),
        ("vars" + ".a" * 2000, None),
        ("vars" + "[0]" * 1300, None),
        ("(" * 63 + "1" + ")" * 63, 1),
        ("not " * 63 + "0", True),
    ],
)
def test_long_chains_are_no_nesting(source, value):
    assert value_of(source) == value


def test_the_longest_expression_is_4096_characters():
    assert value_of("1" + " " * 4095) == 1
    assert "longer than 4,096" in error_of("1" + " " * 4096).message


def test_compiling_many_patterns_ends_soon():
    source = " and ".join(f"matches('a', '[\\\\pL]{{{number % 6 + 1}}}{number}')" for number in range(100))

    assert min(milliseconds(source, Scope()) for _ in range(2)) < MAX_MILLISECONDS


def test_a_lookup_behind_a_call_does_not_call_twice():
    source = "vars"
    for _ in range(14):
        source = f"first([{source}])[0].x"

    assert milliseconds(source, Scope(vars=[{"x": [1]}])) < MAX_MILLISECONDS
