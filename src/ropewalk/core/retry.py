"""When a failed attempt is worth another one, and how long to wait before it."""

import math

from msgspec import Struct

from ropewalk.core.duration import HOUR, MINUTE, SECOND
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.state import GaveUp

LONGEST_RETRY_AFTER = HOUR
FLOORS = ((5, SECOND), (2, SECOND // 10))
"""From the nth failure on, no policy makes the wait shorter than this (µs)."""
TRANSIENT_STATUSES = frozenset({408, 425, 429})


class RetryPolicy(Struct, frozen=True, gc=False):
    """How often a node is tried, and the backoff between attempts (µs)."""

    max_attempts: int = 3
    delay: int = SECOND
    factor: float = 2.0
    max_delay: int = MINUTE
    jitter: float = 0.5
    on: tuple[str, ...] | None = None
    """The errors that are retried: their types, and statuses like `status:409` or `status:5xx`; None: the default."""


DEFAULT_RETRY = RetryPolicy()


def delay_after(policy: RetryPolicy, failures: int, u: float, retry_after: float | None = None) -> int:
    """Microseconds to wait after the nth failure; a longer Retry-After (seconds) wins, up to an hour.

    Never less than the floor, so that a policy without a delay does not wear out the counterpart it calls.
    """
    backoff = int(max(_backoff(policy, failures), _floor(failures)) * (1 + policy.jitter * u))
    return max(backoff, _wish(retry_after))


def least_delay(policy: RetryPolicy, failures: int, retry_after: float | None = None) -> int:
    """What the policy and the counterpart ask for, without the floor: logs from before there was one keep to this."""
    return max(_backoff(policy, failures), _wish(retry_after))


def _floor(failures: int) -> int:
    """The first retry may follow at once; a node that goes on failing is given time."""
    return next((floor for since, floor in FLOORS if failures >= since), 0)


def _backoff(policy: RetryPolicy, failures: int) -> int:
    """`delay·factorⁿ⁻¹`, never above the policy's longest delay."""
    if policy.delay <= 0 or policy.delay >= policy.max_delay:
        return max(0, min(policy.delay, policy.max_delay))
    # Compared as logarithms first: the power itself overflows a float after some hundred failures.
    growth = (failures - 1) * math.log(policy.factor)
    if growth >= math.log(policy.max_delay / policy.delay):
        return policy.max_delay
    return min(policy.max_delay, int(policy.delay * policy.factor ** (failures - 1)))


def _wish(retry_after: float | None) -> int:
    # Written so that NaN, which compares false with everything, is no wish at all.
    if retry_after is None or not retry_after > 0:
        return 0
    return int(min(retry_after * SECOND, LONGEST_RETRY_AFTER))


def is_retryable(error_type: ErrorType) -> bool:
    """Whether trying the same thing again can help."""
    return error_type in (ErrorType.TRANSIENT, ErrorType.TIMEOUT)


def gave_up_for(error_type: ErrorType) -> GaveUp:
    """What an error that is not tried again makes of its run."""
    match error_type:
        case ErrorType.PERMANENT:
            return GaveUp.PERMANENT_ERROR
        case ErrorType.CIRCUIT_OPEN:
            return GaveUp.CIRCUIT_BREAKER
        case ErrorType.TRANSIENT | ErrorType.TIMEOUT:
            return GaveUp.MAX_RETRIES


def is_named(on: tuple[str, ...], error: RunError) -> bool:
    """Whether a policy names this error, by its type or by the status that a server answered."""
    return any(word == error.type or _is_status(word, error.status) for word in on)


def _is_status(word: str, status: int | None) -> bool:
    name = word.removeprefix("status:")
    return status is not None and name != word and (name == str(status) or name == f"{status // 100}xx")


def classify_status(http_status: int) -> ErrorType | None:
    """What an HTTP status says about trying again; None for an answer that is no failure."""
    if http_status < 400:
        return None
    if http_status >= 500 or http_status in TRANSIENT_STATUSES:
        return ErrorType.TRANSIENT
    return ErrorType.PERMANENT
