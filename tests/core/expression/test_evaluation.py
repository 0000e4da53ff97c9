"""What expressions make of values."""

from collections.abc import Mapping

import pytest

from ropewalk.core.errors import RopewalkError
from ropewalk.core.expression import ExpressionError, Scope, compile_expression, is_true
from tests.core.expression.test_syntax import error_of, value_of

ORDER = {"id": "o-1", "total": 120, "lines": [{"sku": "a", "x y": 7}, {"sku": "b"}], "note": None}


class Records(Mapping):
    """Records of nodes that are made when asked for, as an engine may hand them in."""

    def __init__(self, records):
        self.records = records
        self.asked = []

    def __getitem__(self, key):
        self.asked.append(key)
        return self.records[key]

    def __iter__(self):
        return iter(self.records)

    def __len__(self):
        return len(self.records)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("input.id", "o-1"),
        ("input['id']", "o-1"),
        ("input.lines[0]['x y']", 7),
        ("input.lines[-1].sku", "b"),
        ("input.lines[index].sku", "b"),
        ("input[item]", 120),
        ("input.missing", None),
        ("input.missing.deeper[3].still", None),
        ("input.note.x", None),
        ("input.lines[2]", None),
        ("input.lines[-3]", None),
        ("input.lines[null]", None),
        ("vars.x", None),
        ("[1, 2][1]", 2),
        ("{a: 5}.a", 5),
    ],
)
def test_looking_up_gives_the_value_or_null(source, value):
    assert value_of(source, input=ORDER, index=1, item="total") == value


@pytest.mark.parametrize(
    "source",
    [
        "input.id.upper",
        "input.id.__class__",
        "input.id[0]",
        "input.total.real",
        "input.lines.append",
        "input.lines['sku']",
        "input.lines[true]",
        "input.lines[1.0]",
        "input[0]",
        "''.format",
        "true.x",
    ],
)
def test_only_objects_and_lists_hold_anything(source):
    assert "cannot look up" in error_of(source, input=ORDER).message


@pytest.mark.parametrize("name", ["__class__", "__dict__", "get", "keys", "items", "__init__"])
def test_a_python_attribute_is_just_a_missing_key(name):
    assert value_of(f"input.{name}", input=ORDER) is None
    assert value_of(f"input['{name}']", input=ORDER) is None


def test_nodes_are_read_from_any_mapping_and_only_those_asked_for():
    nodes = Records({"a": Records({"output": {"n": 5}, "state": "SUCCESS"}), "b": Records({"output": None})})

    assert value_of("nodes.a.output.n", nodes=nodes) == 5
    assert value_of("nodes.a.output.n + 1", nodes=nodes) == 6
    assert value_of("nodes.b.output.n", nodes=nodes) is None
    assert value_of("nodes.c.state", nodes=nodes) is None
    assert nodes.asked == ["a", "a", "b", "c"]


def test_a_path_gives_the_very_value_without_copying():
    assert value_of("input.lines", input=ORDER) is ORDER["lines"]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("7 / 2", 3.5),
        ("6 / 2", 3),
        ("-7 % 3", 2),
        ("7.5 % 2", 1.5),
        ("0.5 + 1", 1.5),
        ("'a' + 'b' + 'c'", "abc"),
        ("[1] + [2] + []", [1, 2]),
        ("-input.total", -120),
        ("9007199254740991 + 1", 2**53),
    ],
)
def test_arithmetic_joins_like_with_like(source, value):
    found = value_of(source, input=ORDER)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("source", "position", "hint"),
    [
        ("1 + null", 2, "default with ??"),
        ("input.note * 2", 11, "default with ??"),
        ("1 + 'a'", 2, "cannot add a number and a text"),
        ("true + 1", 5, "cannot add a boolean and a number"),
        ("[1] + 1", 4, "cannot add a list and a number"),
        ("{} + {}", 3, "cannot add an object and an object"),
        ("'a' * 3", 4, "cannot calculate with a text and a number"),
        ("1 / 0", 2, "divides by zero"),
        ("1 % 0.0", 2, "divides by zero"),
        ("-'a'", 0, "cannot negate a text"),
        ("9007199254740992 + 1", 17, "out of range"),
        ("-9007199254740992 - 1", 18, "out of range"),
        ("9007199254740992 * 9007199254740992", 17, "out of range"),
        ("1e308 * 10", 6, "out of range"),
        ("1e308 + 1e308 - 1e308", 6, "out of range"),
        ("1 < 'a'", 2, "cannot compare a number and a text"),
        ("null < 1", 5, "default with ??"),
        ("[] < []", 3, "cannot compare a list and a list"),
        ("true < false", 5, "cannot compare"),
        ("1 in 2", 2, "cannot look for a number in a number"),
        ("1 in {}", 2, "cannot look for a number in an object"),
        ("1 in 'a1'", 2, "cannot look for a number in a text"),
    ],
)
def test_what_cannot_be_joined_is_an_error_at_the_operator(source, position, hint):
    error = error_of(source, input=ORDER)

    assert hint in error.message
    assert error.position == position
    assert isinstance(error, RopewalkError)


@pytest.mark.parametrize(
    ("left", "right", "is_equal"),
    [
        ("1", "1.0", True),
        ("1", "true", False),
        ("0", "false", False),
        ("null", "false", False),
        ("null", "null", True),
        ("'1'", "1", False),
        ("'a'", "'a'", True),
        ("[1, {a: [2]}]", "[1.0, {a: [2]}]", True),
        ("[1]", "[true]", False),
        ("[1, 2]", "[2, 1]", False),
        ("[1]", "[1, 1]", False),
        ("{a: 1, b: 2}", "{b: 2, a: 1}", True),
        ("{a: 1}", "{b: 1}", False),
        ("{a: 1}", "{a: 2}", False),
        ("{}", "[]", False),
    ],
)
def test_two_values_are_equal_if_they_are_the_same_json(left, right, is_equal):
    assert value_of(f"{left} == {right}") is is_equal
    assert value_of(f"{left} != {right}") is not is_equal
    assert value_of(f"{left} in [{right}]") is is_equal


@pytest.mark.parametrize(
    ("source", "holds"),
    [
        ("1 < 2", True),
        ("1 <= 1.0", True),
        ("'a' > 'b'", False),
        ("'b' >= 'b'", True),
        ("'b' in 'abc'", True),
        ("'id' in input", True),
        ("'nope' in input", False),
        ("'x' in null", False),
        ("[1] in [[1]]", True),
        ("3 not in [1, 2]", True),
    ],
)
def test_comparisons_give_true_or_false(source, holds):
    assert value_of(source, input=ORDER) is holds


@pytest.mark.parametrize("source", ["null", "false", "0", "0.0", "''", "[]", "{}"])
def test_nothing_and_everything_empty_count_as_false(source):
    assert value_of(f"not ({source})") is True
    assert value_of(f"({source}) ? 1 : 2") == 2
    assert value_of(f"({source}) or false") is False
    assert is_true(value_of(source)) is False


def test_conditions_leave_alone_what_they_do_not_need():
    assert value_of("false and 1 / 0") is False
    assert value_of("true or 1 / 0") is True
    assert value_of("1 ?? 1 / 0") == 1
    assert value_of("true ? 1 : 1 / 0") == 1


def test_a_bound_name_hides_a_root_only_inside_its_rule():
    source = "map([1, 2], item => item * 10) + [item]"

    assert value_of(source, item=5) == [10, 20, 5]


def test_rules_nest_and_see_the_names_around_them():
    assert value_of("map([1, 2], x => map([10, 20], y => x + y))") == [[11, 21], [12, 22]]
    assert value_of("map([1, 2], x => map([10], x => x) + [x])") == [[10, 1], [10, 2]]


def test_pipes_inside_arguments_do_not_disturb_the_pipe_around_them():
    assert value_of("'a-b' | replace('-' | upper, '_' | lower) | upper") == "A_B"


def test_an_error_inside_a_rule_points_into_the_rule():
    assert error_of("map(['a'], x => x * 2)").position == 18


def test_the_same_expression_gives_the_same_value_every_time():
    expression = compile_expression("input.lines | map(x => x.sku) | join(',')")

    assert [expression.evaluate(Scope(input=ORDER)) for _ in range(3)] == ["a,b"] * 3


def test_what_an_expression_refers_to_and_calls_is_known_without_running_it():
    expression = compile_expression(
        "nodes.a.output.body.x + input.lines[0].sku + nodes['b'].state | upper"
        " | replace(vars.k[input.i].z, nodes.a.output.body.x) | upper"
    )

    assert expression.references == (
        ("nodes", "a", "output", "body", "x"),
        ("input", "lines"),
        ("nodes", "b", "state"),
        ("vars", "k"),
        ("input", "i"),
    )
    assert expression.functions == ("upper", "replace")


def test_bound_names_are_no_references():
    expression = compile_expression("map(input.items, item => item.x + index)")

    assert expression.references == (("input", "items"), ("index",))


def test_an_unknown_root_inside_a_rule_is_refused_too():
    with pytest.raises(ExpressionError, match="unknown name 'y'"):
        compile_expression("map([1], x => y)")
