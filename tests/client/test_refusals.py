"""Places, as people write them and as programs need them."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.client.refusals import path_of, refusal_of
from ropewalk.core.errors import Problem, RopewalkError

FIELDS = ("type", "detail", "problems", "field", "message", "instance")
NAMES = st.from_regex(r"[A-Za-z_$-][A-Za-z0-9_$-]{0,10}", fullmatch=True)
PATHS = st.lists(NAMES | st.integers(0, 10**6), max_size=6).map(tuple)


@given(PATHS)
def test_a_place_is_read_as_it_was_written(path: tuple[str | int, ...]):
    assert path_of(Problem(path, "").where) == path


@given(st.text(max_size=40))
def test_any_text_is_some_place(where: str):
    assert isinstance(path_of(where), tuple)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=8,
)


@given(st.integers(400, 599), st.binary(max_size=60) | VALUES.map(msgspec.json.encode))
def test_any_refusal_is_an_error_of_ours(status: int, body: bytes):
    assert isinstance(refusal_of(status, body), RopewalkError)
