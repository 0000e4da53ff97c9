"""What can be written, how it binds, and where a mistake is pointed at."""

import pytest

from ropewalk.core.expression import ExpressionError, Scope, compile_expression


def value_of(source, **names):
    return compile_expression(source).evaluate(Scope(**names))


def error_of(source, **names):
    with pytest.raises(ExpressionError) as caught:
        value_of(source, **names)
    return caught.value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("null", None),
        ("true", True),
        ("false", False),
        ("12", 12),
        ("-12", -12),
        ("1.5e2", 150.0),
        ("9007199254740992", 2**53),
        ("'a\"b'", 'a"b'),
        ('"a\'b"', "a'b"),
        (r'"a\n\t\"\\\/\u00e9"', 'a\n\t"\\/é'),
        (r'"\ud83d\ude00"', "😀"),
        ("[]", []),
        ("[1, [2], 'x']", [1, [2], "x"]),
        ("{}", {}),
        ("{a: 1, 'x y': {in: null}}", {"a": 1, "x y": {"in": None}}),
        (" \n 1 \t ", 1),
    ],
)
def test_a_literal_stands_for_itself(source, value):
    found = value_of(source)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 2 - 3", 5),
        ("2 * 3 % 4", 2),
        ("-2 * 3", -6),
        ("1 - -1", 2),
        ("not 1 == 2", True),
        ("not not true", True),
        ("true or true and false", True),
        ("1 + 1 == 2 and 'a' in 'cat'", True),
        ("null ?? 1 > 0", True),
        ("null ?? 1 + 1", 2),
        ("null ?? null ?? 3", 3),
        ("1 < 2 ? 'a' : 'b'", "a"),
        ("false ? 1 : false ? 2 : 3", 3),
        ("true ? false ? 1 : 2 : 3", 2),
        ("'a' + 'b' | upper", "AB"),
        ("true ? 'a' : 'b' | upper", "A"),
        ("[3, 1] | sort | first", 1),
        ("1 not in [2]", True),
        ("{a: true ? 1 : 2}.a", 1),
        ("[[1, 2], [3]][0][1]", 2),
    ],
)
def test_operators_bind_as_the_reference_says(source, value):
    assert value_of(source) == value


def test_words_of_the_language_are_good_keys():
    assert value_of("input.in.not.null", input={"in": {"not": {"null": 5}}}) == 5


def test_names_may_use_any_letters():
    assert value_of("input.größe", input={"größe": 4}) == 4


@pytest.mark.parametrize(
    ("source", "position", "hint"),
    [
        ("", 0, "missing"),
        ("   ", 3, "missing"),
        ("1 +", 3, "the expression ends"),
        ("1 2", 2, "expected an operator"),
        ("(1", 2, "')'"),
        ("[1 2]", 3, "',' or ']'"),
        ("[1,]", 3, "a value"),
        ("{a 1}", 3, "':'"),
        ("{1: 2}", 1, "a key"),
        ("{a: 1 b: 2}", 6, "',' or '}'"),
        ("input.", 6, "a name behind the dot"),
        ("input.1", 6, "a name behind the dot"),
        ("input[", 6, "a value"),
        ("input[0", 7, "']'"),
        ("a", 0, "unknown name 'a'"),
        ("1 + inptu.x", 4, "did you mean input?"),
        ("shout('a')", 0, "unknown function 'shout'"),
        ("uper('a')", 0, "did you mean upper?"),
        ("upper()", 0, "upper(value: text) -> text"),
        ("upper('a', 'b')", 0, "wrong number of arguments"),
        ("'a' | 1", 6, "the name of a function"),
        ("map([1], 2)", 9, "needs a rule"),
        ("upper(x => 1)", 6, "can only be an argument"),
        ("1 => 2", 2, "expected an operator"),
        ("1 < 2 < 3", 6, "join them with 'and'"),
        ("1 not 2", 6, "'in' behind this 'not'"),
        ("1 ? 2", 5, "':'"),
        ("a = 1", 2, "write '=='"),
        ("1 && 2", 2, "write 'and'"),
        ("1 || 2", 2, "write 'or'"),
        ("!1", 0, "write 'not'"),
        ("1 === 2", 2, "write '=='"),
        ("1abc", 0, "runs into a name"),
        ("1e999", 0, "too large"),
        ("9007199254740993", 0, "too large"),
        ("'abc", 0, "not closed"),
        (r"'a\qb'", 2, "unknown escape"),
        (r"'\ud800'", 0, "lone surrogate"),
        ("'\ud800'", 0, "lone surrogate"),
        ("1 # 2", 2, "cannot read"),
        ("1 ; 2", 2, "cannot read"),
        ("\x00", 0, "cannot read"),
        ("\ud800", 0, "cannot read"),
        ("nodes", 0, "nodes.<id>.<field>"),
        ("nodes.a", 0, "nodes.<id>.<field>"),
        ("nodes.a.secret", 0, "output, state, error, errors"),
        ("nodes[input.which].output", 0, "spelled out"),
        ("nodes.a[input.which]", 0, "spelled out"),
        ("matches('a', '(')", 13, "cannot use the pattern"),
    ],
)
def test_a_mistake_is_refused_with_its_place_and_a_remedy(source, position, hint):
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source)

    assert hint in caught.value.message
    assert caught.value.position == position
    assert str(caught.value) == f"at {position}: {caught.value.message}"
