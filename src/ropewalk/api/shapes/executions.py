"""Executions as clients get them."""

from typing import Any, Final

from pydantic import Field

from ropewalk.api.shapes.base import Answer, exemplified
from ropewalk.core.errors import ErrorType
from ropewalk.core.state import ExecutionState, NodeState, TriggerType

AN_ID: Final = "019a8b0c-3f1e-7c4e-9d53-2b1f0c9a7e11"
ANOTHER_ID: Final = "019a8b0c-4a2b-7d10-8c41-7f3e5d2b9a06"
A_TRACE: Final = AN_ID.replace("-", "")
A_HASH: Final = "9f2c4e1b7a5d8036c1e4f7a2b5d8e0936f1c4a7b2d5e8093a6c1f4b7e2d5a803"
A_MOMENT: Final = "2026-11-16T08:00:00.000000Z"
_A_SUMMARY: Final = {
    "id": AN_ID, "workflow": "refund", "workflowId": ANOTHER_ID, "version": 3, "state": "SUCCESS", "trigger": "MANUAL",
    "parentExecutionId": None, "acceptedAt": A_MOMENT, "startedAt": A_MOMENT, "finishedAt": A_MOMENT, "error": None,
    "traceId": A_TRACE,
}  # fmt: skip
_TRACE_ALONE: Final = "Of the traceparent of its start, else its own id without hyphens."
ERROR: Final = "Why it failed, in words; without the right to read payloads, a sentence that says so."
_TRACE: Final = f"{_TRACE_ALONE} Null in a list if it was accepted by a version that did not keep it."
DETAIL: Final = "The traceback of a node's own code, or what the node says about its failure."
STATUS: Final = "What a server answered, if that is why it failed."
BODY: Final = "The beginning of that answer as text, at most 4 KiB."


class ExecutionSummary(Answer):
    """One pass through one version of a workflow."""

    model_config = exemplified(Answer, _A_SUMMARY)

    id: str
    workflow: str = Field(description="The name of the workflow.")
    workflow_id: str
    version: int
    state: ExecutionState
    trigger: TriggerType
    parent_execution_id: str | None
    accepted_at: str
    started_at: str | None
    finished_at: str | None
    error: str | None = Field(description=ERROR)
    trace_id: str | None = Field(description=_TRACE)
    waiting_for: str | None = Field(None, description="In a word; in lists, only of those that wait.")


class Metrics(Answer):
    """An execution in numbers; `tokens` are those its runs said they used up, null where none did."""

    duration_ms: float | None
    queue_delay_ms: float | None
    nodes: dict[NodeState, int]
    attempts: int
    tokens: int | None


class Reference(Answer):
    """Where a value is that is too large for the log."""

    hash: str
    size: int


class ExecutionDetails(ExecutionSummary):
    """An execution with everything it keeps.

    Without the right to read payloads, `payloads` is false, what was given and made is null, and `error` says no more
    than that there is one.
    """

    model_config = exemplified(
        Answer,
        _A_SUMMARY
        | {
            "workspaceId": "default",
            "priority": 5,
            "concurrencyKey": None,
            "triggerPayload": None,
            "input": {"orderId": "A-7"},
            "vars": {"shop": "https://shop.example"},
            "output": {"refunded": True},
            "outputHash": A_HASH,
            "outputReference": None,
            "errorDetail": None,
            "waitingFor": None,
            "outcome": "SUCCESS",
            "sourceExecutionId": None,
            "sameOutput": None,
            "metrics": {
                "durationMs": 41.2,
                "queueDelayMs": 3.1,
                "nodes": {"SUCCESS": 4, "SKIPPED": 1},
                "attempts": 5,
                "tokens": None,
            },
            "payloads": True,
        },
    )

    workspace_id: str
    trace_id: str = Field(description=_TRACE_ALONE)
    priority: int
    concurrency_key: str | None
    trigger_payload: Any
    input: Any
    vars: dict[str, Any] | None
    output: Any = Field(description="Null also where `outputReference` names it: ask for /output then.")
    output_hash: str | None
    output_reference: Reference | None
    error_detail: str | None = Field(description=f"Of the first failure that no error edge handles. {DETAIL}")
    waiting_for: str | None = Field(description="Why nothing is running, in a word.")
    outcome: ExecutionState | None = Field(
        description="How it ended; or how it is decided to end, while compensate and finally close it."
    )
    source_execution_id: str | None = Field(description="The execution it does again, by a rerun or a replay.")
    same_output: bool | None = Field(description="Whether both gave the same; null as long as that is open.")
    metrics: Metrics
    payloads: bool


class Started(Answer):
    """An accepted start: it survives any crash from here on.

    With `wait`, `status` is the state of the execution, and `execution` is the execution itself.
    """

    model_config = exemplified(Answer, {"queueId": AN_ID, "executionId": AN_ID, "status": "PENDING"})

    queue_id: str
    execution_id: str
    status: str
    execution: ExecutionDetails | None = Field(None, description="There if `wait` was asked.")


class StartedBatch(Answer):
    """Accepted starts, in the order they were sent."""

    model_config = exemplified(
        Answer, {"started": [{"queueId": AN_ID, "executionId": AN_ID, "status": "PENDING"}], "count": 1}
    )

    started: list[Started]
    count: int


class NodeError(Answer):
    """Why a node failed; without the right to read payloads, its type and a sentence that says so."""

    type: ErrorType
    message: str
    detail: str | None = Field(description=f"{DETAIL} Of a map, of its first failed item.")
    status: int | None = Field(description=STATUS)
    body: str | None = Field(description=BODY)


class ExecutionNode(Answer):
    """One node of an execution."""

    model_config = exemplified(
        Answer,
        {
            "id": "pay",
            "type": "http.request",
            "state": "FAILED",
            "attempts": 3,
            "rounds": None,
            "startedAt": A_MOMENT,
            "finishedAt": A_MOMENT,
            "error": {
                "type": "TRANSIENT",
                "message": "503 Service Unavailable",
                "detail": "try again later",
                "status": 503,
                "body": "try again later",
            },
            "payloads": False,
        },
    )

    id: str
    type: str
    state: NodeState
    attempts: int
    rounds: int | None = Field(description="Of a node that is repeated: how many rounds have ended well.")
    started_at: str | None
    finished_at: str | None
    error: NodeError | None
    payloads: bool


class ExecutionEvent(Answer):
    """A recorded fact, in its envelope; without the right to read payloads, ids, types, states, counts and times."""

    model_config = exemplified(Answer, {
        "v": 2, "type": "NodesStarted", "executionId": AN_ID, "seq": 3, "at": A_MOMENT, "data": {"nodes": ["order"]},
        "payloads": True,
    })  # fmt: skip

    v: int
    type: str
    execution_id: str
    seq: int
    at: str
    data: dict[str, Any]
    payloads: bool


class Reason(Answer):
    """Why something does not run; `command` is what to type after `ropewalk`."""

    code: str
    why: str
    waits_for: dict[str, Any]
    command: str | None
    action: str | None
    node: str | None
    item: int | None


class NodeReason(Answer):
    """Why a node is where it is; of a map also the items that are stuck."""

    id: str
    state: NodeState
    code: str
    why: str
    waits_for: dict[str, Any]
    command: str | None
    action: str | None
    items: list[Reason]


class Explanation(Answer):
    """The exact reasons why an execution, or a node of it, is not running now. All of them hold at once.

    Without the right to read payloads, a reason names no signal, event, target, title, key or error.
    """

    model_config = exemplified(
        Answer,
        {
            "id": AN_ID,
            "workflow": "refund",
            "state": "PAUSED",
            "at": A_MOMENT,
            "waitingFor": "resume",
            "reasons": [
                {
                    "code": "PAUSED",
                    "why": "paused by user:ann",
                    "waitsFor": {"by": "user:ann"},
                    "command": f"resume {AN_ID}",
                    "action": None,
                    "node": None,
                    "item": None,
                }
            ],
            "nodes": [],
            "nodesLeftOut": 0,
        },
    )

    id: str
    workflow: str
    state: ExecutionState
    at: str
    waiting_for: str | None
    reasons: list[Reason]
    nodes: list[NodeReason]
    nodes_left_out: int
