"""Values are measured while they are written."""

import tracemalloc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.core.canonical import canonical
from ropewalk.core.measured import TooLarge, measured

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)
MIB = 2**20


@given(VALUES)
def test_what_fits_is_written_as_the_encoder_writes_it(value: object):
    text = msgspec.json.encode(value)

    assert measured(value, len(text)) == text
    assert measured(value, len(text), is_sorted=True) == canonical(value)


@given(VALUES)
def test_one_byte_more_than_fits_is_too_large(value: object):
    with pytest.raises(TooLarge):
        measured(value, len(msgspec.json.encode(value)) - 1)


@pytest.mark.parametrize("shape", [lambda part: [part] * 500, lambda part: {"a": {str(n): part for n in range(500)}}])
def test_what_is_too_large_is_never_in_memory_as_a_whole(shape):
    value = shape("x" * MIB)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            measured(value, 4 * MIB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 32 * MIB
