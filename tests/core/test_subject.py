"""Subjects of events and their patterns."""

import pytest

from ropewalk.core.subject import matches


@pytest.mark.parametrize(
    ("pattern", "subject", "fits"),
    [
        ("order.paid", "order.paid", True),
        ("order.paid", "order.sent", False),
        ("order.*", "order.paid", True),
        ("order.*", "order", False),
        ("order.*", "order.7.paid", False),
        ("order.*.paid", "order.7.paid", True),
        ("order.>", "order.7.paid", True),
        ("order.>", "order", False),
        (">", "anything.at.all", True),
        ("*", "order", True),
    ],
)
def test_a_star_is_one_word_and_an_arrow_the_rest(pattern, subject, fits):
    assert matches(pattern, subject) is fits
