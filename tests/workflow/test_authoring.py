"""References to values that an execution will have."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.authoring import Reference, as_json, execution, index, item
from ropewalk.core.expression import check_template
from ropewalk.workflow import Workflow

workflow = Workflow("w")
order = workflow.node("order", "noop")


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        (order.output, "{{ nodes.order.output }}"),
        (order.output.total, "{{ nodes.order.output.total }}"),
        (order.output["total"], "{{ nodes.order.output.total }}"),
        (order.output.total["x y"][0], '{{ nodes.order.output.total["x y"][0] }}'),
        (order.output["_id"]["from"], "{{ nodes.order.output._id.from }}"),
        (order.output['say "hi"\n'], '{{ nodes.order.output["say \\"hi\\"\\n"] }}'),
        (order.output.rows[index], "{{ nodes.order.output.rows[index] }}"),
        (order.error.message, "{{ nodes.order.error.message }}"),
        (order.errors[0], "{{ nodes.order.errors[0] }}"),
        (order.state, "{{ nodes.order.state }}"),
        (workflow.input.orderId, "{{ input.orderId }}"),
        (workflow.vars.shop, "{{ vars.shop }}"),
        (item.name, "{{ item.name }}"),
        (execution.id, "{{ execution.id }}"),
    ],
)
def test_a_reference_is_the_text_of_an_expression(reference, text):
    assert str(reference) == text
    assert check_template(text)[1] == []


def test_references_stand_inside_texts_lists_and_objects():
    value = {"to": [item.mail, (order.output,)], "subject": f"Order {order.output.id}!", "n": 3}

    assert as_json(value, ()) == {
        "to": ["{{ item.mail }}", ["{{ nodes.order.output }}"]],
        "subject": "Order {{ nodes.order.output.id }}!",
        "n": 3,
    }


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_any_key_makes_an_expression_that_can_be_read(key):
    assert check_template(str(item[key]))[1] == []


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (bool, "neither true nor false"),
        (list, "give it to for_each"),
        (lambda reference: 3 in reference, "is not iterable"),
        (lambda reference: reference == 3, "compare in a text"),
        (lambda reference: reference != 3, "compare in a text"),
        (lambda reference: reference > 100, "compare in a text"),
        (lambda reference: reference + 1, "unsupported operand"),
        (lambda reference: {reference: 1}, "unhashable"),
        (lambda reference: reference[True], "no keys"),
        (lambda reference: reference[1.5], "a key is text or a whole number, not a number"),
        (lambda reference: f"{reference:>10}", "unsupported format string"),
    ],
)
def test_a_reference_has_no_value_in_python_and_says_so(use, message):
    with pytest.raises(TypeError, match=message):
        use(order.output.total)


def test_python_finds_no_hidden_names_on_a_reference():
    with pytest.raises(AttributeError, match=r"goes in brackets: \['_id'\]"):
        _ = order.output._id

    assert str(copy.deepcopy(order.output)) == str(order.output)
    assert repr(Reference("item")) == "Reference('item')"
