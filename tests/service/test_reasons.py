"""The words reasons are made of."""

import pytest

from ropewalk.core.duration import HOUR, SECOND
from ropewalk.service.reasons import brief, clock, command, few, lapse, nth

NOON = 4_102_488_000_000_000


@pytest.mark.parametrize(
    ("number", "word"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (113, "113th"),
                         (21, "21st"), (102, "102nd")]
)  # fmt: skip
def test_a_place_is_said_as_people_count(number: int, word: str):
    assert nth(number) == word


def test_a_moment_of_another_day_has_its_date():
    assert (clock(NOON, NOON + SECOND), clock(NOON, NOON + 1000 * HOUR)) == (
        "12:00:00Z", "2100-01-01T12:00:00Z",
    )  # fmt: skip


@pytest.mark.parametrize(("length", "words"), [(-5, "0s"), (1_234, "1ms"), (61_900_000, "1m1s")])
def test_a_length_of_time_is_said_without_its_crumbs(length: int, words: str):
    assert lapse(length) == words


def test_a_short_text_stays_as_it_is():
    assert brief("no  luck\n") == "no luck"


def test_of_many_names_the_first_are_said_and_the_others_counted():
    assert (few(["a", "b"]), few(list("abcdefg"))) == ("a, b", "a, b, c, d, e and 2 more")


def test_a_command_can_be_typed_with_any_text_in_it():
    assert command("signal", "e1", "go; rm 'x'") == """signal e1 'go; rm '"'"'x'"'"''"""
