"""A request becomes the first events of a log."""

import pytest

from ropewalk.core.acceptance import LONGEST_KEY, StartRequest, Version, first_events
from ropewalk.core.errors import InvalidInput
from ropewalk.core.events import RULES, NodesCarriedOver
from tests.core.executions import NOON, workflow

PLAN = workflow("a b", "a->b", vars={"shop": "north", "days": 1}, concurrencyKey="{{ input.order }}")


def request(given: object = None, **more: object) -> StartRequest:
    return StartRequest(version=Version("w1", 3, "hash", PLAN), input={"order": 7} if given is None else given, **more)


def test_what_a_request_says_is_in_the_first_event_with_the_rules_of_today():
    accepted, events = first_events(request(vars={"days": 2}, env={"REGION": "x"}), "e1", NOON)

    assert events == [accepted]
    assert (accepted.execution, accepted.workflow, accepted.version, accepted.at) == ("e1", "w1", 3, NOON)
    assert (accepted.vars, accepted.env) == ({"shop": "north", "days": 2}, {"REGION": "x"})
    assert (accepted.concurrency_key, accepted.rules) == ("7", RULES)


def test_what_is_carried_over_is_dated_as_the_acceptance_is():
    carried = NodesCarriedOver(NOON - 9, "e0", {"a": 1})

    _, events = first_events(request(carried=(carried,)), "e1", NOON)

    assert [event.at for event in events] == [NOON, NOON]


def test_an_execution_that_is_bounded_sees_no_environment():
    version = Version("w1", 3, "hash", PLAN, bounded_by="bob")

    accepted, _ = first_events(
        StartRequest(version=version, input={"order": "x"}, env={"A": "b"}, bounded_by=("ann",)), "e1", NOON
    )

    assert (accepted.env, accepted.bounded_by) == ({}, ("ann", "bob"))


@pytest.mark.parametrize(
    "given", [{"order": "x" * (LONGEST_KEY + 1)}, {"order": [0] * 1_000}], ids=["long text", "long list"]
)
def test_a_key_that_does_not_fit_its_index_is_refused_by_its_field(given: object):
    with pytest.raises(InvalidInput) as refused:
        first_events(request(given), "e1", NOON)

    assert [problem.path for problem in refused.value.problems] == [("concurrencyKey",)]


@pytest.mark.parametrize("key", ["{{ 1 / input.zero }}", "{{ sum(range(1, 90000)) }}"], ids=["wrong", "long"])
def test_a_key_that_cannot_be_evaluated_is_refused_by_its_field(key: str):
    plan = workflow("a", concurrencyKey=key)

    with pytest.raises(InvalidInput) as refused:
        first_events(StartRequest(version=Version("w1", 1, "hash", plan), input={"zero": 0}), "e1", NOON)

    assert [problem.path for problem in refused.value.problems] == [("concurrencyKey",)]
