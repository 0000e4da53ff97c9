"""The function table: every example holds, and every function declines what it cannot do."""

import json

import pytest

from ropewalk.core.expression.chance import Chance
from ropewalk.core.expression.functions import FUNCTIONS
from tests.core.expression.test_syntax import error_of, value_of
from tools.expression_reference import render

_RULES = {1: "x => x", 2: "(x, y) => x"}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_every_example_in_the_reference_is_true(function):
    found = value_of(function.example, chance=Chance(0, "seed"))

    assert found == function.result
    assert type(found) is type(function.result)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_every_function_is_in_the_reference_with_its_example(function):
    page = render()

    assert function.signature.replace("|", "\\|") in page
    assert json.dumps(function.result, ensure_ascii=False).replace("|", "\\|") in page


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_every_argument_of_the_wrong_kind_is_refused_by_name(function):
    for place, parameter in enumerate(function.parameters):
        if parameter.types is None:
            continue
        arguments = [
            _RULES[other.rule_names] if other.rule_names else fitting(other.kind) for other in function.parameters
        ]
        arguments[place] = "true"

        error = error_of(f"{function.name}({', '.join(arguments)})")

        assert f"needs its {parameter.name} to be {parameter.kind}, not a boolean" in error.message


def fitting(kind):
    examples = {
        "text": "''",
        "regex": "''",
        "number": "1",
        "integer": "1",
        "list": "[]",
        "object": "{}",
        "any": "1",
        "instant": "0",
    }
    return examples[kind.split(" or ")[0]]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("length([1, 2])", 2),
        ("length({a: 1})", 1),
        ("length(null)", 0),
        ("slice([1, 2, 3], 1)", [2, 3]),
        ("slice('abc', -2)", "bc"),
        ("slice('abc', 5, 9)", ""),
        ("index_of('abc', 'z')", None),
        ("capitalize('')", ""),
        ("repeat('a', -1)", ""),
        ("pad_start('abc', 2)", "abc"),
        ("pad_end('é', 3)", "é  "),
        ("join([null, 'a', true, [1]], '-')", "-a-true-[1]"),
        ("join([])", ""),
        ("round(2.5)", 3),
        ("round(-2.5)", -3),
        ("round(1234, -2)", 1200),
        ("round(9007199254740991.0, 15)", 9007199254740991.0),
        ("round(0.1 + 0.2, 15)", 0.3),
        ("round(1e300)", 1e300),
        ("number(' -1e2 ')", -100.0),
        ("number('7')", 7),
        ("number(7)", 7),
        ("sum([])", 0),
        ("min([])", None),
        ("max(['a', 'b'])", "b"),
        ("min([1, 0.5])", 0.5),
        ("boolean('x')", True),
        ("text(null)", ""),
        ("text(1.5)", "1.5"),
        ("map([null, true, 1, '', [], {}], x => type(x))", ["null", "boolean", "number", "text", "list", "object"]),
        ("find([1], x => x > 1)", None),
        ("first([])", None),
        ("last([])", None),
        ("sort([3, null, 1.5, 2])", [1.5, 2, 3, None]),
        ("sort(['b', 'a'])", ["a", "b"]),
        (
            "sort([{k: 1, n: 'b'}, {k: 1, n: 'a'}, {k: 0}], x => x.k)",
            [{"k": 0}, {"k": 1, "n": "b"}, {"k": 1, "n": "a"}],
        ),
        ("unique([true, 1, 1.0, '1', null, null])", [True, 1, "1", None]),
        ("unique([[1, {a: 1, b: 2}], [1, {b: 2, a: 1.0}], [1]])", [[1, {"a": 1, "b": 2}], [1]]),
        ("range(3, 1)", []),
        ("chunk([], 2)", []),
        ("any([], x => true)", False),
        ("all([], x => false)", True),
        ("entries({})", []),
        ("from_entries([{key: 'a'}, {key: 'a', value: 2}])", {"a": 2}),
        ("date(0)", "1970-01-01T00:00:00Z"),
        ("date(1.5)", "1970-01-01T00:00:01.500000Z"),
        ("date('2026-03-01')", "2026-03-01T00:00:00Z"),
        ("date('2026-03-01t10:00z')", "2026-03-01T10:00:00Z"),
        ("epoch('1970-01-01T00:00:00.5Z')", 0.5),
        ("date_add('2024-02-29', 1, 'years')", "2025-02-28T00:00:00Z"),
        ("date_add('2026-03-31', -1, 'months')", "2026-02-28T00:00:00Z"),
        ("date_add('2026-01-01', 1.5, 'days')", "2026-01-02T12:00:00Z"),
        ("date_diff('2026-01-01', '2026-01-02', 'days')", -1),
        ("date_diff(90, 0, 'minutes')", 1.5),
        ("date_diff('2026-03-01', '2026-01-01', 'months')", 2),
        ("date_diff('2026-02-28', '2026-01-31', 'months')", 1),
        ("date_diff('2026-03-30', '2026-01-31', 'months')", 1),
        ("date_diff('2026-03-31T09:00:00Z', '2026-01-31T10:00:00Z', 'months')", 1),
        ("date_diff('2026-01-01', '2026-03-01', 'months')", -2),
        ("date_diff('2026-01-01T00:00:01Z', '2026-03-01', 'months')", -1),
        ("date_diff('2028-02-28', '2024-02-29', 'years')", 3),
        ("date_diff('2025-02-28', '2024-02-29', 'years')", 1),
        ("date_diff('0001-01-01', '9999-12-31', 'years')", -9998),
        ("text(6 / 2.0)", "3"),
        ("text(-0.0)", "0"),
        ("text(2.5)", "2.5"),
        ("text(1e300)", "1e300"),
        ("text([3.0])", "[3.0]"),
        ("json_encode(3.0)", "3.0"),
        ("join([1.0, 2], '-')", "1-2"),
        ("date_format(0, '%Y%m%d %H:%M:%S.%f %B %A %j %%')", "19700101 00:00:00.000000 January Thursday 001 %"),
        ("date_format(0, '100%')", "100%"),
        ("date_parse('2026-03-01 10:20:30.000001', '%Y-%m-%d %H:%M:%S.%f')", "2026-03-01T10:20:30.000001Z"),
        ("json_decode('[1, 2.5, null, true, \"x\"]')", [1, 2.5, None, True, "x"]),
        ("base64_decode('')", ""),
        ("sha256('')", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("md5('')", "d41d8cd98f00b204e9800998ecf8427e"),
        ("url_decode(url_encode('ä&=? /'))", "ä&=? /"),
        ("matches('abc', 'b')", True),
        ("matches('abc', '^b')", False),
        ("match('abc', 'z')", None),
        ("match('ab', '(a)(x)?b')", ["ab", "a", None]),
        ("find_all('äöü', '[äü]')", ["ä", "ü"]),
        ("find_all('ab', 'x*')", ["", "", ""]),
        ("regex_replace('a b  c', ' +', ' ')", "a b c"),
        ("regex_replace('ab', '(a)(z)?', '[$0|$1|$2|$$|$x]')", "[a|a||$|$x]b"),
        ("filter(['a1', 'b'], x => matches(x, '[0-9]'))", ["a1"]),
    ],
)
def test_functions_at_their_edges(source, value):
    found = value_of(source)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("upper(null)", "default with ??"),
        ("replace('a', '', 'b')", "a text to look for"),
        ("split('a', '')", "needs a separator"),
        ("pad_start('a', 3, 'xy')", "one character"),
        ("round(1, 16)", "at most 15 digits"),
        ("floor(1e300)", "out of range"),
        ("number('nan')", "cannot read 'nan' as a number"),
        ("number('1_000')", "as a number"),
        ("number('٣')", "as a number"),
        ("number('1e999')", "out of range"),
        ("number('" + "9" * 65 + "')", "as a number"),
        ("sum([1, 'a'])", "needs numbers, not a text"),
        ("sum([9007199254740992, 1])", "out of range"),
        ("min([1, 'a'])", "can only order numbers"),
        ("max([null])", "can only order numbers"),
        ("sort([1, 'a'])", "can only order numbers"),
        ("sort([[1], [2]])", "can only order numbers"),
        ("group_by([1], x => x)", "a text for each item, not a number"),
        ("chunk([1], 0)", "at least 1"),
        ("from_entries([{k: 1}])", "a text as key"),
        ("from_entries([1])", "a text as key"),
        ("pick({}, [1])", "keys are texts, not a number"),
        ("omit({}, [null])", "keys are texts, not null"),
        ("date('yesterday')", "write it like 2026-03-01T12:00:00Z"),
        ("date('2026-02-30')", "no instant"),
        ("date('0001-01-01T00:00:00+23:59')", "no instant"),
        ("date(9007199254740992)", "no instant"),
        ("date(-1e300)", "no instant"),
        ("date_add('9999-12-31', 1, 'days')", "years 1 to 9999"),
        ("date_add('9999-12-31', 1, 'years')", "years 1 to 9999"),
        ("date_add(0, 1e308, 'weeks')", "years 1 to 9999"),
        ("date_add(0, 1, 'fortnights')", "unknown unit 'fortnights'"),
        ("date_add(0, 1.5, 'months')", "in integers"),
        ("date_diff(1, 0, 'moons')", "unknown unit"),
        ("date_format(0, '%Q')", "unknown directive %Q"),
        ("date_format(0, '%99999999d')", "unknown directive %9"),
        ("date_format(0, repeat('%Y', 65))", "at most 128 characters"),
        ("date_parse('x', '%Y')", "does not read like"),
        ("date_parse('٢٠٢٦', '%Y')", "does not read like"),
        ("date_parse('2026x', '%Y')", "goes on behind"),
        ("date_parse('2026-13', '%Y-%m')", "no such date"),
        ("date_parse('Mon', '%a')", "unknown directive %a"),
        ("json_decode('{')", "cannot read the text as JSON"),
        ("json_decode('NaN')", "cannot read the text as JSON"),
        ("json_decode('9007199254740993')", "out of range"),
        ("json_decode('[' + repeat('9', 5000) + ']')", "JSON"),
        ("base64_decode('%%%')", "as Base64"),
        ("base64_decode('/w==')", "as Base64"),
        ("url_decode('%ff')", "encoded part of a URL"),
        ("matches('a', '(?=a)')", "cannot use the pattern"),
        ("matches('a', '(' + 'a')", "cannot use the pattern"),
        ("matches('aa', '(a)' + '\\\\1')", "cannot use the pattern"),
        ("regex_replace('a', 'a', '$1')", "no group $1"),
    ],
)
def test_a_function_says_what_it_cannot_do(source, hint):
    assert hint in error_of(source).message


@pytest.mark.parametrize(
    "call", ["sha256({})", "md5({})", "base64_encode({})", "url_encode({})", "json_encode({})", "json_encode([{}])"]
)
def test_half_a_character_is_refused_where_bytes_are_needed(call):
    assert "lone surrogate" in error_of(call.replace("{}", "input"), input="\ud800").message


@pytest.mark.parametrize("call", ["matches(input, 'a')", "matches('a', input)", "json_decode(input)"])
def test_half_a_character_is_refused_by_parsers(call):
    assert "lone surrogate" in error_of(call, input="\ud800").message


def test_there_is_no_clock_but_what_the_scope_says():
    assert not [name for name in FUNCTIONS if name in ("now", "today", "env")]
    assert value_of("now") is None
    assert value_of("[now, uuid(), random()]", chance=Chance(0, "x")) == value_of(
        "[now, uuid(), random()]", chance=Chance(0, "x")
    )


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ('"" ?: "x"', "x"),
        ('0 ?? 1 ?: "x"', "x"),
        ('[] ?: null ?? "x"', "x"),
        ('"a" ?: input.missing.deeper', "a"),
        ("reduce([[1, 2], [3]], (all, x) => all + x, [])", [1, 2, 3]),
        ("reduce([], (sum, x) => sum + x, 5)", 5),
        ("[1, 2] | reduce((sum, x) => sum + x, 0)", 3),
        ("reduce([1, 2], (sum, x) => sum + reduce([x], (s, y) => s + y, 0), 0)", 3),
        ("pow(2, -1)", 0.5),
        ("pow(2.0, 2)", 4.0),
        ("sqrt(2)", 1.4142135623730951),
        ("sqrt(16)", 4),
        ("fixed(-0.001, 2)", "0.00"),
        ("fixed(7, 0)", "7"),
        ('date_add("2026-03-28T12:00:00Z", 1, "days", "Europe/Berlin")', "2026-03-29T11:00:00Z"),
        ('date_add("2026-03-28T12:00:00Z", 24, "hours", "Europe/Berlin")', "2026-03-29T12:00:00Z"),
        ('date_start("2026-03-18T10:30:59Z", "minutes")', "2026-03-18T10:30:00Z"),
        ('date_start("2026-03-18T10:30:00Z", "hours", "Asia/Kolkata")', "2026-03-18T10:30:00Z"),
        ('date_start("2026-03-18T10:30:00.5Z", "seconds")', "2026-03-18T10:30:00Z"),
        ('date_start("2026-03-18T10:30:00Z", "weeks")', "2026-03-16T00:00:00Z"),
        ('date_start("2026-03-18T10:30:00Z", "years")', "2026-01-01T00:00:00Z"),
        ('date_start("2026-03-18T23:30:00Z", "days", "Europe/Berlin")', "2026-03-18T23:00:00Z"),
        ('date_format("2026-07-01T12:00:00Z", "%H:%M %z", "Asia/Kolkata")', "17:30 +05:30"),
        ('date_parse("2026-03-29 02:30", "%Y-%m-%d %H:%M", "Europe/Berlin")', "2026-03-29T01:30:00Z"),
        ('url_parts("https://u:p@Shop.example:8/a?x=1&x=2&y=#f").query', {"x": ["1", "2"], "y": ""}),
        ('omit(url_parts("https://u:p@Shop.example:8/a#f"), ["query"])', {
            "scheme": "https", "host": "shop.example", "port": 8, "path": "/a", "fragment": "f",
        }),
        ('url_parts("/a").host', None),
    ],
)  # fmt: skip
def test_small_words_say_what_they_promise(source, value):
    found = value_of(source, input={})

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("reduce([1], x => x, 0)", "the rule needs 2 names"),
        ("map([1], (x, y) => x)", "the rule needs 1 name;"),
        ("reduce([1], (x, x) => x, 0)", "another name than 'x'"),
        ("reduce([1], 1, 0)", "needs a rule here, such as (sum, x) => sum + x"),
        ("(1, 2)", "expected ')'"),
        ("pow(10, 400)", "pow gives no number here"),
        ("pow(-8, 1 / 3)", "pow gives no number here"),
        ("sqrt(-1)", "not negative"),
        ("fixed(1, 16)", "0 to 15 digits"),
        ("fixed(1e300, 2)", "within ±2**53"),
        ('date_in(0, "../etc/passwd")', "unknown zone"),
        ('date_in(0, "/etc/passwd")', "unknown zone"),
        ('date_in(0, "Europe")', "unknown zone"),
        ('date_in(0, repeat("x", 65))', "the name of a zone"),
        ('date_in("9999-12-31T23:59:59Z", "Asia/Tokyo")', "outside the years"),
        ('date_start(0, "fortnights")', "unknown unit"),
        ('url_parts("https://a:99999/")', "cannot read the text as a URL"),
        ('url_parts("https://[::1")', "cannot read the text as a URL"),
        ("uuid()", "cannot be used here"),
        ("random()", "cannot be used here"),
        ("reduce(range(0, 3000), (s, x) => [s, s], 0) == 1", "steps"),
        ("reduce(range(0, 300), (s, x) => [s, s], 0)", "steps"),
        ("reduce(range(0, 300), (s, x) => [s], 0)", "nested deeper"),
        ('reduce(range(0, 300), (s, x) => s + s, "aa")', "larger than 1 MiB"),
    ],
)
def test_small_words_decline_what_they_cannot_do(source, message):
    assert message in error_of(source).message
