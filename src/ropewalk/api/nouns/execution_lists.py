"""Executions over HTTP, many at once: listed and counted by the same filters."""

from typing import Annotated, Any, Final

from fastapi import Query
from msgspec.structs import replace

from ropewalk.access.rights import Right
from ropewalk.api.doors.authorization import Call
from ropewalk.api.nouns.executions import ID
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, ChosenWorkflow, Cursor, IdPart, Limit, Page, exemplified, page
from ropewalk.api.shapes.executions import ExecutionSummary
from ropewalk.api.shapes.moments import From, To, span
from ropewalk.core.state import ExecutionState, TriggerType
from ropewalk.service import payloads, reading
from ropewalk.service.reading.approvals import with_waits
from ropewalk.service.reading.scans import scan_reader
from ropewalk.store import executions
from ropewalk.store.executions import ANY, MOST_COUNTED, NEWEST, Filter

routes = Routes("/workflow/executions", "Executions")

LONGEST_SEARCH: Final = 200
Search = Annotated[
    str | None,
    Query(min_length=1, max_length=LONGEST_SEARCH, pattern=r"^[^\x00]+$",
          description="A text in the id or the name of the workflow; for readers of payloads, also in the error or the "
                      "concurrency key."),
]  # fmt: skip
Waiting = Annotated[bool, Query(description="Only those not over of which a node waits; `waitingFor` says for what.")]
Before = Annotated[str | None, Query(max_length=64, pattern=ID, description="Only those older than this one.")]


class Count(Answer):
    """How many there are; `exact` is false where there are more than were counted."""

    model_config = exemplified(Answer, {"count": 143, "exact": True})

    count: int
    exact: bool


@routes.get("", Right.READ, response_model=Page[ExecutionSummary])
async def list_executions(
    call: Caller,
    workflow_id: ChosenWorkflow = None,
    state: ExecutionState | None = None,
    trigger: TriggerType | None = None,
    since: From = None,
    until: To = None,
    id_part: IdPart = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    search: Search = None,
    waiting: Waiting = False,
    before: Before = None,
) -> dict[str, Any]:
    """Executions by the time they were accepted, newest first."""
    workflow, (begin, end) = await call.chosen(workflow_id), span(since, until, ANY.until)
    listing = call.listing("executions", workflow, state, trigger, begin, end, search, waiting, before, id_part)
    place = (before or NEWEST) if cursor is None else call.backend.cursors.read(listing, cursor)
    about = Filter(workflow, state, trigger, begin, end, search=search, is_waiting=waiting, id_part=id_part)
    wanted = await filtered(call, about)
    store = call.backend.store
    reader = store if wanted == ANY else scan_reader(store)
    found = await reading.list_executions(reader, call.workspace, wanted, before=place, limit=limit)
    if waiting:
        found = await with_waits(store, found)
    shown = [
        payloads.shown(each, payloads.EXECUTION, may_read=await call.may_read(each["workflowId"])) for each in found
    ]
    return page(call.backend.cursors, listing, shown, limit, found[-1]["id"] if found else None)


# Beside the list: below it, a path segment that is no verb is the id of an execution.
@routes.get("-count", Right.READ, response_model=Count)
async def count_executions(
    call: Caller,
    workflow_id: ChosenWorkflow = None,
    state: ExecutionState | None = None,
    trigger: TriggerType | None = None,
    since: From = None,
    until: To = None,
    search: Search = None,
    waiting: Waiting = False,
    before: Before = None,
) -> dict[str, Any]:
    """How many executions the list with the same filters has; counted up to ten thousand."""
    workflow, (begin, end) = await call.chosen(workflow_id), span(since, until, ANY.until)
    wanted = await filtered(call, Filter(workflow, state, trigger, begin, end, search=search, is_waiting=waiting))
    found = await executions.counted(scan_reader(call.backend.store), call.workspace, wanted, before=before or NEWEST)
    return {"count": found, "exact": found < MOST_COUNTED}


async def filtered(call: Call, wanted: Filter) -> Filter:
    """The same, narrowed to what the caller may see, and searched no further than they may read."""
    shared = await call.shared_workflows()
    # Where nothing is searched for, it makes no difference; the plain list is then asked in the plain way.
    reads = wanted.search is None or Right.READ_PAYLOADS in call.rights
    return replace(wanted, among=None if shared is None else tuple(shared), reads_payloads=reads)
