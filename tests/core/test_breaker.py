"""The breaker: when it opens, how it probes, when it closes."""

import msgspec
import pytest

from ropewalk.core.breaker import Breaker, BreakerPolicy, BreakerState, Go, Probe, Wait, admit, record
from ropewalk.core.duration import MINUTE, SECOND
from ropewalk.core.errors import ErrorType

POLICY = BreakerPolicy()
NOON = 1_700_000_000 * SECOND


def after(*outcomes, start=NOON, step=SECOND, breaker=Breaker()):  # noqa: B008 frozen, so sharing it is safe
    for n, outcome in enumerate(outcomes):
        breaker = record(breaker, POLICY, outcome, start + n * step)
    return breaker


def open_since(now):
    return after(*[ErrorType.TRANSIENT] * 5, start=now, step=0)


def probing_since(now):
    breaker, admission = admit(open_since(now - POLICY.cooldown), POLICY, now)
    assert admission == Probe()
    return breaker


def test_a_closed_breaker_lets_everything_through():
    assert admit(Breaker(), POLICY, NOON) == (Breaker(), Go())


@pytest.mark.parametrize("kind", [ErrorType.TRANSIENT, ErrorType.TIMEOUT])
def test_it_opens_with_the_fifth_failure(kind):
    assert after(*[kind] * 4).state is BreakerState.CLOSED
    assert after(*[kind] * 5).state is BreakerState.OPEN


@pytest.mark.parametrize("outcome", [None, ErrorType.PERMANENT, ErrorType.CIRCUIT_OPEN])
def test_an_outcome_that_is_not_the_targets_failure_never_opens_it(outcome):
    assert after(*[outcome] * 50) == Breaker()


def test_failures_spread_wider_than_the_window_do_not_open_it():
    breaker = after(*[ErrorType.TRANSIENT] * 20, step=16 * SECOND)

    assert breaker.state is BreakerState.CLOSED


def test_successes_between_failures_do_not_hide_them():
    assert after(*[ErrorType.TRANSIENT, None] * 5).state is BreakerState.OPEN


def test_an_open_breaker_says_when_to_ask_again():
    breaker = open_since(NOON)

    assert admit(breaker, POLICY, NOON + 29 * SECOND) == (breaker, Wait(NOON + 30 * SECOND))


def test_after_the_cooldown_exactly_one_probe_goes_out():
    breaker = open_since(NOON)

    breaker, first = admit(breaker, POLICY, NOON + 30 * SECOND)
    breaker, second = admit(breaker, POLICY, NOON + 31 * SECOND)

    assert (first, second) == (Probe(), Wait(NOON + 90 * SECOND))
    assert breaker.state is BreakerState.HALF_OPEN


def test_a_probe_that_never_reports_is_replaced():
    breaker, admission = admit(probing_since(NOON), POLICY, NOON + MINUTE)

    assert admission == Probe()
    assert breaker.probe_until == NOON + 2 * MINUTE


@pytest.mark.parametrize("alive", [None, ErrorType.PERMANENT])
def test_it_closes_after_two_probes_that_were_answered(alive):
    once = record(probing_since(NOON), POLICY, alive, NOON + SECOND)
    again, admission = admit(once, POLICY, NOON + SECOND)

    twice = record(again, POLICY, alive, NOON + 2 * SECOND)

    assert (once.state, admission) == (BreakerState.HALF_OPEN, Probe())
    assert (twice.state, twice.failure_count, twice.opened_at) == (BreakerState.CLOSED, 0, None)


def test_a_failed_probe_opens_it_for_another_cooldown():
    once = record(probing_since(NOON), POLICY, None, NOON + SECOND)

    reopened = record(once, POLICY, ErrorType.TIMEOUT, NOON + 5 * SECOND)

    assert (reopened.state, reopened.success_count) == (BreakerState.OPEN, 0)
    assert admit(reopened, POLICY, NOON + 34 * SECOND)[1] == Wait(NOON + 35 * SECOND)


def test_a_failure_from_before_the_opening_does_not_delay_the_probe():
    late = record(open_since(NOON), POLICY, ErrorType.TRANSIENT, NOON + 20 * SECOND)

    assert (late.next_retry, late.last_failure) == (NOON + 30 * SECOND, NOON + 20 * SECOND)


def test_a_success_from_before_the_opening_does_not_close_it():
    assert record(open_since(NOON), POLICY, None, NOON + SECOND) == open_since(NOON)


def test_a_breaker_survives_being_stored():
    breaker = probing_since(NOON)

    assert msgspec.json.decode(msgspec.json.encode(breaker), type=Breaker) == breaker
