"""Equal source is compiled once, wherever it stands, and every place is told of with its own position."""

import gc

import pytest

from ropewalk.core.expression import ExpressionError, Scope, check_template, compile_template
from ropewalk.core.expression.program import Expression

LONG = "{{ input.name }} of {{ input.count + 1 }}, " * 500


def expressions() -> int:
    gc.collect()
    return sum(isinstance(each, Expression) for each in gc.get_objects())


def test_expressions_of_equal_source_are_compiled_once_and_gone_with_the_last_template():
    before = expressions()
    templates = [compile_template({"text": LONG + str(n), "count": "{{ input.count + 1 }}"}) for n in range(10)]
    alive = expressions() - before
    texts = [template.resolve(Scope(input={"name": "x", "count": 1})) for template in templates]
    del templates

    assert alive == 3
    assert texts[7] == {"text": "x of 2, " * 500 + "7", "count": 2}
    assert expressions() == before


@pytest.mark.parametrize(
    ("text", "position"),
    [("{{ 1 / input }}", 5), ("  {{ 1 / input }} ", 7), ("a {{ 1 }} {{ 1 / input }}", 15), ("{{ 1 / input }}!", 5)],
)
def test_an_error_of_a_shared_expression_tells_the_place_in_its_own_text(text: str, position: int):
    template = compile_template([text, "before {{ 1 / input }}"])

    with pytest.raises(ExpressionError) as raised:
        template.resolve(Scope(input=0))

    assert raised.value.position == position


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a {{ input. }}", "at 12: expected a name behind the dot; other keys go in brackets"),
        ("a {{ 1 }} {{ inptu.a }}", "at 13: unknown name 'inptu'"),
        ("a {{ 1 + }}", "at 9: expected a value"),
        ("a {{ 1", "at 2: this {{ is not closed"),
    ],
)
def test_a_mistake_is_told_with_its_place_in_the_whole_text(text: str, message: str):
    _, [problem] = check_template(text)

    assert str(problem).startswith(message) or message in str(problem)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{{ "{{" }}', "{{"),
        ('a {{ "}}" }} b', "a }} b"),
        ('{{ {"a": {"b": input}} }}', {"a": {"b": 3}}),
        ('- {{ {"a": {"b": input}}.a.b }}', "- 3"),
        ("{{ input }} }}", "3 }}"),
        ("{{ input }}{{ input }}", "33"),
    ],
)
def test_braces_inside_an_expression_do_not_end_it(text: str, value: object):
    assert compile_template(text).resolve(Scope(input=3)) == value
