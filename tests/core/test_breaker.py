"""The breaker: at which rate of failures it opens, how it probes, when it closes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ropewalk.core.breaker import (
    Breaker,
    BreakerPolicies,
    BreakerPolicy,
    BreakerRule,
    BreakerState,
    Calls,
    Counted,
    Go,
    Probe,
    Wait,
    admit,
    places,
    record,
)
from ropewalk.core.duration import MINUTE, SECOND
from ropewalk.core.errors import ErrorType

POLICY = BreakerPolicy()
NOON = 1_700_000_000 * SECOND
BAD, GOOD = ErrorType.TRANSIENT, None


def after(*outcomes, start=NOON, step=SECOND, breaker=Breaker(), policy=POLICY):  # noqa: B008 frozen, so sharing is safe
    calls = Calls()
    for n, outcome in enumerate(outcomes):
        now = start + n * step
        calls.count(policy, now, has_failed=outcome in (ErrorType.TRANSIENT, ErrorType.TIMEOUT))
        breaker = record(breaker, policy, outcome, calls.within(policy, now), now)
    return breaker


def told(breaker, outcome, now):
    """The breaker after a call that is counted nowhere."""
    return record(breaker, POLICY, outcome, Counted(), now)


def open_since(now):
    return after(*[BAD] * 10, start=now, step=0)


def probing_since(now):
    breaker, admission = admit(open_since(now - POLICY.cooldown), POLICY, now)
    assert admission == Probe()
    return breaker


def test_a_closed_breaker_lets_everything_through():
    assert admit(Breaker(), POLICY, NOON) == (Breaker(), Go())


@pytest.mark.parametrize("kind", [ErrorType.TRANSIENT, ErrorType.TIMEOUT])
def test_it_opens_with_the_tenth_call_if_all_have_failed(kind):
    assert after(*[kind] * 9).state is BreakerState.CLOSED
    assert after(*[kind] * 10).state is BreakerState.OPEN


@pytest.mark.parametrize("step", [0, SECOND, 6 * SECOND])
def test_it_opens_when_half_of_the_calls_in_the_window_have_failed(step):
    assert after(*[GOOD] * 5, *[BAD] * 4, step=step).state is BreakerState.CLOSED
    assert after(*[GOOD] * 5, *[BAD] * 5, step=step).state is BreakerState.OPEN


def test_a_few_failures_among_many_successes_never_open_it():
    outcomes = [BAD if n % 100 == 0 else GOOD for n in range(2_000)]

    assert after(*outcomes, step=10_000).state is BreakerState.CLOSED


def test_ten_failures_in_a_row_after_a_thousand_successes_do_not_open_it():
    assert after(*[GOOD] * 1_000, *[BAD] * 10, step=10_000).state is BreakerState.CLOSED


def test_it_tells_the_rate_at_which_it_opened():
    breaker = after(*[GOOD] * 4, *[BAD] * 6)

    assert (breaker.failure_count, breaker.call_count) == (6, 10)
    assert told(breaker, BAD, NOON + MINUTE).call_count == 10


@pytest.mark.parametrize("outcome", [GOOD, ErrorType.PERMANENT, ErrorType.CIRCUIT_OPEN])
def test_an_outcome_that_is_not_the_targets_failure_never_opens_it(outcome):
    breaker = after(*[outcome] * 50)

    assert (breaker.state, breaker.failure_count) == (BreakerState.CLOSED, 0)


def test_failures_spread_wider_than_the_window_do_not_open_it():
    assert after(*[BAD] * 20, step=16 * SECOND).state is BreakerState.CLOSED


@given(st.lists(st.tuples(st.integers(0, 20 * SECOND), st.booleans()), min_size=1, max_size=80))
def test_the_counts_are_those_of_the_window_and_of_a_tenth_of_it_before_at_most(steps):
    calls, now, ended = Calls(), NOON, []
    for step, has_failed in steps:
        now += step
        ended.append((now, has_failed))
        calls.count(POLICY, now, has_failed=has_failed)

    counted = calls.within(POLICY, now)

    def since(moment):
        return [has_failed for at, has_failed in ended if at >= moment]

    inner, outer = since(now - POLICY.window), since(now - POLICY.window - POLICY.span)
    assert len(inner) <= counted.calls <= len(outer)
    assert sum(inner) <= counted.failures <= sum(outer)
    assert len(calls.spans) <= 12


def test_an_open_breaker_says_when_to_ask_again():
    breaker = open_since(NOON)

    assert admit(breaker, POLICY, NOON + 29 * SECOND) == (breaker, Wait(NOON + 30 * SECOND))


def test_after_the_cooldown_a_few_probes_go_out_and_no_more():
    breaker, admissions = open_since(NOON), []
    for n in range(4):
        breaker, admission = admit(breaker, POLICY, NOON + (30 + n) * SECOND)
        admissions.append(admission)

    assert admissions == [Probe(), Probe(), Probe(), Wait(NOON + 92 * SECOND)]
    assert breaker.state is BreakerState.HALF_OPEN


def test_probes_that_never_report_are_replaced():
    breaker = replace(probing_since(NOON), probes=3)
    breaker, admission = admit(breaker, POLICY, NOON + MINUTE)

    assert admission == Probe()
    assert (breaker.probes, breaker.probe_until) == (1, NOON + 2 * MINUTE)


@pytest.mark.parametrize("alive", [GOOD, ErrorType.PERMANENT])
def test_it_closes_after_two_probes_that_were_answered_and_forgets_what_it_counted(alive):
    once = told(probing_since(NOON), alive, NOON + SECOND)
    again, admission = admit(once, POLICY, NOON + SECOND)

    twice = told(again, alive, NOON + 2 * SECOND)

    assert (once.state, admission) == (BreakerState.HALF_OPEN, Probe())
    assert (twice.state, twice.call_count, twice.opened_at) == (BreakerState.CLOSED, 0, None)


def test_a_failed_probe_opens_it_for_another_cooldown():
    once = told(probing_since(NOON), GOOD, NOON + SECOND)

    reopened = told(once, ErrorType.TIMEOUT, NOON + 5 * SECOND)

    assert (reopened.state, reopened.answered, reopened.call_count) == (BreakerState.OPEN, 0, 10)
    assert admit(reopened, POLICY, NOON + 34 * SECOND)[1] == Wait(NOON + 35 * SECOND)


def test_it_frees_as_many_of_those_it_holds_as_may_call():
    probing = probing_since(NOON)

    assert [places(each, POLICY) for each in (open_since(NOON), probing, Breaker())] == [0, 2, None]
    assert places(told(probing, GOOD, NOON), POLICY) == 3


def test_a_failure_from_before_the_opening_does_not_delay_the_probe():
    late = told(open_since(NOON), BAD, NOON + 20 * SECOND)

    assert (late.next_retry, late.last_failure) == (NOON + 30 * SECOND, NOON + 20 * SECOND)


def test_a_success_from_before_the_opening_does_not_close_it():
    assert told(open_since(NOON), GOOD, NOON + SECOND) == open_since(NOON)


def test_a_breaker_survives_being_stored():
    breaker = probing_since(NOON)

    assert msgspec.json.decode(msgspec.json.encode(breaker), type=Breaker) == breaker


def test_the_first_rule_that_holds_for_a_target_decides():
    mail, shop, rest = (BreakerPolicy(minimum_calls=n) for n in (1, 2, 3))
    policies = BreakerPolicies(
        rest,
        (
            BreakerRule(mail, type="email.send"),
            BreakerRule(shop, type="http.request", host="*.shop.example"),
            BreakerRule(mail, host="mail.example"),
        ),
    )

    assert policies.of("email.send mail.example:587") is mail
    assert policies.of("http.request https://api.shop.example") is shop
    assert policies.of("http.request https://mail.example") is mail
    assert policies.of("call api.shop.example") is rest
    assert policies.of("email") is rest
