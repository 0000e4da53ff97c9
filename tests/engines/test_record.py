"""Logs are read many at a time, and never too much of them at once."""

import pytest

from ropewalk.engines.native.live import Written
from ropewalk.engines.native.record import Recorded, in_pieces


@pytest.mark.parametrize(
    ("sizes", "pieces"),
    [
        ([], []),
        ([1, 2, 7], ["abc"]),
        ([6, 5, 5, 1], ["a", "bc", "d"]),
        ([50, 1, 1], ["a", "bc"]),
        ([1, 50, 1], ["a", "b", "c"]),
    ],
)
def test_what_is_read_at_once_is_bounded_and_nothing_is_left_out(sizes: list[int], pieces: list[str]):
    found = {name: Recorded(Written(), size) for name, size in zip("abcd", sizes, strict=False)}

    assert ["".join(piece) for piece in in_pieces(found, most=10)] == pieces
