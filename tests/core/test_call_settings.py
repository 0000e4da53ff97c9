"""What people say about breakers and rate limits is taken as they mean it, or refused with the field."""

from typing import Any

import pytest

from ropewalk.core.breaker import BreakerPolicy
from ropewalk.core.call_settings import MOST_HOSTS, MOST_LIMITS, breaker_policies, rate_limits, written
from ropewalk.core.duration import MINUTE, SECOND
from ropewalk.core.errors import InvalidInput
from ropewalk.core.rate_limit import RateLimit

GENERAL = {"minimum_calls": 10, "failure_rate": 50.0, "window": 60.0, "cooldown": 30.0, "probes": 3, "successes": 2}
SPANS = {
    "minimum_calls": (1, 1_000_000), "failure_rate": (1, 100), "window": (1, 3_600), "cooldown": (1, 3_600),
    "probes": (1, 100), "successes": (1, 100),
}  # fmt: skip


def fields(refused: InvalidInput) -> list[str]:
    return [problem.where for problem in refused.problems]


def test_a_rule_differs_from_the_rest_by_what_it_says():
    made = breaker_policies(GENERAL, [{"host": "*.shop.example", "minimumCalls": 40}, {"type": "email.send"}], SPANS)

    assert made.general == BreakerPolicy()
    assert [(each.type, each.host, each.policy.minimum_calls) for each in made.rules] == [
        (None, "*.shop.example", 40),
        ("email.send", None, 10),
    ]


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"failure_rate": 20}, "breaker.rules[0]"),
        ({"type": ""}, "breaker.rules[0].type"),
        ({"host": "a b"}, "breaker.rules[0].host"),
        ({"type": "noop", "failures": 5}, "breaker.rules[0].failures"),
        ({"type": "noop", "failure_rate": 101}, "breaker.rules[0].failure_rate"),
        ({"type": "noop", "probes": True}, "breaker.rules[0].probes"),
        ({"type": "noop", "minimumCalls": 1_000_000}, "breaker.rules[0].minimum_calls"),
    ],
)
def test_a_rule_that_means_nothing_is_refused_with_its_field(rule: dict[str, Any], field: str):
    with pytest.raises(InvalidInput) as refused:
        breaker_policies(GENERAL, [rule], SPANS)

    assert fields(refused.value) == [field]


def test_a_breaker_that_can_never_open_is_refused():
    with pytest.raises(InvalidInput, match="never open"):
        breaker_policies({**GENERAL, "minimum_calls": 100_000}, [], SPANS)


def test_limits_are_read_and_written_as_people_write_them():
    given = {"shop": {"limit": 10, "per": "1s", "hosts": ["*.shop.example"]}, "mail": {"limit": 100, "per": "1m"}}

    found = rate_limits(given)

    assert found == {"shop": RateLimit(10, SECOND, ("*.shop.example",)), "mail": RateLimit(100, MINUTE)}
    assert written(found) == given


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ([], "rateLimits"),
        ({f"l{number}": {} for number in range(MOST_LIMITS + 1)}, "rateLimits"),
        ({"a b": {"limit": 1, "per": "1s"}}, "rateLimits.a b"),
        ({"shop": 10}, "rateLimits.shop"),
        ({"shop": {"limit": 0, "per": "1s"}}, "rateLimits.shop.limit"),
        ({"shop": {"limit": 10**9, "per": "1s"}}, "rateLimits.shop.limit"),
        ({"shop": {"limit": 1_000_000, "per": "1s"}}, "rateLimits.shop.limit"),
        ({"shop": {"limit": 1}}, "rateLimits.shop.per"),
        ({"shop": {"limit": 1, "per": "soon"}}, "rateLimits.shop.per"),
        ({"shop": {"limit": 1, "per": "1s", "hosts": "shop"}}, "rateLimits.shop.hosts"),
        ({"shop": {"limit": 1, "per": "1s", "hosts": ["h"] * (MOST_HOSTS + 1)}}, "rateLimits.shop.hosts"),
        ({"shop": {"limit": 1, "per": "1s", "burst": 3}}, "rateLimits.shop.burst"),
    ],
)
def test_a_limit_that_cannot_be_kept_is_refused_with_its_field(given: Any, field: str):
    with pytest.raises(InvalidInput) as refused:
        rate_limits(given)

    assert fields(refused.value)[0].startswith(field)
