"""Breakers over HTTP: how the targets are that nodes call."""

from typing import Any

from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, Cursor, Limit, Page, exemplified, page
from ropewalk.api.shapes.executions import A_MOMENT
from ropewalk.core.breaker import BreakerState
from ropewalk.service import breakers, payloads

routes = Routes("/breakers", "Breakers")


class Breaker(Answer):
    """The health of one target, shared by all workers; its name only for those who may read payloads.

    The counts are those of the window when a call last failed; of a breaker that is not closed, when it opened.
    """

    model_config = exemplified(Answer, {
        "target": "http.request https://shop.example", "state": "OPEN", "callCount": 12, "failureCount": 9,
        "successCount": 3, "windowStart": A_MOMENT, "lastFailure": A_MOMENT, "openedAt": A_MOMENT,
        "nextRetry": A_MOMENT,
    })  # fmt: skip

    target: str
    state: BreakerState
    call_count: int
    failure_count: int
    success_count: int
    window_start: str | None
    last_failure: str | None
    opened_at: str | None
    next_retry: str | None


class ResetBody(Body):
    """Whose breaker."""

    model_config = exemplified(Body, {"target": "http.request https://shop.example"})

    target: str = Field(min_length=1, max_length=1_024)


class BreakerReset(Answer):
    """A breaker that is closed; `changed` is false if it was."""

    model_config = exemplified(Answer, {"target": "http.request https://shop.example", "changed": True})

    target: str
    changed: bool


@routes.get("", Right.READ, response_model=Page[Breaker])
async def list_breakers(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> dict[str, Any]:
    """The targets that nodes of the workspace have called in vain, by name."""
    call.require()
    listing = call.listing("breakers")
    after = "" if cursor is None else call.backend.cursors.read(listing, cursor)
    found = await breakers.list_breakers(call.backend.store, call.workspace, after=after, limit=limit)
    may_read = Right.READ_PAYLOADS in call.rights
    shown = [payloads.shown(each, payloads.BREAKER, may_read=may_read) for each in found]
    return page(call.backend.cursors, listing, shown, limit, found[-1]["target"] if found else None)


@routes.post("/reset", Right.EXECUTE, response_model=BreakerReset, problems=(409,))
async def reset_breaker(call: Caller, body: ResetBody) -> dict[str, Any]:
    """Close a breaker by hand; the runs it holds go on."""
    call.require()
    changed = await breakers.reset(call.service.engine, call.workspace, body.target, call.actor.subject)
    return {"target": body.target, "changed": changed}
