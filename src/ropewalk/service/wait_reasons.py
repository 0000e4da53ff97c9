"""What a node that waits, or is between two attempts, waits for."""

from typing import assert_never

from ropewalk.core.breaker import Breaker, BreakerState
from ropewalk.core.duration import format_duration
from ropewalk.core.execution.work import Work
from ropewalk.core.instant import moment
from ropewalk.core.rate_limit import place
from ropewalk.core.waits import (
    Approval,
    BreakerWait,
    BudgetWait,
    ChildWait,
    EventWait,
    RateLimitWait,
    SignalWait,
    Timer,
    TypeWait,
)
from ropewalk.engines.runner import LONGEST_HOLD
from ropewalk.service.facts import Facts
from ropewalk.service.reasons import Cause, Json, Reason, brief, clock, command, nth


def waiting(f: Facts, work: Work) -> Reason:
    """Why an attempt that has done its part is not over."""
    wait = work.wait
    assert wait is not None, "a run that waits, waits for something"
    match wait:
        case Timer():
            return _timer(f, wait)
        case Approval():
            return _approval(f, work, wait)
        case SignalWait():
            return _signal(f, work, wait)
        case EventWait():
            return _event(f, work, wait)
        case ChildWait():
            return _child(f, wait)
        case BreakerWait():
            return _breaker(f, work, wait)
        case RateLimitWait():
            return _rate_limit(f, wait)
        case BudgetWait():
            return _budget(f, wait)
        case TypeWait():
            return _unknown_type(f, wait)
        case _:
            assert_never(wait)


def _timer(f: Facts, wait: Timer) -> Reason:
    is_due = wait.due <= f.now
    why = f"{'was to wait' if is_due else 'waits'} until {clock(wait.due, f.now)}"
    why += "; it goes on as soon as a worker wakes it" if is_due else ""
    return Reason(Cause.TIMER, why, {"until": moment(wait.due)})


def _patience(f: Facts, work: Work) -> str:
    return "" if work.due is None else f", until {clock(work.due, f.now)} at the latest"


def _approval(f: Facts, work: Work, wait: Approval) -> Reason:
    item = () if work.item is None else ("--item", str(work.item))
    return Reason(
        Cause.APPROVAL,
        f"waits for approval: {brief(wait.title)}{_patience(f, work)}",
        {"title": wait.title, "expiresAt": moment(work.due)},
        command("approve", f.id, f.story.plan.ids[work.node], *item),
        "approve or reject it",
    )


def _signal(f: Facts, work: Work, wait: SignalWait) -> Reason:
    return Reason(
        Cause.SIGNAL,
        f"waits for signal {brief(wait.name)!r}{_patience(f, work)}",
        {"name": wait.name, "expiresAt": moment(work.due)},
        command("signal", f.id, wait.name),
    )


def _event(f: Facts, work: Work, wait: EventWait) -> Reason:
    is_pattern = "*" in wait.subject or ">" in wait.subject
    return Reason(
        Cause.EVENT,
        f"waits for an event {brief(wait.subject)!r}{_patience(f, work)}",
        {
            "subject": wait.subject,
            "filter": wait.filter,
            "expiresAt": moment(work.due),
        },
        None if is_pattern else command("publish", wait.subject),
        "publish an event that matches" if is_pattern or wait.filter else None,
    )


def _child(f: Facts, wait: ChildWait) -> Reason:
    known = f.children.get(wait.child, {})
    reason = known.get("reason")
    is_there = f", which is {known['state']}" if known else ""
    because = f": {reason['why']}" if reason else ""
    return Reason(
        Cause.CHILD,
        f"waits for execution {wait.child} of {brief(wait.workflow)}{is_there}{because}",
        {"execution": wait.child, "workflow": wait.workflow, "state": known.get("state"), "reason": reason},
        command("explain", wait.child),
    )


def _breaker(f: Facts, work: Work, wait: BreakerWait) -> Reason:
    breaker = f.breakers.get(wait.target, Breaker(BreakerState.OPEN, next_retry=wait.due))
    gives_up = None if work.held_since is None else work.held_since + LONGEST_HOLD
    until = _held_until(breaker) or wait.due
    details: Json = {
        "target": wait.target,
        "state": str(breaker.state),
        "until": moment(until),
        "calls": breaker.call_count,
        "failures": breaker.failure_count,
        "lastFailureAt": moment(breaker.last_failure),
        "givesUpAt": moment(gives_up),
    }
    action = "see to the target; once it is back, the breaker can be closed by hand"
    suggested = command("breakers", "reset", wait.target)
    return Reason(Cause.BREAKER, _breaker_sentence(f, wait, breaker, until), details, suggested, action)


def _budget(f: Facts, wait: BudgetWait) -> Reason:
    spent = f"its execution has spent {wait.spent:g} of {wait.allowed:g} {wait.what}"
    why = f"{spent}; as much again is allowed when it is resumed"
    details: Json = {"what": wait.what, "spent": wait.spent, "allowed": wait.allowed}
    return Reason(Cause.BUDGET, why, details, command=command("resume", f.story.id))


def _rate_limit(f: Facts, wait: RateLimitWait) -> Reason:
    known = f.rate_limits.get(wait.limit)
    if wait.slot is None or known is None:
        why = f"no slot of the rate limit {brief(wait.limit)!r} could be had; it is asked for again at "
        action = f"if there is no such limit, add it to `rate_limits` of the configuration: {brief(wait.limit)}"
        details: Json = {"limit": wait.limit, "rate": None, "place": None, "until": moment(wait.due)}
        return Reason(Cause.RATE_LIMIT, why + clock(wait.due, f.now), details, action=action)
    rate, slots = known
    at, words = place(slots, rate, f.now, wait.slot), f"{rate.limit} per {format_duration(rate.per)}"
    when = f"its turn is at {clock(wait.slot, f.now)}" if wait.slot > f.now else "its turn is now"
    details = {"limit": wait.limit, "rate": words, "place": at, "until": moment(wait.slot)}
    why = f"waits for the rate limit {brief(wait.limit)!r} ({words}): {nth(at)} in line, {when}"
    return Reason(Cause.RATE_LIMIT, why, details)


def _unknown_type(f: Facts, wait: TypeWait) -> Reason:
    why = f"the worker that had it does not know the node type {brief(wait.type)!r}; "
    why += f"another may take it from {clock(wait.due, f.now)} on"
    action = "start a worker that knows it (--nodes), or install its package"
    return Reason(Cause.NODE_TYPE, why, {"type": wait.type, "until": moment(wait.due)}, action=action)


def _held_until(breaker: Breaker) -> int | None:
    return breaker.probe_until if breaker.state is BreakerState.HALF_OPEN else breaker.next_retry


def _breaker_sentence(f: Facts, wait: BreakerWait, breaker: Breaker, until: int) -> str:
    target, at = brief(wait.target), clock(until, f.now)
    match breaker.state:
        case BreakerState.OPEN:
            is_due = until <= f.now
            open_ = f"is open, and to be tried again since {at}" if is_due else f"is open until {at}"
            return f"the breaker of {target} {open_}{_rate(breaker)}"
        case BreakerState.HALF_OPEN:
            return f"the breaker of {target} lets a few calls through to see whether it is back, until {at}"
        case BreakerState.CLOSED:
            return f"the breaker of {target} has closed; the attempt goes on at {at} at the latest"


def _rate(breaker: Breaker) -> str:
    """Which share of the calls had failed when the breaker opened."""
    calls, failures = breaker.call_count, breaker.failure_count
    if not calls:
        return ""
    return f": {failures} of {calls} calls failed in its window ({100 * failures / calls:.3g} %)"


def retrying(f: Facts, work: Work) -> Reason:
    """Why an attempt that is to follow a failed one has not begun."""
    if not work.tries:
        return _between_rounds(f, work)
    node = f.story.plan.ids[work.node]
    most = f.story.plan.retries[work.node].max_attempts
    run = f.runs.get((node, work.item))
    error = run.error if run is not None else None
    due = work.due if work.due is not None else f.now
    when = f"starts at {clock(due, f.now)}" if due > f.now else f"is due since {clock(due, f.now)}"
    return Reason(
        Cause.RETRY,
        f"attempt {work.tries + 1} of {most} {when}; the last failed: {brief(error.message if error else 'unknown')}",
        {
            "attempt": work.tries + 1,
            "of": most,
            "at": moment(due),
            "errorType": None if error is None else str(error.type),
            "error": None if error is None else error.message,
            "detail": None if error is None else error.detail,
        },
    )


def _between_rounds(f: Facts, work: Work) -> Reason:
    """Why the next round of a node has not begun."""
    due, most = work.due if work.due is not None else f.now, f.story.plan.repeats[work.node].most
    when = f"begins at {clock(due, f.now)}" if due > f.now else f"is due since {clock(due, f.now)}"
    about = {"round": work.round, "of": most, "at": moment(due)}
    return Reason(Cause.ROUND, f"{work.round} rounds are done, of {most} at most; the next {when}", about)
