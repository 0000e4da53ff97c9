"""The shared health of one target: closed, open after too many failures, half-open while a few probes are out.

Pure functions of (breaker, now): the worker that keeps the breaker reads it, asks, and writes back what it is given.
A breaker opens by the *rate* of failures: calls are counted in spans of a tenth of the window (`Calls`), so that the
counts are a few numbers however busy the target, and forget what is older than the window.
"""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.duration import MINUTE, SECOND
from ropewalk.core.errors import ErrorType
from ropewalk.core.retry import is_retryable
from ropewalk.core.target import matches, type_of

SPANS = 10
"""Into so many spans a window is divided."""


class BreakerState(StrEnum):
    """Whether calls to the target go through."""

    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


class BreakerPolicy(Struct, frozen=True, gc=False):
    """When a breaker opens and closes again (µs): of at least so many calls in the window, this share has failed."""

    minimum_calls: int = 10
    failure_share: float = 0.5
    window: int = MINUTE
    cooldown: int = 30 * SECOND
    probes: int = 3
    """How many calls may be out at once while it is half-open."""
    successes: int = 2
    # How long probes may go without a report before others are let through: their worker may be gone.
    probe_lease: int = MINUTE

    @property
    def span(self) -> int:
        """The length of a span (µs)."""
        return max(1, self.window // SPANS)

    def span_of(self, now: int) -> int:
        """When the span began that this moment is in."""
        return now - now % self.span

    def oldest_span(self, now: int) -> int:
        """When the oldest span began that counts; calls of the whole window are in it or in later ones."""
        return self.span_of(now - self.window)


class BreakerRule(Struct, frozen=True):
    """A policy for the targets of one node type, of hosts like one pattern, or of both."""

    policy: BreakerPolicy
    type: str | None = None
    host: str | None = None

    def holds_for(self, target: str) -> bool:
        if self.type is not None and self.type != type_of(target):
            return False
        return self.host is None or matches(self.host, target)


class BreakerPolicies(Struct, frozen=True):
    """Which policy a target has: that of the first rule that holds for it, else the general one."""

    general: BreakerPolicy = BreakerPolicy()
    rules: tuple[BreakerRule, ...] = ()

    def of(self, target: str) -> BreakerPolicy:
        for rule in self.rules:
            if rule.holds_for(target):
                return rule.policy
        return self.general

    @property
    def longest_window(self) -> int:
        """How far back any breaker looks (µs), to the beginning of a span."""
        return max(each.window + each.span for each in (self.general, *(rule.policy for rule in self.rules)))


class Counted(Struct, frozen=True, gc=False):
    """How many calls there were, and how many of them failed."""

    calls: int = 0
    failures: int = 0


class Calls:
    """The calls to one target, counted by span; the only part that changes in place."""

    __slots__ = ("spans",)

    def __init__(self) -> None:
        self.spans: dict[int, Counted] = {}

    def count(self, policy: BreakerPolicy, now: int, *, has_failed: bool) -> None:
        """One more call has ended."""
        span = policy.span_of(now)
        known = self.spans.get(span)
        if known is None:
            oldest = policy.oldest_span(now)
            self.spans = {each: counted for each, counted in self.spans.items() if each >= oldest}
            known = Counted()
        self.spans[span] = Counted(known.calls + 1, known.failures + has_failed)

    def within(self, policy: BreakerPolicy, now: int) -> Counted:
        """What was counted in the window that ends now."""
        oldest = policy.oldest_span(now)
        counted = [each for span, each in self.spans.items() if span >= oldest]
        return Counted(sum(each.calls for each in counted), sum(each.failures for each in counted))


class Breaker(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known about a target; the default is one that was never called.

    The counts are those of the window: of a breaker that is not closed, as they were when it opened.
    """

    state: BreakerState = BreakerState.CLOSED
    failure_count: int = 0
    success_count: int = 0
    window_start: int | None = None
    last_failure: int | None = None
    opened_at: int | None = None
    next_retry: int | None = None
    probe_until: int | None = None
    probes: int = 0
    """How many probes are out."""
    answered: int = 0
    """How many probes were answered since it is half-open."""

    @property
    def call_count(self) -> int:
        return self.failure_count + self.success_count


class Go(Struct, frozen=True, tag=True):
    """Call the target."""


class Probe(Struct, frozen=True, tag=True):
    """Call the target, to learn whether it is back."""


class Wait(Struct, frozen=True, tag=True):
    """Do not call; ask again then, or sooner if the breaker changes."""

    until: int


Admission = Go | Probe | Wait


def admit(breaker: Breaker, policy: BreakerPolicy, now: int) -> tuple[Breaker, Admission]:
    """Whether a call may go out now, and the breaker after letting it."""
    match breaker.state:
        case BreakerState.CLOSED:
            return breaker, Go()
        case BreakerState.OPEN:
            if breaker.next_retry is not None and now < breaker.next_retry:
                return breaker, Wait(breaker.next_retry)
            return _probed(replace(breaker, state=BreakerState.HALF_OPEN, probes=0, answered=0), policy, now)
        case BreakerState.HALF_OPEN:
            if breaker.probe_until is None or now >= breaker.probe_until:
                return _probed(replace(breaker, probes=0), policy, now)
            if breaker.probes < policy.probes:
                return _probed(breaker, policy, now)
            return breaker, Wait(breaker.probe_until)


def _probed(breaker: Breaker, policy: BreakerPolicy, now: int) -> tuple[Breaker, Admission]:
    return replace(breaker, probes=breaker.probes + 1, probe_until=now + policy.probe_lease), Probe()


def places(breaker: Breaker, policy: BreakerPolicy) -> int | None:
    """How many of the attempts it holds may go on: all (None) if it is closed, the probes left if it is half-open."""
    match breaker.state:
        case BreakerState.CLOSED:
            return None
        case BreakerState.OPEN:
            return 0
        case BreakerState.HALF_OPEN:
            return max(0, policy.probes - breaker.probes)


def is_failure(outcome: ErrorType | None) -> bool:
    """Whether the target has failed: None is a success, and a PERMANENT error shows a target alive."""
    return outcome is not None and is_retryable(outcome)


def record(breaker: Breaker, policy: BreakerPolicy, outcome: ErrorType | None, counted: Counted, now: int) -> Breaker:
    """The breaker after a call to its target; `counted` are the calls in the window, this one among them."""
    if outcome is ErrorType.CIRCUIT_OPEN:
        return breaker  # nothing was called, so nothing was learnt
    match breaker.state:
        case BreakerState.CLOSED:
            return _counted(breaker, policy, counted, now, has_failed=is_failure(outcome))
        case BreakerState.OPEN:
            # A call that left before the breaker opened: it neither closes it nor pushes the next probe away.
            return replace(breaker, last_failure=now) if is_failure(outcome) else breaker
        case BreakerState.HALF_OPEN:
            return _opened(breaker, policy, now) if is_failure(outcome) else _answered(breaker, policy)


def _counted(breaker: Breaker, policy: BreakerPolicy, counted: Counted, now: int, *, has_failed: bool) -> Breaker:
    known = replace(
        breaker,
        failure_count=counted.failures,
        success_count=counted.calls - counted.failures,
        window_start=policy.oldest_span(now),
        last_failure=now if has_failed else breaker.last_failure,
    )
    # Only a failure opens: old successes that leave the window say nothing about the target.
    is_too_bad = has_failed and counted.failures >= counted.calls * policy.failure_share
    return _opened(known, policy, now) if is_too_bad and counted.calls >= policy.minimum_calls else known


def _opened(breaker: Breaker, policy: BreakerPolicy, now: int) -> Breaker:
    return replace(
        breaker,
        state=BreakerState.OPEN,
        last_failure=now,
        opened_at=now,
        next_retry=now + policy.cooldown,
        probe_until=None,
        probes=0,
        answered=0,
    )


def _answered(breaker: Breaker, policy: BreakerPolicy) -> Breaker:
    answered = breaker.answered + 1
    if answered >= policy.successes:
        return Breaker(last_failure=breaker.last_failure)
    return replace(breaker, answered=answered, probes=max(0, breaker.probes - 1))
