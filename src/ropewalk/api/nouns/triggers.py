"""Triggers over HTTP: what starts executions besides a call, and what became of it."""

from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import Field, JsonValue

from ropewalk.access.rights import Right
from ropewalk.api.doors.authorization import Call
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, Cursor, Limit, Page, exemplified, page
from ropewalk.api.shapes.executions import A_MOMENT
from ropewalk.core.errors import InvalidInput, Problem
from ropewalk.core.state import TriggerType
from ropewalk.service import payloads
from ropewalk.service.triggers import reading
from ropewalk.store import triggers
from ropewalk.store.triggers import Trigger as Row

routes = Routes("/triggers", "Triggers")

_ID: Final = "019a8b0c-3f1e-7c4e-9d53-2b1f0c9a7e11"
_SETTINGS: Final[dict[str, Any]] = {"cron": "0 3 * * *", "zone": "Europe/Berlin", "overlap": "skip"}
_A_TRIGGER: Final = {
    "id": _ID, "name": "cron-1", "kind": "CRON", "workflowId": _ID, "workflow": "nightly", "version": 3,
    "settings": _SETTINGS, "enabled": True, "declared": True, "words": "at 03:00 every day, Europe/Berlin",
    "path": None, "nextAt": A_MOMENT, "lastExecution": _ID, "createdAt": A_MOMENT, "createdBy": "user:ann",
}  # fmt: skip
_A_FIRE: Final = {
    "key": A_MOMENT, "at": A_MOMENT, "dueAt": A_MOMENT, "executionId": _ID, "reason": None, "detail": None,
}  # fmt: skip

TriggerId = Annotated[str, Path(alias="triggerId", max_length=200)]
Settings = Annotated[
    dict[str, JsonValue], Field(description="As an entry of `triggers` in a definition says it.", max_length=64)
]
Happening = Annotated[
    dict[str, JsonValue] | None, Field(description="What expressions see as `event`; by default that it is due now.")
]
Moment = Annotated[str, Field(max_length=64, description="Like 2026-11-15T12:00:00Z.", examples=[A_MOMENT])]


class Trigger(Answer):
    """What starts a workflow; `path` is the address of a webhook, for those who may read payloads."""

    model_config = exemplified(Answer, _A_TRIGGER)

    id: str
    name: str
    kind: TriggerType
    workflow_id: str
    workflow: str
    version: int | None
    settings: dict[str, Any]
    enabled: bool
    declared: bool
    words: str
    path: str | None
    next_at: str | None
    last_execution: str | None
    created_at: str
    created_by: str


class CreateTriggerBody(Body):
    """A trigger beside those of the definition; it starts the published version."""

    model_config = exemplified(Body, {"workflowId": "nightly", "settings": _SETTINGS})

    workflow_id: str = Field(min_length=1, max_length=200, description="The id or name of the workflow.")
    settings: Settings


class FireBody(Body):
    """What has happened."""

    model_config = exemplified(Body, {"event": {"dueAt": A_MOMENT}})

    event: Happening = None


class PreviewBody(Body):
    """A schedule that may not be saved yet."""

    model_config = exemplified(Body, {"settings": _SETTINGS, "count": 5})

    settings: Settings
    count: int = Field(5, ge=1, le=reading.MOST_TIMES)


class BackfillBody(Body):
    """Which due times are to be started, and how many of them at a time."""

    model_config = exemplified(Body, {"since": A_MOMENT, "until": A_MOMENT, "concurrency": 2, "dryRun": True})

    since: Moment
    until: Moment
    concurrency: int = Field(1, ge=1, le=1_000)
    dry_run: bool = False


class Changed(Answer):
    """A trigger that is switched, or gone; `changed` is false if it was so before."""

    model_config = exemplified(Answer, {"id": _ID, "enabled": False, "changed": True})

    id: str
    enabled: bool
    changed: bool


class Fire(Answer):
    """What became of one due time, delivery or message: an execution, or the reason why there is none."""

    model_config = exemplified(Answer, _A_FIRE)

    key: str | None
    at: str
    due_at: str | None
    execution_id: str | None
    reason: str | None
    detail: str | None


class Fired(Answer):
    """What was started, or why nothing was."""

    model_config = exemplified(Answer, {"executionId": _ID, "reason": None, "detail": None})

    execution_id: str | None
    reason: str | None
    detail: str | None


class TryOut(Answer):
    """What the trigger would start, or why nothing; nothing was started."""

    model_config = exemplified(
        Answer, {"starts": True, "reason": None, "detail": None, "input": {"orderId": "A-7"}, "version": 3}
    )

    starts: bool
    reason: str | None
    detail: str | None
    input: Any
    version: int | None


class Preview(Answer):
    """A schedule in words, and its next due times in UTC."""

    model_config = exemplified(Answer, {"words": "at 03:00 every day, Europe/Berlin", "times": [A_MOMENT]})

    words: str
    times: list[str]


class Backfill(Answer):
    """How many due times there are, the first of them, and the trigger that starts them; none of a dry run."""

    model_config = exemplified(Answer, {"count": 1, "times": [A_MOMENT], "trigger": _ID})

    count: int
    times: list[str]
    trigger: str | None


class TriggerReasons(Answer):
    """When it is due next, or why it starts nothing; and what became of it in the last day."""

    model_config = exemplified(
        Answer,
        {"trigger": _ID, "name": "cron-1", "reasons": [f"next at {A_MOMENT}"], "started": 1, "skipped": {"OVERLAP": 2}},
    )

    trigger: str
    name: str
    reasons: list[str]
    started: int
    skipped: dict[str, int]


@routes.get("", Right.READ, response_model=Page[Trigger])
async def list_triggers(
    call: Caller,
    workflow_id: Annotated[
        str | None, Query(alias="workflowId", max_length=200, description="An id or a name.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """What starts the workflows of the workspace, or one of them, besides a call."""
    workflow = "" if workflow_id is None else (await call.workflow(workflow_id)).id
    if not workflow:
        call.require()
    listing = call.listing("triggers", workflow)
    after = "" if cursor is None else call.backend.cursors.read(listing, cursor)
    found = await reading.list_triggers(call.backend.store, call.workspace, workflow, after=after, limit=limit)
    shown = [await _shown(call, each) for each in found]
    return page(call.backend.cursors, listing, shown, limit, found[-1]["id"] if found else None)


@routes.post("", Right.EDIT, status_code=201, response_model=Trigger, problems=(409,))
async def create_trigger(call: Caller, body: CreateTriggerBody) -> dict[str, Any]:
    """Start a workflow by itself from now on, beside what its definition says."""
    workflow = await call.workflow(body.workflow_id)
    bounded_by = next(iter(call.bounded_by), None)
    about = (workflow.id, body.settings, call.actor.subject, bounded_by)
    made = await call.service.triggers.create(*about, may_use=call.may_use)
    return await _shown(call, made)


@routes.post("/preview", Right.READ, response_model=Preview)
async def preview_trigger(call: Caller, body: PreviewBody) -> dict[str, Any]:
    """When a schedule would be due, from now on; nothing is saved."""
    call.require()
    return _times(body.settings, call.backend.store.now(), body.count)


@routes.get("/{triggerId}", Right.READ, response_model=Trigger)
async def get_trigger(call: Caller, trigger_id: TriggerId) -> dict[str, Any]:
    """One trigger, by its id or its name."""
    found = await _found(call, trigger_id)
    return await _shown(call, await reading.get_trigger(call.backend.store, call.workspace, found.id))


@routes.delete("/{triggerId}", Right.EDIT, response_model=Changed, problems=(409,))
async def remove_trigger(call: Caller, trigger_id: TriggerId) -> dict[str, Any]:
    """Take away a trigger that is not part of the definition."""
    found = await _found(call, trigger_id, is_removed=True)
    changed = await call.service.triggers.remove(found.id, call.actor.subject)
    return {"id": found.id, "enabled": False, "changed": changed}


@routes.post("/{triggerId}/enable", Right.EXECUTE, response_model=Changed)
async def enable_trigger(call: Caller, trigger_id: TriggerId) -> dict[str, Any]:
    """Let it fire from now on; what was due while it was off is not fired."""
    return await _switched(call, trigger_id, on=True)


@routes.post("/{triggerId}/disable", Right.EXECUTE, response_model=Changed)
async def disable_trigger(call: Caller, trigger_id: TriggerId) -> dict[str, Any]:
    """Let it fire no more."""
    return await _switched(call, trigger_id, on=False)


@routes.post("/{triggerId}/fire", Right.EXECUTE, status_code=202, response_model=Fired)
async def fire_trigger(call: Caller, trigger_id: TriggerId, body: FireBody) -> dict[str, Any]:
    """Start what it asks for now, whether or not it is enabled."""
    found = await _found(call, trigger_id)
    fired = await call.service.triggers.fire(found.id, body.event, call.actor.subject)
    return {"executionId": fired.execution, "reason": fired.reason, "detail": fired.detail}


@routes.post("/{triggerId}/test", Right.EXECUTE, response_model=TryOut)
async def test_trigger(call: Caller, trigger_id: TriggerId, body: FireBody) -> dict[str, Any]:
    """What it would start with this happening; nothing is started."""
    found = await _found(call, trigger_id)
    return await call.service.triggers.try_out(found.id, body.event)


@routes.post("/{triggerId}/backfill", Right.EXECUTE, status_code=202, response_model=Backfill, problems=(409,))
async def backfill_trigger(call: Caller, trigger_id: TriggerId, body: BackfillBody) -> dict[str, Any]:
    """Start what was due in a range, some at a time, by a trigger of its own."""
    found = await _found(call, trigger_id)
    return await call.service.triggers.backfill(
        found.id, body.since, body.until, call.actor.subject, concurrency=body.concurrency, dry_run=body.dry_run
    )


@routes.get("/{triggerId}/next", Right.READ, response_model=Preview)
async def preview_next(
    call: Caller, trigger_id: TriggerId, count: Annotated[int, Query(ge=1, le=reading.MOST_TIMES)] = 5
) -> dict[str, Any]:
    """The next due times of a schedule, in words and in UTC."""
    found = await _found(call, trigger_id)
    if found.kind != TriggerType.CRON:
        raise InvalidInput([Problem(("triggerId",), "is no schedule: only a schedule has due times")])
    return _times(reading.settings_of(found), call.backend.store.now(), count, found.changed_at)


@routes.get("/{triggerId}/fires", Right.READ, response_model=Page[Fire])
async def list_fires(call: Caller, trigger_id: TriggerId, limit: Limit = 50, cursor: Cursor = None) -> dict[str, Any]:
    """What became of its due times, deliveries or messages, the latest first; kept for 30 days."""
    found = await _found(call, trigger_id)
    listing = call.listing("fires", found.id)
    before = (2**62, "") if cursor is None else tuple(call.backend.cursors.read(listing, cursor))
    fires = await triggers.fires(call.backend.store, found.id, before=before, limit=limit)
    may_read = await call.may_read(found.workflow)
    shown = [payloads.shown(reading.fire_of(each), payloads.FIRE, may_read=may_read) for each in fires]
    place = [fires[-1].at, fires[-1].key] if fires else None
    return page(call.backend.cursors, listing, shown, limit, place)


@routes.get("/{triggerId}/explain", Right.READ, response_model=TriggerReasons)
async def explain_trigger(call: Caller, trigger_id: TriggerId) -> dict[str, Any]:
    """When it is due next, or why it starts nothing; of a queue also what keeps the server that answers from it."""
    found = await _found(call, trigger_id)
    trouble = call.backend.service(call.workspace).queue_troubles.get(found.id)
    return await reading.explain(call.backend.store, found, call.backend.store.now(), trouble)


async def _found(call: Call, named: str, *, is_removed: bool = False) -> Row:
    """A trigger this route may be used on."""
    found = await reading.find(call.backend.store, call.workspace, named, is_removed=is_removed)
    await call.allow(found.workflow, f"there is no trigger {named!r}")
    return found


async def _switched(call: Call, named: str, *, on: bool) -> dict[str, Any]:
    found = await _found(call, named)
    changed = await call.service.triggers.switch(found.id, on=on, by=call.actor.subject)
    return {"id": found.id, "enabled": on, "changed": changed}


async def _shown(call: Call, trigger: dict[str, Any]) -> dict[str, Any]:
    return payloads.shown(trigger, payloads.TRIGGER, may_read=await call.may_read(trigger["workflowId"]))


def _times(settings: dict[str, Any], now: int, count: int, anchor: int = 0) -> dict[str, Any]:
    try:
        return reading.times(settings, now, count, anchor)
    except (ValueError, KeyError) as error:
        raise InvalidInput([Problem(("settings",), str(error))]) from error
