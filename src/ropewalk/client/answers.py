"""What a server answers: its JSON, with a type. A newer server may tell more; nothing of it is lost."""

from typing import Any, Literal, TypedDict

from ropewalk.core.canonical import JSON

State = Literal["PENDING", "RUNNING", "PAUSED", "SUCCESS", "FAILED", "CANCELLED", "TIMEOUT"]
Role = Literal["viewer", "operator", "editor", "admin", "runner"]
Right = Literal[
    "read", "read-payloads", "execute", "edit", "use-credentials", "run", "administer", "operate", "observe"
]
"""What a key can have as a scope."""


class Told(TypedDict):
    """An execution that was told something; `changed` is false if that held already."""

    executionId: str
    changed: bool


class Failure(TypedDict):
    """Why a node failed."""

    type: str
    message: str
    detail: str | None
    status: int | None
    body: str | None


class Node(TypedDict):
    """A node of an execution."""

    id: str
    type: str
    state: str
    attempts: int
    rounds: int | None
    startedAt: str | None
    finishedAt: str | None
    error: Failure | None


class ExecutionSummary(TypedDict):
    """One pass through one version of a workflow."""

    id: str
    workflow: str
    workflowId: str
    version: int
    state: State
    trigger: str
    parentExecutionId: str | None
    acceptedAt: str
    startedAt: str | None
    finishedAt: str | None
    error: str | None
    traceId: str | None
    waitingFor: str | None


class Reference(TypedDict):
    """Where a value is that is too large to be shown."""

    hash: str
    size: int


class ExecutionDetails(ExecutionSummary):
    """The same with everything it keeps.

    Without the right to read payloads, `payloads` is false and the values are null. An output that is very large is
    null too, with a reference instead; `output()` gives it.
    """

    workspaceId: str
    priority: int
    concurrencyKey: str | None
    triggerPayload: JSON
    input: JSON
    vars: dict[str, JSON] | None
    output: JSON
    outputHash: str | None
    outputReference: Reference | None
    errorDetail: str | None
    waitingFor: str | None
    outcome: str | None
    sourceExecutionId: str | None
    sameOutput: bool | None
    metrics: dict[str, Any]
    payloads: bool


class Run(TypedDict):
    """One attempt at one node."""

    id: str
    executionId: str
    node: str
    item: int | None
    attempt: int
    state: str
    startedAt: str | None
    finishedAt: str | None
    durationMs: float | None
    retryAfter: str | None
    errorType: str | None
    error: str | None
    traceId: str | None


class Event(TypedDict):
    """A recorded fact."""

    v: int
    type: str
    executionId: str
    seq: int
    at: str
    data: dict[str, Any]


class Reason(TypedDict):
    """Why something does not run, and what would help."""

    code: str
    why: str
    waitsFor: dict[str, Any]
    command: str | None
    action: str | None
    node: str | None
    item: int | None


class Explanation(TypedDict):
    """Why an execution does not run now; all reasons hold at once."""

    id: str
    workflow: str
    state: State
    at: str
    waitingFor: str | None
    reasons: list[Reason]
    nodes: list[dict[str, Any]]
    nodesLeftOut: int


class QueueItem(TypedDict):
    """Where an accepted start stands; `position` is 1 for the next."""

    id: str
    executionId: str
    executionState: State
    state: str
    position: int | None
    waiting: int | None
    priority: int
    enqueuedAt: str
    notBefore: str | None
    attempts: int | None
    claimedBy: str | None
    claimedAt: str | None
    error: str | None


class DeadLetter(TypedDict):
    """A run that gave up, kept for a person; in a list, what is told of its error beyond the reason is null."""

    id: str
    executionId: str
    workflowId: str
    runId: str
    node: str
    item: int | None
    attempt: int
    failureType: str
    errorType: str
    reason: str
    errorDetail: str | None
    errorStatus: int | None
    errorBody: str | None
    fingerprint: str
    inputs: JSON
    inputsReference: Reference | None
    config: JSON
    payloads: bool
    createdAt: str
    resolution: Literal["PENDING", "REQUEUED", "FIXED", "DISCARDED"]
    resolvedAt: str | None
    reviewedBy: str | None
    notes: str | None


class DeadLetterGroup(TypedDict):
    """What failed alike."""

    fingerprint: str
    count: int
    workflow: str
    workflowId: str
    node: str
    failureType: str
    reason: str
    firstAt: str
    lastAt: str


class DeadLetterProgress(TypedDict):
    """What became of one of many: SKIPPED was resolved by another caller, FAILED gave up again, STOPPED ends it all."""

    id: str | None
    executionId: str | None
    outcome: Literal["REQUEUED", "DISCARDED", "SKIPPED", "REFUSED", "FAILED", "STOPPED"]
    reason: str | None


class Worker(TypedDict):
    """A process that executes; `silence` is for how long it was not heard of (µs), null if it has left."""

    id: str
    host: str
    pid: int
    version: str
    pool: str
    load: int
    slots: int
    startedAt: str
    heartbeatAt: str | None
    silence: int | None
    isAlive: bool


class LeasedRun(TypedDict):
    """A run that is a runner's until `leaseUntil`, or longer with heartbeats; at most until `deadline`."""

    runId: str
    executionId: str
    node: str
    item: int | None
    attempt: int
    type: str
    pool: str
    inputs: JSON
    idempotencyKey: str
    timeoutSeconds: float
    deadline: str
    leaseUntil: str
    leaseToken: str
    traceparent: str


class KeptLease(TypedDict):
    """Until when a lease goes on, and whether its run is still wanted."""

    leaseUntil: str
    stop: bool


class ReportTaken(TypedDict):
    """A report that survives any crash from here on."""

    runId: str


class Key(TypedDict):
    """An API key, without what opens; null `scopes` and `pools` are no limit."""

    id: str
    workspaceId: str
    name: str
    role: Role
    scopes: list[Right] | None
    pools: list[str] | None
    root: bool
    createdAt: str
    createdBy: str
    expiresAt: str | None
    lastUsedAt: str | None
    revokedAt: str | None


class NewKey(Key):
    """A key with its token, which cannot be read again."""

    token: str


class Member(TypedDict):
    """A subject's role in a workspace, or for a workflow that is shared with them."""

    subject: str
    role: Role
    createdAt: str
    createdBy: str


class LetGo(TypedDict):
    """A subject who has this role no more; `changed` is false if they had none."""

    subject: str
    changed: bool
