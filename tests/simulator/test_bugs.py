"""Every seeded bug is caught: the simulator sees what it is there to see."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.simulator.bugs import BUGS, Bug
from tests.simulator.hunt import MOST_HISTORIES, hunt


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_seeded_bug_is_caught(bug: Bug, record_property: Callable[[str, Any], None]):
    caught = hunt(bug)

    assert caught is not None, f"{bug.name} survived {MOST_HISTORIES} histories"
    record_property("histories", caught.histories)
    record_property("violation", caught.violation)


def test_a_planted_bug_is_taken_out_again():
    bug = BUGS[0]
    sound = bug.function.__code__

    with bug.planted():
        assert bug.function.__code__ != sound
    assert bug.function.__code__ is sound


def test_a_bug_whose_text_is_gone_is_an_error():
    stale = Bug("stale", hunt, "a text that is not there", "")

    with pytest.raises(LookupError, match="must be there once"), stale.planted():
        pass


def test_no_two_bugs_are_the_same():
    assert len({(bug.function, bug.right, bug.wrong) for bug in BUGS}) == len(BUGS)
