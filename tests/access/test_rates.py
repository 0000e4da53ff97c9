"""Buckets: a burst, then a steady rate, in bounded memory."""

import pytest

from ropewalk.access.rates import Buckets, Rate, address_of, is_loopback
from ropewalk.core.duration import SECOND

TWO = Rate(2, 4)


def test_a_burst_is_let_through_and_the_next_is_told_how_long_to_wait():
    buckets = Buckets(Rate(0.1, 3))

    assert [buckets.take("a", 0) for _ in range(5)] == [None, None, None, 10, 10]


def test_in_the_long_run_the_rate_is_what_gets_through():
    buckets = Buckets(TWO)

    passed = sum(buckets.take("a", step * SECOND // 100) is None for step in range(10_000))

    assert passed == pytest.approx(2 * 100 + 4, abs=1)


def test_waiting_as_long_as_one_was_told_is_enough():
    buckets = Buckets(Rate(0.3, 1))
    buckets.take("a", 0)
    wait = buckets.take("a", 0)

    assert wait is not None
    assert buckets.take("a", wait * SECOND) is None


def test_no_caller_pays_for_another():
    buckets = Buckets(Rate(1, 1))
    buckets.take("a", 0)

    assert buckets.take("b", 0) is None


def test_asking_how_long_takes_nothing():
    buckets = Buckets(Rate(1, 1))

    assert [buckets.wait("a", 0) for _ in range(3)] == [None] * 3
    assert buckets.take("a", 0) is None
    assert buckets.wait("a", 0) == 1


def test_no_rate_is_no_limit():
    buckets = Buckets(None)

    assert all(buckets.take("a", 0) is None for _ in range(100))
    assert len(buckets) == 0


def test_a_flood_of_strangers_takes_bounded_memory_and_forgets_who_came_longest_ago():
    buckets = Buckets(Rate(0.001, 1), most=100)
    for step in range(10_000):
        buckets.take(f"stranger {step}", step)
        buckets.take("regular", step)

    assert len(buckets) == 100
    assert buckets.take("regular", 10_000) is not None


@pytest.mark.parametrize(
    ("client", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("testclient", "testclient"),
    ],
)
def test_an_address_is_what_a_caller_cannot_have_many_of(client: str, address: str):
    assert address_of(client) == address


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_this_machine_is_known_in_every_spelling(client: str, expected: bool):
    assert is_loopback(client) is expected
