"""Many executions told the same over HTTP: counted first, then worked off in steps.

A call tells the oldest for at most twenty seconds, says what became of each, and gives a cursor to go on with. Nothing
goes on behind the client's back, and what was accepted after the first step is left alone.
"""

from collections import Counter
from typing import Any, Final

from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.doors.authorization import Call
from ropewalk.api.nouns.execution_lists import LONGEST_SEARCH, filtered
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, Named, exemplified
from ropewalk.api.shapes.executions import AN_ID
from ropewalk.api.shapes.moments import RFC3339, micros
from ropewalk.core.errors import InvalidInput, Problem
from ropewalk.core.state import ExecutionState, TriggerType
from ropewalk.service import execution_bulk, payloads
from ropewalk.service.execution_bulk import BulkOutcome, BulkProgress, BulkVerb, Tell
from ropewalk.service.reading.scans import scan_reader
from ropewalk.store.executions import ANY, MOST_COUNTED, Filter

routes = Routes("/workflow/executions", "Executions")

STEP_SECONDS: Final = 20.0


class ChosenBody(Body):
    """Which executions, by the filters of their list; at least one of them, or `all`."""

    model_config = exemplified(Body, {"workflowId": "refund", "dryRun": True})

    workflow_id: Named | None = None
    state: ExecutionState | None = Field(None, strict=False)
    trigger: TriggerType | None = Field(None, strict=False)
    since: str | None = Field(None, alias="from", max_length=40, pattern=RFC3339)
    until: str | None = Field(None, alias="to", max_length=40, pattern=RFC3339)
    search: str | None = Field(None, min_length=1, max_length=LONGEST_SEARCH, pattern=r"^[^\x00]+$")
    waiting: bool = False
    all: bool = Field(False, description="All of the workspace, where nothing else narrows them.")
    dry_run: bool = Field(False, description="Only count them.")
    limit: int = Field(100, ge=1, le=200, description="How many this call may tell.")
    cursor: str | None = Field(None, max_length=1_024, description="`next` of the step before.")


class CancelManyBody(ChosenBody):
    """Which executions to stop, and why."""

    reason: str | None = Field(None, max_length=1_000)


class ExecutionProgress(Answer):
    """What became of one: DONE was told; SKIPPED had changed by itself meanwhile; REFUSED cannot be told."""

    id: str
    outcome: BulkOutcome
    reason: str | None


class BulkStep(Answer):
    """A part of many executions told; `next` is to go on with, null when all are. A dry run has a `count` alone."""

    model_config = exemplified(Answer, {
        "count": None, "exact": None, "counts": {"DONE": 1},
        "executions": [{"id": AN_ID, "outcome": "DONE", "reason": None}], "next": None,
    })  # fmt: skip

    count: int | None = Field(description="How many there are, in a dry run; counted up to ten thousand.")
    exact: bool | None = Field(description="False where there are more than were counted.")
    counts: dict[BulkOutcome, int]
    executions: list[ExecutionProgress]
    next: str | None


@routes.post("/cancel", Right.EXECUTE, response_model=BulkStep)
async def cancel_executions(call: Caller, body: CancelManyBody) -> dict[str, Any]:
    """Stop executions that are not over, the oldest first, one step of at most 20 s; go on with `next` as `cursor`."""

    async def tell(execution: str) -> bool:
        return await call.service.cancel(execution, call.actor.subject, body.reason)

    return await _step(call, body, BulkVerb.CANCEL, tell)


@routes.post("/retry", Right.EXECUTE, response_model=BulkStep)
async def retry_executions(call: Caller, body: ChosenBody) -> dict[str, Any]:
    """Try executions that failed or timed out again, the oldest first, one step of at most 20 s."""

    async def tell(execution: str) -> bool:
        return await call.service.retry(execution, call.actor.subject)

    return await _step(call, body, BulkVerb.RETRY, tell)


async def _step(call: Call, body: ChosenBody, verb: BulkVerb, tell: Tell) -> dict[str, Any]:
    wanted = await _wanted(call, body)
    execution_bulk.narrowed(verb, wanted)
    reader = scan_reader(call.backend.store)
    if body.dry_run:
        count = await execution_bulk.count(reader, call.workspace, verb, wanted)
        return _answer() | {"count": count, "exact": count < MOST_COUNTED}
    listing = call.listing(verb, wanted)
    after, last = "", ""
    if body.cursor is None:
        last = await execution_bulk.newest(reader, call.workspace)
    else:
        after, last = call.backend.cursors.read(listing, body.cursor)
    steps = execution_bulk.tell_all(
        reader, call.workspace, verb, wanted, tell, last=last, after=after, limit=body.limit, seconds=STEP_SECONDS
    )
    told = [each async for each in steps]
    after = max((each.execution for each in told), default=after)
    rest = await execution_bulk.chosen(reader, call.workspace, verb, wanted, last=last, after=after, limit=1)
    going_on = call.backend.cursors.write(listing, [after, last]) if rest else None
    return _answer(told, may_read=Right.READ_PAYLOADS in call.rights) | {"next": going_on}


def _answer(told: list[BulkProgress] = [], *, may_read: bool = True) -> dict[str, Any]:  # noqa: B006 -- not changed
    return {
        "count": None,
        "exact": None,
        "counts": dict(Counter(each.outcome for each in told)),
        "executions": [_progress(each, may_read) for each in told],
        "next": None,
    }


def _progress(each: BulkProgress, may_read: bool) -> dict[str, Any]:
    about = {"id": each.execution, "outcome": each.outcome, "reason": each.reason}
    return payloads.shown(about, payloads.EXECUTION_PROGRESS, may_read=may_read)


async def _wanted(call: Call, body: ChosenBody) -> Filter:
    given = (body.workflow_id, body.state, body.trigger, body.since, body.until, body.search)
    if not (any(given) or body.waiting or body.all):
        raise InvalidInput([Problem(("all",), "say which executions are meant, or that all of the workspace are")])
    if body.workflow_id is None:
        call.require()
    wanted = Filter(
        await call.chosen(body.workflow_id),
        body.state,
        body.trigger,
        0 if body.since is None else micros(body.since, "from"),
        ANY.until if body.until is None else micros(body.until, "to"),
        search=body.search,
        is_waiting=body.waiting,
    )
    return await filtered(call, wanted)
