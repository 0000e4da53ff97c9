"""The audit log over HTTP: who did what to what."""

from typing import Annotated, Any, Final

from fastapi import Query

from ropewalk.access.rights import Right
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Cursor, Limit, Page, exemplified, page
from ropewalk.api.shapes.executions import A_MOMENT, AN_ID, ANOTHER_ID
from ropewalk.core.instant import rfc3339
from ropewalk.service import payloads
from ropewalk.service.reading.scans import scan_reader
from ropewalk.store import audit
from ropewalk.store.rows import AuditEntry

routes = Routes("/activity", "Activity")

TEXT: Final = r"^[^\x00]+$"
Words = Annotated[str | None, Query(max_length=255, pattern=TEXT)]


class Activity(Answer):
    """Something that was done, by whom, to what."""

    model_config = exemplified(Answer, {
        "id": AN_ID, "at": A_MOMENT, "actor": "user:ann", "verb": "cancel", "object": ANOTHER_ID, "before": None,
        "after": None, "detail": None,
    })  # fmt: skip

    id: str
    at: str
    actor: str
    verb: str
    object: str
    before: str | None
    after: str | None
    detail: str | None


@routes.get("", Right.ADMINISTER, response_model=Page[Activity])
async def list_activity(
    call: Caller,
    actor: Words = None,
    verb: Words = None,
    about: Annotated[str | None, Query(alias="object", max_length=1_024, pattern=TEXT)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """What was done in the workspace, newest first."""
    call.require()
    listing = call.listing("activity", actor, verb, about)
    before = audit.NEWEST if cursor is None else call.backend.cursors.read(listing, cursor)
    wanted = audit.Filter(actor=actor, verb=verb, object=about)
    found = await audit.listed(scan_reader(call.backend.store), call.workspace, wanted, before=before, limit=limit)
    may_read = Right.READ_PAYLOADS in call.rights
    shown = [payloads.shown_activity(_activity(each), may_read=may_read) for each in found]
    return page(call.backend.cursors, listing, shown, limit, found[-1].id if found else None)


def _activity(entry: AuditEntry) -> dict[str, Any]:
    shown = entry._asdict()
    del shown["workspace"]
    return {**shown, "at": rfc3339(entry.at)}
