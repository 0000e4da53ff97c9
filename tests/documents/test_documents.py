"""YAML and JSON texts become values, or refusals that say where."""

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk import documents
from ropewalk.core.canonical import is_plain
from ropewalk.core.errors import InvalidDefinition, Problem
from ropewalk.documents import PlacedProblem, load_document, problems_with_lines, read_document

REFUND = """\
# a comment
name: refund
nodes:
  - id: order
    type: http.request
    retry:
      maxAttempts: 5
  - { id: big, type: if,
      with: { condition: true } }
edges: []
"""


@pytest.fixture(params=["libyaml", "python"])
def parser(request, monkeypatch):
    """Both parsers a machine may have."""
    if request.param == "libyaml" and not yaml.__with_libyaml__:
        pytest.skip("PyYAML was built without libyaml")
    loader = yaml.CSafeLoader if request.param == "libyaml" else yaml.SafeLoader
    monkeypatch.setattr(documents, "_LOADER", loader)


def value_of(text):
    return load_document(text).value


def outcome_of(text):
    try:
        return load_document(text)
    except InvalidDefinition as refused:
        return refused


def refusals(text, **options):
    with pytest.raises(InvalidDefinition) as refused:
        load_document(text, name="f.yaml", **options)
    return problems_with_lines(refused.value)


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "y", "n", "On", "NO"])
@pytest.mark.usefixtures("parser")
def test_words_that_older_yaml_took_for_booleans_stay_text(word):
    assert value_of(f"{word}: {word}") == {word: word}


@pytest.mark.parametrize(
    "text",
    [
        "1:30",
        "010",
        "0o10",
        "0x1f",
        "1_000",
        "+49301234",
        "2026-11-15",
        "2026-11-15T03:00:00Z",
        "1.2.3",
        "-a",
        "1.",
        "=",
    ],
)
@pytest.mark.usefixtures("parser")
def test_what_only_resembles_a_number_stays_text(text):
    assert value_of(f"a: {text}") == {"a": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("0", 0), ("-7", -7), ("9007199254740992", 2**53)],
        *[("0.5", 0.5), (".5", 0.5), ("1e3", 1000.0), ("-2.5E-1", -0.25), ("1.0", 1.0)],
        *[("true", True), ("False", False), ("null", None), ("~", None), ("", None)],
        *[("'true'", "true"), ('"12"', "12"), ("'~'", "~")],
    ],
)
@pytest.mark.usefixtures("parser")
def test_plain_words_are_what_json_makes_of_them(text, value):
    found = value_of(f"a: {text}")["a"]

    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", [".nan", ".NaN", ".inf", "-.Inf", "NaN", "-Infinity", "1e999", "9007199254740993"])
def test_numbers_that_json_cannot_hold_are_refused_where_they_stand(text):
    assert refusals(f"a: 1\nb: {text}") == [
        f"f.yaml:2:4: b: {text} is no number that can be used; if it is text, put quotes around it"
    ]


def test_a_number_of_a_million_digits_is_refused_without_reading_it():
    assert "f.yaml:1:2: [0]: 999" in refusals(f"[{'9' * 1_000_000}]")[0]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Straße \\ud83d\\ude00 \\/", "a": [1, -0.5e3, true, null, {}], "on": "yes"}',
        '{\n\t"tabs":\t[\n\t\t1\n\t]\n}',
        json.dumps({"k" * 2000: "a long key"}),
        '{"del": "\x7f", "line": "\u2028"}',
        '"just text"',
        "[]",
    ],
)
def test_json_means_what_a_json_parser_reads(text):
    assert value_of(text) == json.loads(text)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 2),
        (("name",), 2),
        (("nodes",), 3),
        (("nodes", 0), 4),
        (("nodes", 0, "type"), 5),
        (("nodes", 0, "retry"), 6),
        (("nodes", 0, "retry", "maxAttempts"), 7),
        (("nodes", 0, "retry", "delay", "x"), 6),
        (("nodes", 1), 8),
        (("nodes", 1, "with", "condition"), 9),
        (("nodes", 7), 3),
        (("edges", "a"), 10),
        (("vars",), 2),
    ],
)
@pytest.mark.usefixtures("parser")
def test_a_path_has_the_line_of_its_field_or_of_what_is_around_it(path, line):
    assert load_document(REFUND).places.line_of(path) == line


def test_json_has_lines_too():
    places = load_document('{\n "a": 1,\n "nodes": [\n  {"id": "x"},\n  {"id":\n"y"}]}').places

    lines = [
        places.line_of(path) for path in [("a",), ("nodes", 0, "id"), ("nodes", 1, "id"), ("nodes", 1, "z"), ("b",)]
    ]
    assert lines == [2, 4, 5, 5, 1]


def test_problems_come_with_file_line_and_path():
    document = load_document(REFUND, name="refund.yaml")
    error = InvalidDefinition([Problem(("nodes", 0, "retry", "delay"), "is missing"), Problem(("output",), "is bad")])

    assert problems_with_lines(error, document) == [
        "refund.yaml:6: nodes[0].retry.delay: is missing",
        "refund.yaml:2: output: is bad",
    ]


def test_all_mistakes_of_a_text_are_told_at_once():
    text = "a: 1\nb: {c: 1, c: 2}\na: 3\n7: x\nd: !secret x\ntrue: y\n"

    assert refusals(text) == [
        "f.yaml:2:11: b.c: the key 'c' is there already, on line 2",
        "f.yaml:3:1: a: the key 'a' is there already, on line 1",
        "f.yaml:4:1: the key 7 is not text; put quotes around it",
        "f.yaml:5:4: d: tags (with !) are not supported; put quotes around text",
        "f.yaml:6:1: the key true is not text; put quotes around it",
    ]


def test_thousands_of_mistakes_make_a_bounded_answer():
    assert len(refusals("a: 1\n" * 5000)) == documents.MOST_PROBLEMS


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("a:\n\t- 1", "f.yaml:2:1: there is a tab where YAML wants spaces"),
        ("a: 1\n\tb: 2", "f.yaml:2:1: there is a tab where YAML wants spaces"),
        ("a: @x", "f.yaml:1:4: a value cannot start with @; put quotes around it"),
        ("ok: 1\nurl: {{ vars.shop }}", 'f.yaml:2:7: url: a key must be text; an expression needs quotes: "{{ … }}"'),
        ("? [a]\n: b", 'f.yaml:1:3: a key must be text; an expression needs quotes: "{{ … }}"'),
        ("a: 1\n---\nb: 2", "f.yaml:3:1: a second document starts here; one file holds one"),
        ("a: é\nb: \x07", "f.yaml:2:4: the character '\\x07' is not allowed"),
        ("a: \ud800", "f.yaml:1:4: the character '\\ud800' is not allowed"),
        ('a: "x\\0y"', "f.yaml:1:4: a: must be text without NUL and lone surrogates"),
        ('{"a": "\\u0000"}', "f.yaml:1:7: a: must be text without NUL and lone surrogates"),
        ('{"a": 1,\n "a": 2}', "f.yaml:2:2: a: the key 'a' is there already, on line 1"),
        ('"\\0": 1', "f.yaml:1:1: the key must be text without tag, NUL and lone surrogates"),
        ("!x a: 1", "f.yaml:1:1: the key must be text without tag, NUL and lone surrogates"),
        ("", "f.yaml:1:1: is empty"),
        ("# nothing\n---\n", "f.yaml:1:1: is empty"),
        ("b: *a", "f.yaml:1:4: b: there is no anchor &a before this"),
        ("b: &a [*a]", "f.yaml:1:8: b[0]: the anchor &a holds itself"),
        ("b: {<<: 3}", "f.yaml:1:5: b.<<: << merges an object or a list of objects"),
    ],
)
@pytest.mark.usefixtures("parser")
def test_a_text_that_is_no_document_is_refused_with_line_and_column(text, refusal):
    assert refusals(text) == [refusal]


@pytest.mark.parametrize(
    "text", ["a: [1, 2\nb: 3", "a: b: c", "a: 'x", '{"a" 1}', "a: 1\n b: 2", "%", "- a\nb: 1", "]"]
)
@pytest.mark.usefixtures("parser")
def test_bad_syntax_is_one_problem_with_a_place(text):
    assert [line.split(":")[0] for line in refusals(text)] == ["f.yaml"]


def test_aliases_and_merges_are_written_out_with_the_lines_of_their_anchors():
    document = load_document("base: &base\n  delay: 1s\n  factor: 2\na: *base\nb:\n  <<: *base\n  factor: 3\n")

    assert document.value["a"] == {"delay": "1s", "factor": 2}
    assert document.value["b"] == {"delay": "1s", "factor": 3}
    lines = [document.places.line_of(path) for path in [("a",), ("a", "delay"), ("b", "delay"), ("b", "factor")]]
    assert lines == [4, 2, 2, 7]


def test_of_several_merged_objects_the_first_wins():
    assert value_of("- &a {x: 1, y: 1}\n- &b {x: 2, z: 2}\n- {<<: [*a, *b], y: 3}")[2] == {"x": 1, "y": 3, "z": 2}


def test_thousands_of_merges_into_a_large_object_take_linear_time():
    text = "- &a {x: 1}\n- {" + "".join(f"k{n}: 0, " for n in range(10_000)) + "<<: *a, " * 10_000 + "}"

    assert len(value_of(text)[1]) == 10_001


def test_aliases_cannot_make_a_small_text_a_huge_value():
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 12)]

    assert "with its aliases written out, it is larger" in refusals("\n".join(["l0: &l0 [x]", *levels]))[0]


def test_a_long_text_counts_each_time_it_is_repeated():
    assert "with its aliases written out" in refusals(f"- &a {'x' * 600}\n- *a\n- *a", largest=1000)[0]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", '{"a":'])
@pytest.mark.usefixtures("parser")
def test_depth_ends_at_64_however_deep_the_text_goes(opening):
    assert "is nested more than 64 levels deep" in refusals(opening * 20_000)[0]


def test_64_levels_are_deep_enough():
    assert value_of("[" * 64 + "1" + "]" * 64) == json.loads("[" * 64 + "1" + "]" * 64)


def test_aliases_do_not_get_deeper_than_the_text_may():
    levels = [f"l{n}: &l{n} [*l{n - 1}]" for n in range(1, 70)]

    assert "is nested more than 64 levels deep" in refusals("\n".join(["l0: &l0 [x]", *levels]))[0]


@pytest.mark.parametrize("text", ["a: 0123456", "a: éééé"])
def test_size_is_counted_in_bytes(text):
    assert refusals(text, largest=9) == ["f.yaml:1:1: is larger than 9 bytes"]


def test_a_file_is_read_with_or_without_byte_order_mark(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_bytes("\ufeffname: é\r\nb: 1\r\n".encode())

    document = read_document(file)

    assert (document.value, document.places.line_of(("b",)), document.name) == ({"name": "é", "b": 1}, 2, str(file))


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (b"a: 1\nb: \xff\n", ":2:1: is not UTF-8; save it in that encoding"),
        (b"a" * 50, ":1:1: is larger than 40 bytes"),
    ],
)
def test_a_file_that_is_no_text_or_too_large_is_refused(tmp_path, content, refusal):
    file = tmp_path / "a.yaml"
    file.write_bytes(content)

    with pytest.raises(InvalidDefinition) as refused:
        read_document(file, largest=40)

    assert problems_with_lines(refused.value) == [f"{file}{refusal}"]


def test_a_problem_without_a_document_is_told_without_a_line():
    assert problems_with_lines(InvalidDefinition([Problem(("a", 0), "is bad")])) == ["a[0]: is bad"]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(codec="ascii", exclude_characters="\0")), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=200)
@given(value=JSON_VALUES, indent=st.sampled_from([None, 1, "\t"]), is_ascii=st.booleans())
def test_any_json_comes_back_as_it_was(value, indent, is_ascii):
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)

    assert value_of(text) == value


@settings(max_examples=300)
@given(text=st.text(st.sampled_from("ab:-{}[]&*<!?|>'\"\\%@,# \n\t019.~\0é\ud800")))
def test_any_text_is_a_document_or_a_refusal_with_a_place(text):
    outcome = outcome_of(text)

    if isinstance(outcome, InvalidDefinition):
        assert all(isinstance(problem, PlacedProblem) for problem in outcome.problems)
    else:
        assert is_plain(outcome.value)
