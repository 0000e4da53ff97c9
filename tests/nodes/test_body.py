"""Compressed and oversized answers."""

import gzip
import os
import zlib

import pytest

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.body import LARGEST_BODY


async def test_a_compressed_answer_is_unfolded(site, request_):
    site.answer(
        "/", body=gzip.compress(b'{"a": 1}'), content_type="application/json", headers={"Content-Encoding": "gzip"}
    )

    assert (await request_())["body"] == {"a": 1}


@pytest.mark.parametrize(
    ("body", "encoding", "kind", "message"),
    [
        (bytes(LARGEST_BODY + 1), "identity", ErrorType.PERMANENT, f"the answer is larger than {LARGEST_BODY} bytes"),
        (gzip.compress(os.urandom(2**19) * 40), "gzip", ErrorType.PERMANENT, "the answer is larger than"),
        (gzip.compress(bytes(2**22)), "gzip", ErrorType.PERMANENT, "the answer unfolds to too many times its size"),
        (b"not gzip", "gzip", ErrorType.TRANSIENT, "the answer is not what its encoding says"),
        (gzip.compress(os.urandom(100))[:-20], "gzip", ErrorType.TRANSIENT, "the answer was cut short"),
        (gzip.compress(b"a") * 101, "gzip", ErrorType.PERMANENT, "the answer is folded in too many pieces"),
        (zlib.compress(b"a"), "br", ErrorType.PERMANENT, "the answer has an encoding we did not ask for: 'br'"),
    ],
    ids=["large", "large unfolded", "bomb", "no gzip", "cut short", "pieces", "unknown"],
)
async def test_answers_are_bounded_before_and_after_unfolding(site, failure, body, encoding, kind, message):
    site.answer("/", body=body, headers={"Content-Encoding": encoding})

    error = await failure()

    assert error.type is kind
    assert error.message.startswith(message)


async def test_several_gzip_members_are_one_body(site, request_):
    site.answer("/", body=gzip.compress(b"one ") + gzip.compress(b"two"), headers={"Content-Encoding": "gzip"})

    assert (await request_(responseType="text"))["body"] == "one two"
