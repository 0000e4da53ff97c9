"""The shared health of one target: closed, open after too many failures, half-open while one probe is out.

Pure functions of (breaker, now): whoever keeps the breaker reads it, asks, and writes back what it is given. The window
starts with the first failure counted in it and does not slide, so that a breaker is a few numbers however busy its
target.
"""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.duration import MINUTE, SECOND
from ropewalk.core.errors import ErrorType
from ropewalk.core.retry import is_retryable


class BreakerState(StrEnum):
    """Whether calls to the target go through."""

    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


class BreakerPolicy(Struct, frozen=True, gc=False):
    """When a breaker opens and closes again (µs)."""

    failures: int = 5
    window: int = MINUTE
    cooldown: int = 30 * SECOND
    successes: int = 2
    # How long a probe may go without a report before another is let through: its worker may be gone.
    probe_lease: int = MINUTE


class Breaker(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known about a target; the default is a target nobody has called."""

    state: BreakerState = BreakerState.CLOSED
    failure_count: int = 0
    success_count: int = 0
    window_start: int | None = None
    last_failure: int | None = None
    opened_at: int | None = None
    next_retry: int | None = None
    probe_until: int | None = None


class Go(Struct, frozen=True, tag=True):
    """Call the target."""


class Probe(Struct, frozen=True, tag=True):
    """Call the target, alone, to learn whether it is back."""


class Wait(Struct, frozen=True, tag=True):
    """Do not call; ask again then, or sooner if the breaker changes."""

    until: int


Admission = Go | Probe | Wait


def admit(breaker: Breaker, policy: BreakerPolicy, now: int) -> tuple[Breaker, Admission]:
    """Whether a call may go out now, and the breaker after letting it."""
    if breaker.state is BreakerState.CLOSED:
        return breaker, Go()
    held_until = breaker.next_retry if breaker.state is BreakerState.OPEN else breaker.probe_until
    if held_until is not None and now < held_until:
        return breaker, Wait(held_until)
    return replace(breaker, state=BreakerState.HALF_OPEN, probe_until=now + policy.probe_lease), Probe()


def record(breaker: Breaker, policy: BreakerPolicy, outcome: ErrorType | None, now: int) -> Breaker:
    """The breaker after a call to its target; None is a success, and a PERMANENT error shows a target alive."""
    if outcome is ErrorType.CIRCUIT_OPEN:
        return breaker  # nothing was called, so nothing was learnt
    if outcome is not None and is_retryable(outcome):
        return _failed(breaker, policy, now)
    return _answered(breaker, policy)


def _failed(breaker: Breaker, policy: BreakerPolicy, now: int) -> Breaker:
    match breaker.state:
        case BreakerState.OPEN:
            # A call that left before the breaker opened; it must not push the next probe away.
            return replace(breaker, last_failure=now)
        case BreakerState.HALF_OPEN:
            return _opened(breaker, policy, now)
        case BreakerState.CLOSED:
            counted = _counted(breaker, policy, now)
            return _opened(counted, policy, now) if counted.failure_count >= policy.failures else counted


def _counted(breaker: Breaker, policy: BreakerPolicy, now: int) -> Breaker:
    """One more failure in the window, or the first of a new one."""
    if breaker.window_start is None or now - breaker.window_start >= policy.window:
        return replace(breaker, failure_count=1, window_start=now, last_failure=now)
    return replace(breaker, failure_count=breaker.failure_count + 1, last_failure=now)


def _opened(breaker: Breaker, policy: BreakerPolicy, now: int) -> Breaker:
    return replace(
        breaker,
        state=BreakerState.OPEN,
        success_count=0,
        last_failure=now,
        opened_at=now,
        next_retry=now + policy.cooldown,
        probe_until=None,
    )


def _answered(breaker: Breaker, policy: BreakerPolicy) -> Breaker:
    if breaker.state is not BreakerState.HALF_OPEN:
        return breaker  # closed: the window forgets by itself; open: a call from before, only a probe may close
    successes = breaker.success_count + 1
    if successes >= policy.successes:
        return Breaker(last_failure=breaker.last_failure)
    return replace(breaker, success_count=successes, probe_until=None)
