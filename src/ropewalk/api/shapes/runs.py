"""Runs as clients get them."""

from typing import Any, Final

from pydantic import Field

from ropewalk.api.shapes.base import Answer, exemplified
from ropewalk.api.shapes.executions import (
    A_HASH,
    A_MOMENT,
    A_TRACE,
    AN_ID,
    ANOTHER_ID,
    BODY,
    DETAIL,
    ERROR,
    STATUS,
    Reference,
)
from ropewalk.core.errors import ErrorType
from ropewalk.core.state import RunState

A_RUN: Final = {
    "id": ANOTHER_ID, "executionId": AN_ID, "node": "pay", "item": None, "attempt": 1, "state": "FAILED",
    "startedAt": A_MOMENT, "finishedAt": A_MOMENT, "durationMs": 12.5, "retryAfter": None, "errorType": "TRANSIENT",
    "error": "503 Service Unavailable", "traceId": A_TRACE,
}  # fmt: skip
A_RUN_IN_DETAIL: Final = A_RUN | {
    "inputs": {"url": "https://shop.example/refunds"}, "inputsHash": A_HASH, "configHash": A_HASH,
    "idempotencyKey": A_HASH, "output": None, "outputReference": None, "errorDetail": None, "errorStatus": None,
    "errorBody": None, "waitingFor": None, "worker": None, "pool": None, "leasedBy": None, "leaseUntil": None,
    "fence": None, "heartbeatAt": None, "tokenCost": None, "round": None, "payloads": True,
}  # fmt: skip


class RunSummary(Answer):
    """One attempt at one node, or at one item of a map."""

    model_config = exemplified(Answer, A_RUN)

    id: str
    execution_id: str
    node: str
    item: int | None
    attempt: int
    state: RunState
    started_at: str | None
    finished_at: str | None
    duration_ms: float | None
    retry_after: str | None
    error_type: ErrorType | None
    error: str | None = Field(description=ERROR)
    trace_id: str | None = Field(description="Its execution's.")


class RunDetails(RunSummary):
    """A run with everything that is known of it; its lease only while other workers or runners may take it."""

    model_config = exemplified(Answer, A_RUN_IN_DETAIL)

    inputs: Any
    inputs_hash: str | None
    config_hash: str
    idempotency_key: str | None
    output: Any
    output_reference: Reference | None
    error_detail: str | None = Field(description=DETAIL)
    error_status: int | None = Field(description=STATUS)
    error_body: str | None = Field(description=BODY)
    waiting_for: str | None
    worker: str | None = Field(description="The worker that carries it out, while one does.")
    pool: str | None
    leased_by: str | None
    lease_until: str | None
    fence: int | None
    heartbeat_at: str | None
    round: int | None = Field(description="Of a node that is repeated: the round it was part of, from 0.")
    token_cost: int | None = Field(description="The tokens of a language model it used up, if its node counted them.")
    payloads: bool
