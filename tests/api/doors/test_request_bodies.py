"""Intake: any bytes are a value or a refusal, never anything else, and in bounded time."""

import json
import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Message

from ropewalk.api.doors import request_bodies
from ropewalk.api.doors.request_bodies import (
    DEEPEST,
    LARGE,
    LARGEST_BODY,
    LARGEST_INTEGER,
    StrictRequest,
    read_json,
    strict_json,
)
from ropewalk.api.shapes.problems import Refused

PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | PLAIN,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(PLAIN, inner, max_size=5),
    max_leaves=30,
)
PIECES = st.sampled_from(
    ["[", "]", "{", "}", ",", ":", '"', '"a"', "\\u0000", '"\\ud800"', "NaN", "-Infinity", "1e999", "9" * 30, "-", "."]
)


def answer(text: bytes) -> Any:
    """The value, or the status of the refusal."""
    try:
        return strict_json(text)
    except Refused as refusal:
        return refusal.status_code


def is_settled(text: bytes) -> bool:
    """Refused as malformed, or a value that says the same once it is written and read again."""
    try:
        value = strict_json(text)
    except Refused as refusal:
        return refusal.status_code == 400
    return bool(strict_json(json.dumps(value, allow_nan=False).encode()) == value)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_refusal(text: bytes):
    assert is_settled(text)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_any_pieces_of_json_are_a_value_or_a_refusal(text: str):
    assert is_settled(text.encode())


@given(VALUES)
@settings(max_examples=200)
def test_every_value_comes_through_as_it_is(value: Any):
    assert strict_json(json.dumps(value).encode()) == value
    assert strict_json(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        b'{"a":1,"a":1}',
        b'[{"a":{"b":1,"b":2}}]',
        b'{"a":1,"\\u0061":2}',
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e400",
        b"-1e400",
        b"9007199254740993",
        b"-9007199254740993",
        b'"\\u0000"',
        b'{"\\u0000":1}',
        b'"\\ud800"',
        b'{"\\udfff":1}',
        b'"a\nb"',
        b"{'a':1}",
        b"[1,]",
        b"01",
        b"1 2",
        b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1),
        b'{"a":' * (DEEPEST + 1) + b"1" + b"}" * (DEEPEST + 1),
    ],
    ids=lambda text: text[:30],
)
def test_what_two_readers_could_understand_in_two_ways_is_refused(text: bytes):
    assert answer(text) == 400


@pytest.mark.parametrize("text", [b"[" * DEEPEST + b"]" * DEEPEST, b"9007199254740992", b'"\\ud83d\\ude00"'])
def test_what_is_just_within_the_limits_comes_through(text: bytes):
    assert answer(text) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        b"{" + b",".join(b'"k%d":1' % n for n in range(80_000)) + b',"k79999":2}',
        b"[" * LARGEST_BODY,
        b'{"a":' * (LARGEST_BODY // 5),
        b"1" * LARGEST_BODY,
        b"1." + b"1" * LARGEST_BODY,
        b"1e" + b"9" * LARGEST_BODY,
        b"[" + b"[]," * (LARGEST_BODY // 3) + b"[]]",
        b'"' + b"\\u0041" * (LARGEST_BODY // 6) + b'"',
        b'"' + b"\\" * LARGEST_BODY,
        b" " * LARGEST_BODY,
    ],
    ids=lambda text: text[:12],
)
def test_the_worst_bodies_take_bounded_time(text: bytes):
    began = time.process_time()

    answer(text)

    assert time.process_time() - began < 3


async def read(chunks: list[bytes], largest: int = 100, **headers: str) -> bytes | int:
    """What a request with this body gives."""
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        return messages.pop(0)

    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    request = StrictRequest({"type": "http", "method": "POST", "headers": given}, receive, largest)
    try:
        return await request.body()
    except Refused as refusal:
        return refusal.status_code


@pytest.mark.parametrize(
    ("chunks", "headers", "expected"),
    [
        ([b"x" * 50, b"x" * 50], {}, b"x" * 100),
        ([b"x" * 50, b"x" * 51], {}, 413),
        ([b"x"] * 101, {"content_length": "5"}, 413),
        ([], {"content_length": "101"}, 413),
        ([], {"content_length": "9" * 5_000}, 413),
        ([b"x"], {"content_length": "-1"}, b"x"),
        ([b"x"], {"content_encoding": "gzip"}, 415),
        ([b"x"], {"content_encoding": "identity"}, b"x"),
    ],
)
async def test_a_body_is_read_up_to_its_limit_also_if_its_headers_lie(
    chunks: list[bytes], headers: dict[str, str], expected: bytes | int
):
    assert await read(chunks, **headers) == expected


@pytest.mark.parametrize(("size", "beside_the_loop"), [(LARGE, False), (4 * LARGE, True)])
async def test_a_large_body_is_understood_beside_the_loop(
    size: int, beside_the_loop: bool, monkeypatch: pytest.MonkeyPatch
):
    readers: list[int] = []

    def reading(text: bytes) -> object:
        readers.append(threading.get_ident())
        return strict_json(text)

    monkeypatch.setattr(request_bodies, "strict_json", reading)
    body = b"[" + b"1," * (size // 2 - 2) + b"1]"

    assert await read_json(body) == json.loads(body)
    assert (readers != [threading.get_ident()]) is beside_the_loop
