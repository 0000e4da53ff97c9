"""Backoff and classification."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.core.duration import HOUR, MINUTE, SECOND
from ropewalk.core.errors import ErrorType
from ropewalk.core.retry import RetryPolicy, classify_status, delay_after, is_retryable, least_delay

STEADY = RetryPolicy(jitter=0.0)


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (10**9, 60)])
def test_the_delay_doubles_until_the_longest_one(failures, seconds):
    assert delay_after(STEADY, failures, u=0.0) == seconds * SECOND


def test_jitter_adds_its_share_after_the_cap():
    policy = RetryPolicy(delay=2 * MINUTE, max_delay=MINUTE, jitter=0.5)

    assert delay_after(policy, 1, u=0.5) == 75 * SECOND


@pytest.mark.parametrize(
    ("failures", "least"), [(1, 0), (2, SECOND // 10), (4, SECOND // 10), (5, SECOND), (50, SECOND), (10**9, SECOND)]
)
@pytest.mark.parametrize("policy", [RetryPolicy(delay=0, jitter=0.0), RetryPolicy(delay=0, max_delay=0, jitter=0.0)])
def test_a_policy_without_a_delay_spares_the_counterpart_from_the_second_failure_on(policy, failures, least):
    assert delay_after(policy, failures, u=0.9) == least


def test_the_least_delay_is_spread_by_the_jitter_too():
    assert delay_after(RetryPolicy(delay=0, jitter=0.5), 9, u=0.5) == 1.25 * SECOND


def test_a_log_from_before_the_floor_is_judged_by_its_policy_alone():
    assert least_delay(RetryPolicy(delay=0), 50) == 0
    assert least_delay(STEADY, 3) == 4 * SECOND
    assert least_delay(STEADY, 1, retry_after=7.0) == 7 * SECOND


def test_a_factor_of_one_never_grows():
    assert delay_after(RetryPolicy(factor=1.0, jitter=0.0), 10**6, u=0.0) == SECOND


@pytest.mark.parametrize(
    ("retry_after", "expected"),
    [
        (None, SECOND),
        (0.2, SECOND),
        (7.0, 7 * SECOND),
        (10.0**9, HOUR),
        (math.inf, HOUR),
        (math.nan, SECOND),
        (-3.0, SECOND),
    ],
)
def test_retry_after_wins_only_when_longer_and_at_most_an_hour(retry_after, expected):
    assert delay_after(STEADY, 1, u=0.0, retry_after=retry_after) == expected


@given(
    failures=st.integers(1, 10**12),
    delay=st.integers(0, 10**13),
    factor=st.floats(1, 100),
    jitter=st.floats(0, 1),
    u=st.floats(0, 1, exclude_max=True),
)
def test_the_delay_is_bounded_under_any_policy(failures, delay, factor, jitter, u):
    policy = RetryPolicy(delay=delay, factor=factor, jitter=jitter)

    assert least_delay(policy, failures) <= delay_after(policy, failures, u) <= 2 * policy.max_delay


@given(failures=st.integers(1, 200), factor=st.floats(1, 100))
def test_a_later_failure_never_waits_less(failures, factor):
    policy = RetryPolicy(factor=factor, jitter=0.0)

    assert delay_after(policy, failures, 0.0) <= delay_after(policy, failures + 1, 0.0)


@pytest.mark.parametrize(
    ("error_type", "expected"),
    [
        (ErrorType.TRANSIENT, True),
        (ErrorType.TIMEOUT, True),
        (ErrorType.PERMANENT, False),
        (ErrorType.CIRCUIT_OPEN, False),
    ],
)
def test_only_what_may_pass_is_retried(error_type, expected):
    assert is_retryable(error_type) is expected


@pytest.mark.parametrize("status", [200, 204, 301, 304, 399])
def test_an_answer_below_400_is_no_failure(status):
    assert classify_status(status) is None


@pytest.mark.parametrize("status", [408, 425, 429, 500, 501, 503, 599])
def test_a_busy_or_broken_server_is_transient(status):
    assert classify_status(status) is ErrorType.TRANSIENT


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 451])
def test_a_refused_request_is_permanent(status):
    assert classify_status(status) is ErrorType.PERMANENT
