"""Durations as people write them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.core.duration import DAY, HOUR, MINUTE, SECOND, WEEK, YEAR, format_duration, parse_duration


@pytest.mark.parametrize(
    ("written", "length"),
    [
        ("30s", 30 * SECOND),
        ("5m", 5 * MINUTE),
        ("2d", 2 * DAY),
        ("1h30m", 90 * MINUTE),
        ("250ms", 250_000),
        ("1w", WEEK),
        ("1w2d3h4m5s6ms", WEEK + 2 * DAY + 3 * HOUR + 4 * MINUTE + 5 * SECOND + 6_000),
        ("0.1s", 100_000),
        ("1.5h", 90 * MINUTE),
        ("0s", 0),
        ("PT30S", 30 * SECOND),
        ("P1DT2H", DAY + 2 * HOUR),
        ("P2W", 2 * WEEK),
        ("PT0.25S", 250_000),
        (7, 7 * SECOND),
        (0.5, SECOND // 2),
    ],
)
def test_every_way_to_write_a_duration_is_understood(written, length):
    assert parse_duration(written) == length


@pytest.mark.parametrize(
    "written",
    [
        "", " ", "5", "s", "-5s", "5 s", "5S", "30m1h", "1h1h", "P", "PT", "P1DT", "P1Y", "PT1", "٣s", "1e3s", "5s\n",
        "9" * 13 + "s", "1" * 1000, None, True, [], {}, math.nan, math.inf, -math.inf, -1, 1e300, 10**400, -(10**400),
    ],
)  # fmt: skip
def test_what_is_no_duration_is_refused(written):
    with pytest.raises(ValueError):
        parse_duration(written)


@pytest.mark.parametrize("written", ["366d", 366 * 86_400, "999999999999w"])
def test_a_duration_beyond_its_bounds_names_them(written):
    with pytest.raises(ValueError, match=r"^must be from 1s to 52w1d$"):
        parse_duration(written, shortest=SECOND, longest=YEAR)


@given(st.integers(0, 10 * YEAR))
def test_a_length_written_out_reads_back_the_same(length):
    assert parse_duration(format_duration(length), longest=10 * YEAR) == length


@given(st.text())
def test_any_text_is_a_duration_or_a_value_error(text):
    try:
        length = parse_duration(text)
    except ValueError:
        return

    assert 0 <= length <= YEAR
