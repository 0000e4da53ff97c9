"""What a node may hand on."""

import dataclasses
import hashlib
import math
from collections import OrderedDict, namedtuple
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.recording import Large, recorded
from ropewalk.nodes.values import check_output

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@dataclasses.dataclass
class Money:
    amount: Decimal
    currency: str = "EUR"


class Order(BaseModel):
    order_id: str = Field(alias="orderId")


class Parcel(msgspec.Struct, rename="camel"):
    tracking_id: str


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Twin(str):
    """A text that an object can hold beside its like."""

    def __eq__(self, other):
        return self is other

    __hash__ = str.__hash__


Point = namedtuple("Point", "x y")

ODD = st.sampled_from(
    [math.nan, math.inf, 2**53, 2**53 + 1, -(2**60), 10**400, -0.0, 1e308, True, "\ud800", "ä", b"x", (1,), {1},
     Level.HIGH, Colour.RED, Decimal("1.0"), date(2026, 11, 15), UUID(int=7), OrderedDict(a=1), [], {}, object()]
)  # fmt: skip
KEYS = st.text(max_size=3) | st.sampled_from([1, None, Colour.RED, "\udfff", (1,)])


def refusal(value, **options):
    with pytest.raises(NodeFailure) as caught:
        check_output(value, **options)
    assert caught.value.error.type is ErrorType.PERMANENT
    return caught.value.error.message


@given(JSON)
def test_plain_json_comes_back_as_the_very_same_value(value):
    assert check_output(value) is value


def told(check, value):
    """What comes of a value: its type, itself and its JSON, or why it is refused."""
    try:
        plain = check(value)
    except NodeFailure as failure:
        return failure.error.message
    return type(plain), plain, msgspec.json.encode(plain)


@given(JSON | ODD | st.dictionaries(KEYS, ODD | JSON, max_size=4))
def test_what_is_recorded_is_what_the_check_gives(value):
    assert told(lambda value: recorded(value, 10**6)[0], value) == told(check_output, value)


@pytest.mark.parametrize("value", [{"a": "x"}, {"a": ["x"]}, ["x"]])
def test_what_is_recorded_is_a_copy(value):
    copy, text = recorded(value, 100)

    assert (copy, text) == (value, None)
    assert copy is not value


@pytest.mark.parametrize("value", [{"a": "x" * 10}, ["x" * 10], "x" * 17])
def test_what_is_longer_is_there_as_json(value):
    text = msgspec.json.encode(value)

    assert recorded(value, len(text) - 1) == (None, Large(text, hashlib.sha256(text).hexdigest()))
    assert recorded(value, len(text)) == (value, None)


@pytest.mark.parametrize("value", [{"a": "x" * 2**26}, {f"k{place}": "x" * 2**20 for place in range(64)}])
def test_an_object_of_texts_is_too_large_like_any_other(value):
    with pytest.raises(NodeFailure, match="larger than 64 MiB"):
        recorded(value, 100)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, (2,)), [1, [2]]),
        (Point(1, 2), [1, 2]),
        (Money(Decimal("9.90")), {"amount": "9.90", "currency": "EUR"}),
        (Order(orderId="o1"), {"orderId": "o1"}),
        (Parcel("t1"), {"trackingId": "t1"}),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        ({"a": Colour.RED}, {"a": "red"}),
        (OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": (1,)}), {"a": [1]}),
        (datetime(2026, 11, 15, 13, tzinfo=timezone(timedelta(hours=1))), "2026-11-15T12:00:00Z"),
        (datetime(2026, 11, 15, 12, 0, 0, 5, tzinfo=UTC), "2026-11-15T12:00:00.000005Z"),
        (date(2026, 11, 15), "2026-11-15"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        ([1, (2,), 3], [1, [2], 3]),
    ],
)
def test_what_has_an_obvious_form_takes_it(value, plain):
    found = check_output(value)

    assert found == plain
    assert type(found) is type(plain)


@pytest.mark.parametrize("value", [{Colour.RED: 1, "b": "x"}, {"a": [{Colour.RED: Colour.RED}]}, {Twin("a"): None}])
def test_a_key_that_is_text_of_its_own_kind_becomes_plain_text_in_its_place(value):
    plain = check_output(value)

    assert exact(plain) == exact(msgspec.json.decode(msgspec.json.encode(plain)))
    assert list(map(str, plain)) == list(map(str, value))


def exact(value):
    """A value with the kinds of everything in it, in order."""
    if isinstance(value, dict):
        return [(type(key), key, exact(part)) for key, part in value.items()]
    return [exact(part) for part in value] if isinstance(value, list) else (type(value), value)


def test_converting_leaves_the_nodes_own_value_alone():
    value = {"a": (1,), "b": 2}

    assert check_output(value) == {"a": [1], "b": 2}
    assert value == {"a": (1,), "b": 2}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"items": [1, 2, 3, {"price": math.nan}]}, "output.items[3].price: NaN is not JSON"),
        ([-math.inf], "output[0]: Infinity is not JSON"),
        (Decimal("NaN"), "output: NaN is not JSON"),
        ({"a": b"x"}, "output.a: bytes is not JSON; hand it on as base64 text"),
        ({1: "a"}, "output.1: the key must be text"),
        ({Colour.RED: {1: 2}}, "output.red.1: the key must be text"),
        ({"a": 1, Twin("a"): 2}, "output.a: the key is there twice"),
        ({Twin("a"): 1, "a": 2}, "output.a: the key is there twice"),
        ({Twin("\ud800"): 1}, "output.\\ud800: has a lone surrogate, which is no character"),
        ({"a": {"b": 2**53 + 1}}, "output.a.b: the integer is beyond ±2⁵³; hand it on as text"),
        (["\ud800"], "output[0]: has a lone surrogate, which is no character"),
        ({"\udfff": 1}, "output.\\udfff: has a lone surrogate, which is no character"),
        ({"a": {1, 2}}, "output.a: a set has no order; hand on a sorted list"),
        (object(), "output: object is not JSON"),
        (Order, "output: ModelMetaclass is not JSON"),
        ((n for n in [1]), "output: generator is not JSON"),
        (datetime(2026, 11, 15), "output: the time has no zone, so it may be any of many; give it one"),  # noqa: DTZ001 -- on purpose
        (Money(Decimal("Infinity")), "output.amount: Infinity is not JSON"),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_place(value, message):
    assert refusal(value) == message


def nested(depth):
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_sixty_four_levels_are_deep_enough():
    assert check_output(nested(64)) == nested(64)
    assert refusal(nested(65)).endswith("is nested more than 64 levels deep")


def test_a_cycle_is_called_one():
    value: dict[str, Any] = {"a": [1]}
    value["a"].append(value)

    assert refusal(value) == "output.a[1]: refers back to itself"


def test_a_cycle_of_objects_is_refused():
    money = Money(Decimal(1))
    money.currency = money

    assert "levels deep" in refusal(money)


@pytest.mark.parametrize("value", ["x" * 99, "\x01" * 20, "ä" * 60, [12345678] * 12, {"k" * 99: 1}, [None] * 25])
def test_a_value_is_too_large_by_its_encoded_size(value):
    size = len(msgspec.json.encode(value))

    assert check_output(value, limit=size) is value
    assert refusal(value, limit=size - 1).endswith(f"is larger than {size - 1} bytes")


def test_a_gigabyte_made_of_one_megabyte_is_refused_before_it_is_built():
    assert refusal(["x" * 2**20] * 1024).endswith("is larger than 64 MiB")
