"""JSON with expressions in its texts."""

import pytest

from ropewalk.core.errors import Problem
from ropewalk.core.expression import ExpressionError, Scope, check_template, compile_template, has_expression

SCOPE = Scope(
    input={"id": 7, "name": "Ada", "list": [1, "a"], "none": None, "tricky": "{{ vars.secret }}"}, vars={"secret": 1}
)


def resolved(value):
    return compile_template(value).resolve(SCOPE)


@pytest.mark.parametrize("text", ["{{ input.id }}", "{{input.id}}", "  {{ input.id }}\n"])
def test_a_text_that_is_one_expression_gives_its_own_value(text):
    assert resolved(text) == 7


def test_a_whole_value_is_the_very_object():
    assert resolved("{{ input.list }}") is SCOPE.input["list"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no. {{ input.id }}", "no. 7"),
        ("{{ input.id }}{{ input.id }}", "77"),
        ("{{ input.name }}!", "Ada!"),
        ("<{{ input.none }}{{ input.missing }}>", "<>"),
        ("<{{ true }}|{{ 1.50 }}|{{ 1e21 }}>", "<true|1.5|1e21>"),
        ("<{{ input.list }}|{{ {a: 'é'} }}>", '<[1,"a"]|{"a":"é"}>'),
        ('{{ "{{" }} literal }}', "{{ literal }}"),
        ("{{ {a: {b: 1}}}}", {"a": {"b": 1}}),
        ("{{ {a: {b: 1}} }}.", '{"a":{"b":1}}.'),
        ("{{ '}}' }}", "}}"),
        ("no {braces} } here }}", "no {braces} } here }}"),
        ("", ""),
        ("{{ '' }}", ""),
    ],
)
def test_parts_are_written_into_the_text(text, value):
    assert resolved(text) == value


@pytest.mark.parametrize("text", ["{{ input.tricky }}", "{{ input.tricky + '' }}", "{{ '{' + '{ vars.secret }}' }}"])
def test_what_comes_out_is_never_looked_through_again(text):
    assert resolved(text) == "{{ vars.secret }}"
    assert resolved(f"a {text}") == "a {{ vars.secret }}"


def test_expressions_are_resolved_anywhere_in_a_tree_and_order_is_kept():
    tree = {"z": "{{ input.id }}", "a": [1, {"b": "x{{ input.id }}", "c": None}], "m": "plain", "{{ input.id }}": True}

    found = resolved(tree)

    assert found == {"z": 7, "a": [1, {"b": "x7", "c": None}], "m": "plain", "{{ input.id }}": True}
    assert list(found) == list(tree)
    assert tree["z"] == "{{ input.id }}"


@pytest.mark.parametrize("value", [None, 1, 1.5, True, "text", "{ }", [], {}, {"a": [1, {"b": "c"}]}])
def test_a_constant_resolves_to_itself(value):
    template = compile_template(value)

    assert template.is_constant
    assert template.references == ()
    assert template.functions == ()
    assert template.resolve(SCOPE) is value


def test_references_and_functions_of_a_whole_tree_are_in_order_without_repetition():
    template = compile_template(
        {"a": "{{ nodes.order.output }}/{{ input.id | text }}", "b": ["{{ input.id }}", "{{ upper(item) }}"]}
    )

    assert not template.is_constant
    assert template.references == (("nodes", "order", "output"), ("input", "id"), ("item",))
    assert template.functions == ("text", "upper")


@pytest.mark.parametrize(
    ("text", "position", "hint"),
    [
        ("{{", 2, "missing"),
        ("{{ }}", 3, "missing"),
        ("abc {{ input.id", 4, "not closed"),
        ("{{ input.id }", 12, "or }}"),
        ("{{ input.id } }", 12, "or }}"),
        ("{{ 'a }}", 3, "not closed"),
        ("{{ input.id }} {{ nope }}", 18, "unknown name"),
        ("{{{ a: 1 }}", 10, "or }}"),
        ("{{ 1 }} {{ " + " " * 5000 + "1 }}", 10, "longer than"),
    ],
)
def test_a_bad_text_is_refused_at_its_place(text, position, hint):
    with pytest.raises(ExpressionError) as caught:
        compile_template({"a": text})

    assert hint in caught.value.message
    assert caught.value.position == position


def test_a_mistake_found_while_evaluating_has_its_place_in_the_whole_text():
    with pytest.raises(ExpressionError) as caught:
        resolved("order {{ input.id }}: {{ input.none + 1 }}")

    assert caught.value.position == 36


def test_every_bad_text_is_named_with_its_place_in_the_tree():
    tree = {"a": "{{ 1 + }}", "b": [{"c": "fine {{ input }}"}, "{{ other }}"]}

    template, problems = check_template(tree, ("nodes", 2, "with"))

    assert template is None
    assert problems == [
        Problem(("nodes", 2, "with", "a"), "at 7: expected a value, found '}'"),
        Problem(
            ("nodes", 2, "with", "b", 1),
            "at 3: unknown name 'other'; there are input, vars, nodes, item, index, execution, workspace, env, now, "
            "event, error, attempt, last",
        ),
    ]


def test_a_good_tree_has_a_template_and_no_problems():
    template, problems = check_template({"a": "{{ input.id }}"})

    assert problems == []
    assert template.resolve(SCOPE) == {"a": 7}


@pytest.mark.parametrize("leaf", ["constant", "{{ input.id }}"])
def test_a_tree_nested_too_deep_is_a_problem_and_no_crash(leaf):
    tree = leaf
    for _ in range(100_000):
        tree = [tree]

    template, problems = check_template(tree, ("with",))

    assert template is None
    assert problems[0].path == ("with", *[0] * 64)
    assert problems[0].message == "at 0: nested deeper than 64 levels"


@pytest.mark.parametrize(
    "text", ["{{ input }}{{ input }}", "{{ input }}" * 3, "{{ [input] }}", "x" * (1 << 20) + "{{ 1 }}"]
)
def test_a_text_larger_than_the_limit_is_refused(text):
    template = compile_template(text)

    with pytest.raises(ExpressionError, match="1 MiB"):
        template.resolve(Scope(input="x" * (1 << 20)))


def test_each_expression_of_a_text_has_its_own_steps():
    part = "{{ length(map(range(0, 4000), x => x)) }},"

    assert resolved(part * 5) == "4000," * 5


def test_what_cannot_be_written_into_a_text_is_an_error_at_its_expression():
    template = compile_template("abc {{ input }}")

    with pytest.raises(ExpressionError, match="at 7: gives a number out of range"):
        template.resolve(Scope(input=10**400))
    with pytest.raises(ExpressionError, match="lone surrogate"):
        template.resolve(Scope(input=["\ud800"]))


def test_a_text_is_known_to_hold_an_expression_by_its_braces():
    assert has_expression("a {{ b }}")
    assert not has_expression("a { b }")
