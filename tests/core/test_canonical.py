"""Canonical bytes, hashes and keys."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.core.canonical import canonical, content_hash, idempotency_key, is_plain, json_problems

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)
WORK = ("w1", "e1", "node", None, "inputs", "config")


def test_the_order_of_keys_makes_no_difference():
    assert canonical({"b": [1, {"d": 1, "c": 2}], "a": None}) == b'{"a":null,"b":[1,{"c":2,"d":1}]}'


@pytest.mark.parametrize(("left", "right"), [({"a": 1}, {"a": 2}), ([1, 2], [2, 1]), (1, True), (1, "1"), (None, "")])
def test_different_values_have_different_hashes(left, right):
    assert content_hash(left) != content_hash(right)


@pytest.mark.parametrize("value", [math.nan, [None, {"a": -math.inf}], {1: 2}, object(), "\ud800"])
def test_what_json_cannot_say_has_no_bytes(value):
    with pytest.raises(ValueError, match="is not a JSON value"):
        canonical(value)


def test_a_value_too_deep_to_write_has_no_bytes():
    deep = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(ValueError, match="is not a JSON value"):
        canonical(deep)


@given(value=JSON)
def test_a_value_is_plain_exactly_when_it_has_no_problem(value):
    assert is_plain(value) == (json_problems(value) == [])


@given(value=JSON)
def test_a_plain_value_has_bytes(value):
    if is_plain(value):
        assert canonical(value)


def test_an_idempotency_key_depends_on_all_of_the_work_and_nothing_else():
    others = [(*WORK[:n], 7 if n == 3 else "other", *WORK[n + 1 :]) for n in range(len(WORK))]

    keys = [idempotency_key(*work) for work in (WORK, *others)]

    assert len(set(keys)) == len(keys)
    assert keys[0] == idempotency_key(*WORK)


def test_keys_of_neighbouring_texts_do_not_collide():
    assert idempotency_key("a", "bc", "n", 0, "", "") != idempotency_key("ab", "c", "n", 0, "", "")
