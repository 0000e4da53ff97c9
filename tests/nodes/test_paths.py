"""Dot paths: what they lead to, and what is none."""

import pytest

from ropewalk.nodes.paths import MISSING, drop, find, getter, kept, put, steps_of

ORDER = {"id": 1, "lines": [{"sku": "pen"}, {"sku": "ink"}], "a.b": {"c": None}, "0": "zero"}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("id", 1),
        ("lines[0].sku", "pen"),
        ("lines.1.sku", "ink"),
        ("lines[-1].sku", "ink"),
        ('["a.b"].c', None),
        ("0", "zero"),
        ("lines[2].sku", MISSING),
        ("lines[-3]", MISSING),
        ("id.x", MISSING),
        ("lines.sku", MISSING),
        ("nothing.at.all", MISSING),
    ],
)
def test_a_path_leads_to_a_value_or_to_nothing(path, found):
    assert find(ORDER, steps_of(path)) is found or find(ORDER, steps_of(path)) == found
    assert getter(path)(ORDER) == (None if found is MISSING else found)


@pytest.mark.parametrize(
    "path", ["", ".", "a.", ".a", "a..b", "a[", "a[x]", "a]b", 'a["b]', "a.[0]", ".".join("a" * 40)]
)
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ValueError, match="is no path"):
        steps_of(path)


def test_what_is_put_makes_objects_on_the_way():
    value = {"a": None, "list": [1]}

    put(value, "a.b.c", 1)
    put(value, "list[0]", 2)
    put(value, "list[1]", 3)

    assert value == {"a": {"b": {"c": 1}}, "list": [2, 3]}


@pytest.mark.parametrize("path", ["n.x", "list[5]", "list.x", "list[5].x"])
def test_a_step_that_cannot_be_taken_is_refused(path):
    with pytest.raises(ValueError, match="no"):
        put({"n": 1, "list": [1]}, path, 1)


def test_fields_are_dropped_and_kept_by_path():
    value = {"a": {"b": 1, "c": 2}, "list": [1, 2], "d": None}

    assert kept(value, ["a.b", "d", "x.y"]) == {"a": {"b": 1}, "d": None}
    for path in ("a.c", "list[0]", "x.y"):
        drop(value, path)
    assert value == {"a": {"b": 1}, "list": [2], "d": None}
