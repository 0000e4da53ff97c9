"""What a caller without the right `read-payloads` sees: the one place that decides it.

A payload is every value and every text that is known only at run time: inputs, outputs, what an expression gave, what a
node, a function or a counterpart said, and what a person wrote. Definitions are not: a caller with the right to read
may read those too.

Each table below lists what is free of payload: ids, names of workflows and nodes, types, states, kinds of errors,
counts and times. What no table lists is withheld, a field that is added later too. A withheld value is null in an
answer and absent from an event; where a text is expected, WITHHELD stands in its place.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.errors import Invalid, Problem, RopewalkError, Unreadable
from ropewalk.service.reasons import Cause

Json = dict[str, Any]

WITHHELD: Final = "withheld: reading it needs the right read-payloads"
"""Stands where a text was."""


class Rule(Enum):
    """What becomes of one field."""

    FREE = auto()
    """Shown as it is."""
    SAID = auto()
    """A text that may hold a payload: WITHHELD instead, so that a reader knows there was one."""


Shape = Mapping[str, "Rule | Shape"]
"""The fields of an object that are shown, and how."""


def _free(*names: str) -> dict[str, Rule | Shape]:
    return dict.fromkeys(names, Rule.FREE)


def _said(*names: str) -> dict[str, Rule | Shape]:
    return dict.fromkeys(names, Rule.SAID)


# Answers

EXECUTION: Final[Shape] = _said("error") | _free(
    "id", "workflow", "workflowId", "version", "state", "trigger", "parentExecutionId", "acceptedAt", "startedAt",
    "finishedAt", "traceId", "workspaceId", "priority", "waitingFor", "outcome", "sourceExecutionId", "sameOutput",
    "metrics",
)  # fmt: skip
NODE: Final[Shape] = _free("id", "type", "state", "attempts", "rounds", "startedAt", "finishedAt") | {
    "error": _free("type") | _said("message")
}
RUN: Final[Shape] = _said("error") | _free(
    "id", "executionId", "node", "item", "attempt", "state", "startedAt", "finishedAt", "durationMs", "retryAfter",
    "errorType", "traceId", "configHash", "waitingFor", "worker", "pool", "leasedBy", "leaseUntil", "fence",
    "heartbeatAt", "tokenCost", "round",
)  # fmt: skip
DEAD_LETTER: Final[Shape] = _said("reason", "notes") | _free(
    "id", "executionId", "workflowId", "runId", "node", "item", "attempt", "failureType", "errorType", "fingerprint",
    "config", "createdAt", "resolution", "resolvedAt", "reviewedBy",
)  # fmt: skip
GROUP: Final[Shape] = _said("reason") | _free(
    "fingerprint", "count", "workflow", "workflowId", "node", "failureType", "firstAt", "lastAt"
)
APPROVAL: Final[Shape] = _said("title") | _free(
    "executionId", "workflow", "workflowId", "node", "item", "since", "expiresAt", "mayAnswer", "answerers"
)
EXECUTION_PROGRESS: Final[Shape] = _said("reason") | _free("id", "outcome")
DEAD_LETTER_PROGRESS: Final[Shape] = _said("reason") | _free("id", "executionId", "outcome")
QUEUE_ITEM: Final[Shape] = _said("error") | _free(
    "id", "executionId", "executionState", "state", "position", "waiting", "priority", "enqueuedAt", "notBefore",
    "attempts", "claimedBy", "claimedAt",
)  # fmt: skip
BREAKER: Final[Shape] = _said("target") | _free(
    "state", "callCount", "failureCount", "successCount", "windowStart", "lastFailure", "openedAt", "nextRetry"
)
TRIGGER: Final[Shape] = _free(
    "id", "name", "kind", "workflowId", "workflow", "version", "settings", "enabled", "declared", "words", "nextAt",
    "lastExecution", "createdAt", "createdBy",
)  # fmt: skip
FIRE: Final[Shape] = _said("detail") | _free("at", "dueAt", "executionId", "reason")
ACTIVITY: Final[Shape] = _said("object", "detail") | _free("id", "at", "actor", "verb", "before", "after")
ACTIVITY_BY_ID: Final[Shape] = {**ACTIVITY, **_free("object")}

_ABOUT_NAMES: Final = frozenset({"publish", "reset"})
"""The verbs whose object is no id, but the subject of an event or the target of a breaker."""


def shown(answer: Json, shape: Shape, *, may_read: bool) -> Json:
    """The answer as its reader may see it."""
    return answer if may_read else _filled(answer, shape)


def marked(answer: Json, shape: Shape, *, may_read: bool) -> Json:
    """The same, and `payloads` says whether anything may be missing."""
    return {**shown(answer, shape, may_read=may_read), "payloads": may_read}


def shown_activity(entry: Json, *, may_read: bool) -> Json:
    """The same for an entry of the audit log, whose object is mostly an id."""
    return shown(entry, ACTIVITY if entry["verb"] in _ABOUT_NAMES else ACTIVITY_BY_ID, may_read=may_read)


def said(error: RopewalkError, *, may_read: bool) -> str:
    """What an error tells. What a damaged log holds is quoted by the error that tells of it."""
    if may_read or not isinstance(error, Unreadable):
        return str(error)
    return f"what is stored of it cannot be read ({WITHHELD}); {error.remedy}"


def said_problems(error: Invalid, *, may_read: bool) -> Invalid:
    """What is wrong with a request, where what is wrong may quote what was stored and not what the caller sent."""
    return error if may_read else type(error)([Problem(each.path, WITHHELD) for each in error.problems])


def _filled(value: Json, shape: Shape) -> Json:
    """What is shown of an object, with null for what is not."""
    return {
        **dict.fromkeys(value),
        **{name: _visible(value[name], shape[name], _filled) for name in value if name in shape},
    }


def _kept(value: Json, shape: Shape) -> Json:
    """What is shown of an object, without what is not."""
    return {name: _visible(value[name], shape[name], _kept) for name in value if name in shape}


def _visible(value: Any, rule: Rule | Shape, inner: Callable[[Json, Shape], Json]) -> Any:
    if value is None or rule is Rule.FREE:
        return value
    return WITHHELD if rule is Rule.SAID else inner(value, rule)


# Events

_ERROR: Final[Shape] = _free("type", "retry_after", "tokens") | _said("message")
_WAIT: Final[Shape] = _free("for", "due", "child", "type") | _said("title", "subject", "name", "workflow", "target")
_ATTEMPT: Final[Shape] = _free("node", "item", "attempt")
_FAILED: Final[Shape] = {**_ATTEMPT, **_free("handled", "gaveUp", "child", "retryAt", "lost"), "error": _ERROR}

EVENTS: Final[Mapping[str, Shape]] = {
    "ExecutionAccepted": _free(
        "execution", "workspace", "workflow", "version", "hash", "trigger", "parent", "priority", "trace"
    ),
    "NodesCarriedOver": _free("source", "skipped"),
    "ExecutionStarted": _free("deadline"),
    "SlotReleased": {},
    "SlotTaken": {},
    "ExecutionPaused": _free("by") | _said("reason"),
    "ExecutionResumed": _free("by", "deadline"),
    "StopRequested": _free("node"),
    "CancelRequested": _free("by", "graceUntil") | _said("reason"),
    "DeadlinePassed": _free("graceUntil"),
    "OutcomeDecided": _free("outcome", "nodes", "until") | _said("error"),
    "ExecutionSucceeded": {},
    "ExecutionFailed": _said("error"),
    "ExecutionCancelled": {},
    "ExecutionTimedOut": {},
    "ExecutionReopened": _free("by", "verb"),
    "NodesStarted": _free("nodes"),
    "NodesSkipped": _free("nodes"),
    "NodeSucceeded": _free("node", "attempt", "tokens"),
    "NodeFailed": _FAILED,
    "NodesReset": _free("nodes"),
    "NodeRequeued": _free("node", "by", "item"),
    "NodeFixed": _free("node", "by", "item"),
    "MapExpanded": _free("node", "attempt", "count"),
    "ItemsStarted": _free("node", "items"),
    "ItemSucceeded": _free("node", "item", "attempt", "tokens"),
    "ItemFailed": _FAILED,
    "ItemsGivenUp": _free("node", "items"),
    "RunStarted": _ATTEMPT,
    "RunFailed": _FAILED,
    "RoundEnded": _free("node", "attempt", "tokens", "nextAt"),
    "RunWaiting": {**_ATTEMPT, **_free("due"), "wait": _WAIT},
    "RunReturned": _ATTEMPT,
    "RunReleased": _ATTEMPT,
    "ChildResumed": _ATTEMPT,
    "SignalReceived": _said("name"),
}
"""By the type of the event. Ports are not among them: those of a `switch` may be what an expression gave."""


def shown_event(envelope: Json, *, may_read: bool) -> Json:
    """An event as its reader may see it; `payloads` says whether anything may be missing."""
    if may_read:
        return {**envelope, "payloads": True}
    shape = EVENTS.get(envelope["type"], {})
    return {**envelope, "data": _kept(envelope["data"], shape), "payloads": False}


# Explanations


class _Told(Struct, frozen=True):
    """A reason without payload: its sentence, filled in with what it waits for, and which of that is free.

    Without a sentence the reason is shown as it is. `has_command` says whether its command is free too.
    """

    sentence: str | None = None
    waits_for: Shape = {}
    has_command: bool = True


_AS_IT_IS: Final = _Told()
_UNKNOWN: Final = _Told(WITHHELD, has_command=False)
_REASONS: Final[Mapping[Cause, _Told]] = dict.fromkeys(
    (
        Cause.CAPACITY,
        Cause.CLAIMED,
        Cause.WORKERS_FULL,
        Cause.TURN,
        Cause.NO_WORKER,
        Cause.OWNER_LOST,
        Cause.UNREAD_SIGNALS,
        Cause.CLOSING,
        Cause.TIMER,
        Cause.NODE_TYPE,
        Cause.PREDECESSORS,
        Cause.MAX_PARALLEL,
        Cause.MAP_CONCURRENCY,
        Cause.NO_WORKER_IN_POOL,
        Cause.WORKER_FULL,
        Cause.ATTEMPT_LOST,
        Cause.RUNNING,
        Cause.ITEMS,
        Cause.SUCCESS,
        Cause.SKIPPED,
        Cause.CANCELLED,
        Cause.BLOCKED,
    ),
    _AS_IT_IS,
) | {
    Cause.CONCURRENCY_KEY: _Told("its concurrency key is held by another execution", _free("execution", "worker")),
    Cause.NOT_BEFORE: _Told(
        "it is not dispatched before {notBefore}", _free("notBefore", "attempts") | _said("error")
    ),
    Cause.DISPATCH_FAILED: _Told(
        "it could not be dispatched; attempts made: {attempts}", _free("attempts") | _said("error")
    ),
    Cause.UNREADABLE: _Told("what is stored of it cannot be read", _free("workflow", "version") | _said("error")),
    Cause.SET_ASIDE: _Told(
        "it was set aside at {since}: its worker died {deaths} times while it was under way", _free("deaths", "since")
    ),
    Cause.PAUSED: _Told("it was paused by {by} at {since}", _free("by", "since", "running") | _said("reason")),
    Cause.ENDING: _Told("it is about to end {state}", _free("state", "running", "graceUntil")),
    Cause.ENDED: _Told(
        "it ended {state} at {at}", _free("state", "at", "deadLetters", "deadLetterCount") | _said("error")
    ),
    Cause.APPROVAL: _Told("waits for approval", _free("expiresAt") | _said("title")),
    Cause.SIGNAL: _Told("waits for a signal", _free("expiresAt") | _said("name"), has_command=False),
    Cause.EVENT: _Told("waits for an event", _free("expiresAt") | _said("subject"), has_command=False),
    Cause.CHILD: _Told("waits for execution {execution}", _free("execution", "state", "reason") | _said("workflow")),
    Cause.BREAKER: _Told(
        "the breaker of its target is {state}, until {until}",
        _free("state", "until", "calls", "failures", "lastFailureAt", "givesUpAt") | _said("target"),
        has_command=False,
    ),
    Cause.RATE_LIMIT: _AS_IT_IS,
    Cause.BUDGET: _AS_IT_IS,
    Cause.ROUND: _AS_IT_IS,
    Cause.RETRY: _Told(
        "attempt {attempt} of {of} is due at {at}; the last failed {errorType}",
        _free("attempt", "of", "at", "errorType") | _said("error"),
    ),
    Cause.EXECUTION: _Told("ready; its execution is held up: {code}", _free("code")),
    Cause.FAILED: _Told(
        "failed {errorType}", _free("errorType", "attempts", "deadLetters", "deadLetterCount") | _said("error")
    ),
}  # fmt: skip
"""What a reason is made of, by its code; of one that is not here only the code is shown."""


def shown_explanation(answer: Json, *, may_read: bool) -> Json:
    """An explanation as its reader may see it."""
    if may_read:
        return answer
    reasons = [shown_reason(each, may_read=False) for each in answer["reasons"]]
    return {**answer, "reasons": reasons, "nodes": [_shown_node(each) for each in answer["nodes"]]}


def _shown_node(node: Json) -> Json:
    return {
        **shown_reason(node, may_read=False),
        "items": [shown_reason(each, may_read=False) for each in node["items"]],
    }


def shown_reason(reason: Json, *, may_read: bool) -> Json:
    """One reason of an explanation; that of a child is a part of its parent's."""
    told = _REASONS.get(reason["code"], _UNKNOWN)
    if may_read or told is _AS_IT_IS:
        return reason
    waits_for = _filled(reason["waitsFor"], told.waits_for)
    if isinstance(waits_for.get("reason"), dict):
        waits_for["reason"] = shown_reason(waits_for["reason"], may_read=False)
    why = (told.sentence or "").format_map({**dict.fromkeys(told.waits_for), **waits_for})
    return {**reason, "why": why, "waitsFor": waits_for, "command": reason["command"] if told.has_command else None}
