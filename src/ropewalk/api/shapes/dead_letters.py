"""Dead letters as clients get them."""

from typing import Any, Final

from pydantic import Field

from ropewalk.api.shapes.base import Answer, exemplified
from ropewalk.api.shapes.executions import A_MOMENT, AN_ID, ANOTHER_ID, BODY, DETAIL, STATUS, Reference
from ropewalk.core.errors import ErrorType
from ropewalk.core.state import GaveUp, Resolution
from ropewalk.service.dead_letter_bulk import Outcome

A_DEAD_LETTER: Final = {
    "id": AN_ID, "executionId": ANOTHER_ID, "workflowId": ANOTHER_ID, "runId": ANOTHER_ID, "node": "pay", "item": None,
    "attempt": 3, "failureType": "MAX_RETRIES", "errorType": "TRANSIENT", "reason": "503 Service Unavailable",
    "errorDetail": "try again later", "errorStatus": 503, "errorBody": "try again later",
    "fingerprint": "5d8e0936f1c4a7b2", "inputs": {"url": "https://shop.example/refunds"}, "inputsReference": None,
    "config": {"id": "pay", "type": "http.request"}, "createdAt": A_MOMENT, "resolution": "PENDING",
    "resolvedAt": None, "reviewedBy": None, "notes": None, "payloads": True,
}  # fmt: skip


class DeadLetter(Answer):
    """A run that gave up, why, and with what; without the right to read payloads, not with what, nor why in words."""

    model_config = exemplified(Answer, A_DEAD_LETTER)

    id: str
    execution_id: str
    workflow_id: str
    run_id: str
    node: str
    item: int | None
    attempt: int
    failure_type: GaveUp
    error_type: ErrorType
    reason: str
    error_detail: str | None = Field(description=f"{DETAIL} Null in a list.")
    error_status: int | None = Field(description=f"{STATUS} Null in a list.")
    error_body: str | None = Field(description=f"{BODY} Null in a list.")
    fingerprint: str
    inputs: Any = Field(description="Null also where `inputsReference` names them: the run has them then.")
    inputs_reference: Reference | None
    config: Any
    created_at: str
    resolution: Resolution
    resolved_at: str | None
    reviewed_by: str | None
    notes: str | None
    payloads: bool


class DeadLetterGroup(Answer):
    """Unresolved dead letters that failed alike; the newest speaks for all."""

    model_config = exemplified(Answer, {
        "fingerprint": "5d8e0936f1c4a7b2", "count": 17, "workflow": "refund", "workflowId": ANOTHER_ID, "node": "pay",
        "failureType": "MAX_RETRIES", "reason": "503 Service Unavailable", "firstAt": A_MOMENT, "lastAt": A_MOMENT,
    })  # fmt: skip

    fingerprint: str
    count: int
    workflow: str
    workflow_id: str
    node: str
    failure_type: GaveUp
    reason: str
    first_at: str
    last_at: str


class Requeued(Answer):
    """A dead letter whose execution goes on."""

    model_config = exemplified(Answer, {"id": AN_ID, "executionId": ANOTHER_ID})

    id: str
    execution_id: str


class LetterProgress(Answer):
    """What became of one dead letter: SKIPPED was resolved by another caller, FAILED gave up again."""

    id: str
    execution_id: str
    outcome: Outcome
    reason: str | None


class Step(Answer):
    """A part of many dead letters worked off; `next` is to go on with, null when all are done or it is enough."""

    model_config = exemplified(Answer, {
        "counts": {"REQUEUED": 1},
        "letters": [{"id": AN_ID, "executionId": ANOTHER_ID, "outcome": "REQUEUED", "reason": None}], "stopped": False,
        "next": None,
    })  # fmt: skip

    counts: dict[Outcome, int]
    letters: list[LetterProgress]
    stopped: bool = Field(description="Whether as many have failed again as were to be enough.")
    next: str | None
