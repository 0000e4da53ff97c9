"""The queue over HTTP: where an accepted start stands."""

from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.nouns.executions import ID
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, exemplified
from ropewalk.api.shapes.executions import A_MOMENT, AN_ID
from ropewalk.core.state import ExecutionState
from ropewalk.service import payloads
from ropewalk.service.queue import queue_item

routes = Routes("/workflow/queue", "Queue")

QueueId = Annotated[str, Path(alias="queueId", max_length=64, pattern=ID)]


class QueueItem(Answer):
    """An accepted start; DONE once its execution ended well, or was cancelled."""

    model_config = exemplified(Answer, {
        "id": AN_ID, "executionId": AN_ID, "executionState": "PENDING", "state": "PENDING", "position": 1,
        "waiting": 4, "priority": 5, "enqueuedAt": A_MOMENT, "notBefore": A_MOMENT, "attempts": 0, "claimedBy": None,
        "claimedAt": None, "error": None,
    })  # fmt: skip

    id: str
    execution_id: str
    execution_state: ExecutionState
    state: Literal["PENDING", "CLAIMED", "DISPATCHED", "FAILED", "DONE"]
    position: int | None = Field(description="1 for the next of its workspace; null if it does not wait.")
    waiting: int | None = Field(description="How many wait in its workspace; null beyond what is counted.")
    priority: int
    enqueued_at: str
    not_before: str | None
    attempts: int | None
    claimed_by: str | None
    claimed_at: str | None
    error: str | None


@routes.get("/{queueId}", Right.READ, response_model=QueueItem)
async def get_queue_item(call: Caller, queue_id: QueueId) -> dict[str, Any]:
    """Where an accepted start stands; its id is its execution's."""
    row = await call.execution(queue_id)
    found = await queue_item(call.backend.store, call.workspace, queue_id)
    return payloads.shown(found, payloads.QUEUE_ITEM, may_read=await call.may_read(row.workflow))
