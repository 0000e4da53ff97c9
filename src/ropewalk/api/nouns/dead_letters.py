"""Dead letters over HTTP: runs that gave up, kept for a person to decide.

Each decision is made once: the second caller is told 409. Many letters are worked off in steps: a call takes up the
oldest for at most twenty seconds, watches those it took up for five more where failures are counted, says what became
of each, and gives a cursor to go on with. Nothing goes on behind the client's back, and what came to lie there after
the first step is left alone.
"""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.doors.authorization import Call
from ropewalk.api.nouns.executions import ID, NodeName
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Body, ChosenWorkflow, Cursor, IdPart, Limit, Page, exemplified, page
from ropewalk.api.shapes.dead_letters import DeadLetter, DeadLetterGroup, Requeued, Step
from ropewalk.api.shapes.moments import From, To, span
from ropewalk.core.state import Resolution
from ropewalk.service import dead_letters, payloads, reading
from ropewalk.service.dead_letter_bulk import Bounds, Outcome, Pace, Progress
from ropewalk.service.dead_letters import LONGEST_NOTE
from ropewalk.service.reach import require_no_wider
from ropewalk.service.reading.scans import scan_reader
from ropewalk.store import dlq

routes = Routes("/workflow/dead-letters", "Dead letters")

STEP_SECONDS: Final = 20.0
FINGERPRINT: Final = r"^[0-9a-f]{1,64}$"

LetterId = Annotated[str, Path(alias="letterId", max_length=64, pattern=ID)]


class RequeueBody(Body):
    """Other values for some of the inputs, by name."""

    model_config = exemplified(Body, {"overrides": {"url": "https://other.example/refunds"}})

    overrides: dict[str, Any] | None = None


class FixBody(Body):
    """What the node should have given, and by which ways out."""

    model_config = exemplified(Body, {"output": {"refunded": True}})

    output: Any
    ports: list[Annotated[str, Field(min_length=1, max_length=64)]] = Field(default_factory=list, max_length=100)


class DiscardBody(Body):
    """Why it is closed, if the caller says so."""

    model_config = exemplified(Body, {"notes": "paid by hand"})

    notes: str | None = Field(None, min_length=1, max_length=LONGEST_NOTE)


class NoteBody(Body):
    """The text of the note."""

    model_config = exemplified(Body, {"text": "asked the bank"})

    text: str = Field(min_length=1, max_length=LONGEST_NOTE)


class _Many(Body):
    fingerprint: str = Field(pattern=FINGERPRINT)
    limit: int = Field(100, ge=1, le=200, description="How many letters this call may take up.")
    cursor: str | None = Field(None, max_length=1_024, description="`next` of the step before.")


class RequeueManyBody(_Many):
    """Which to try again, how fast (per second), and after how many that fail again it is enough."""

    model_config = exemplified(Body, {"fingerprint": "5d8e0936f1c4a7b2", "rate": 5, "stopAfterFailures": 3})

    rate: float | None = Field(None, ge=0.001, le=1_000, strict=False)
    stop_after_failures: int | None = Field(None, ge=1, le=1_000_000)


class DiscardManyBody(_Many):
    """Which to close, and why."""

    model_config = exemplified(Body, {"fingerprint": "5d8e0936f1c4a7b2", "notes": "the order is void"})

    notes: str | None = Field(None, min_length=1, max_length=LONGEST_NOTE)


# Reading


@routes.get("", Right.READ, response_model=Page[DeadLetter])
async def list_dead_letters(
    call: Caller,
    resolution: Resolution | None = None,
    execution_id: Annotated[str | None, Query(alias="executionId", max_length=64, pattern=ID)] = None,
    workflow_id: ChosenWorkflow = None,
    node: NodeName = None,
    fingerprint: Annotated[str | None, Query(pattern=FINGERPRINT)] = None,
    since: From = None,
    until: To = None,
    id_part: IdPart = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Dead letters by the time they gave up, newest first."""
    workflow, (begin, end) = await call.chosen(workflow_id), span(since, until, dlq.Search().until)
    filters = (resolution, execution_id, workflow, node, fingerprint, begin, end, *filter(None, [id_part]))
    listing = call.listing("dead-letters", *filters)
    before = dlq.NEWEST if cursor is None else call.backend.cursors.read(listing, cursor)
    shared = await call.shared_workflows()
    wanted = dlq.Search(
        resolution=resolution,
        execution=execution_id,
        fingerprint=fingerprint,
        workflow=workflow,
        node=node,
        since=begin,
        until=end,
        among=None if shared is None else tuple(shared),
        id_part=id_part,
    )
    reader = scan_reader(call.backend.store)
    found = await reading.find_dead_letters(reader, call.workspace, wanted, before=before, limit=limit)
    shown = [await _shown(call, each) for each in found]
    return page(call.backend.cursors, listing, shown, limit, found[-1]["id"] if found else None)


async def _shown(call: Call, letter: dict[str, Any]) -> dict[str, Any]:
    return payloads.marked(letter, payloads.DEAD_LETTER, may_read=await call.may_read(letter["workflowId"]))


@routes.get("/groups", Right.READ, response_model=Page[DeadLetterGroup])
async def list_dead_letter_groups(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> dict[str, Any]:
    """What lies unresolved, gathered by what failed alike, the most frequent first."""
    listing = call.listing("dead-letter-groups")
    place = None if cursor is None else call.backend.cursors.read(listing, cursor)
    after = dlq.FIRST_GROUP if place is None else dlq.GroupCursor(*place)
    reader, shared = scan_reader(call.backend.store), await call.shared_workflows()
    found = await dead_letters.groups(reader, call.workspace, after, limit, shared)
    last = [found[-1]["count"], found[-1]["fingerprint"]] if found else None
    shown = [payloads.shown(each, payloads.GROUP, may_read=await call.may_read(each["workflowId"])) for each in found]
    return page(call.backend.cursors, listing, shown, limit, last)


@routes.get("/{letterId}", Right.READ, response_model=DeadLetter)
async def get_dead_letter(call: Caller, letter_id: LetterId) -> dict[str, Any]:
    """One dead letter with everything that is known of it."""
    return await _shown(
        call, await reading.dead_letter_in_detail(call.backend.store, await call.dead_letter(letter_id))
    )


# One dead letter


@routes.post("/{letterId}/requeue", Right.EXECUTE, status_code=202, response_model=Requeued, problems=(409,))
async def requeue_dead_letter(call: Caller, letter_id: LetterId, body: RequeueBody | None = None) -> dict[str, Any]:
    """Try a dead letter again, with other inputs if wanted; its execution goes on."""
    letter = await call.dead_letter(letter_id)
    overrides = None if body is None else body.overrides
    if overrides:
        await require_no_wider(call.service, letter.execution, call.bounded_by)
    return {"id": letter_id, "executionId": await call.service.requeue(letter_id, overrides, call.actor.subject)}


@routes.post("/{letterId}/fix", Right.EXECUTE, status_code=202, response_model=Requeued, problems=(409,))
async def fix_dead_letter(call: Caller, letter_id: LetterId, body: FixBody) -> dict[str, Any]:
    """Supply the output a dead letter failed to give; its execution goes on."""
    letter = await call.dead_letter(letter_id)
    await require_no_wider(call.service, letter.execution, call.bounded_by)
    execution = await call.service.fix(letter_id, body.output, call.actor.subject, tuple(body.ports))
    return {"id": letter_id, "executionId": execution}


@routes.post("/{letterId}/discard", Right.EXECUTE, response_model=DeadLetter, problems=(409,))
async def discard_dead_letter(call: Caller, letter_id: LetterId, body: DiscardBody | None = None) -> dict[str, Any]:
    """Close a dead letter without doing anything about it."""
    await call.dead_letter(letter_id)
    await call.service.discard(letter_id, call.actor.subject, None if body is None else body.notes)
    return await get_dead_letter(call, letter_id)


@routes.post("/{letterId}/notes", Right.EXECUTE, response_model=DeadLetter)
async def note_dead_letter(call: Caller, letter_id: LetterId, body: NoteBody) -> dict[str, Any]:
    """Add a note to a dead letter, resolved or not; its author and time are kept with it."""
    await call.dead_letter(letter_id)
    await call.service.note(letter_id, body.text, call.actor.subject)
    return await get_dead_letter(call, letter_id)


# Many dead letters


@routes.post("/requeue", Right.EXECUTE, response_model=Step, problems=(409,))
async def requeue_dead_letters(call: Caller, body: RequeueManyBody) -> dict[str, Any]:
    """Try letters that failed alike again, the oldest first, at a pace and until enough have failed again.

    One step of it: at most 20 s of taking letters up, and 5 s more of watching them where failures are counted; what
    fails later is not counted. Go on with `next` as `cursor`; letters that came after the first step are left alone.
    """
    bounds = await _bounds(call, body, "requeue")
    pace = Pace(rate=body.rate, stop_after_failures=body.stop_after_failures, limit=body.limit)
    wanted = dlq.Wanted(fingerprint=body.fingerprint)
    steps = call.service.dead_letters.requeue_all(wanted, pace, call.actor.subject, bounds)
    return await _step(call, body, "requeue", bounds, steps)


@routes.post("/discard", Right.EXECUTE, response_model=Step, problems=(409,))
async def discard_dead_letters(call: Caller, body: DiscardManyBody) -> dict[str, Any]:
    """Close letters that failed alike, the oldest first.

    One step of it, of at most 20 s. Go on with `next` as `cursor`; letters that came later are left alone.
    """
    bounds = await _bounds(call, body, "discard")
    wanted = dlq.Wanted(fingerprint=body.fingerprint)
    steps = call.service.dead_letters.discard_all(wanted, call.actor.subject, body.notes, body.limit, bounds)
    return await _step(call, body, "discard", bounds, steps)


async def _bounds(call: Call, body: _Many, verb: str) -> Bounds:
    """Where this step begins. What failed alike is of one workflow, so one letter says whether it may be touched."""
    await call.allow(await _workflow(call, body))
    if body.cursor is None:
        return Bounds(last=await call.service.dead_letters.newest() or "", seconds=STEP_SECONDS)
    after, last, failures = call.backend.cursors.read(_listing(call, body, verb), body.cursor)
    return Bounds(after=after, last=last, failures=failures, seconds=STEP_SECONDS)


async def _workflow(call: Call, body: _Many) -> str:
    """The workflow of what failed alike; none has this name where there is no letter, so no answer tells that."""
    alike = await dlq.listed(call.backend.store, call.workspace, fingerprint=body.fingerprint, limit=1)
    return alike[0].workflow if alike else ""


def _listing(call: Call, body: _Many, verb: str) -> str:
    return call.listing(verb, body.fingerprint)


async def _step(call: Call, body: _Many, verb: str, bounds: Bounds, steps: AsyncIterator[Progress]) -> dict[str, Any]:
    told = [each async for each in steps]
    taken = [each for each in told if each.outcome not in (Outcome.FAILED, Outcome.STOPPED)]
    counts = Counter(each.outcome for each in told)
    is_stopped = counts.pop(Outcome.STOPPED, 0) > 0
    after = taken[-1].letter if taken else bounds.after
    place = [after, bounds.last, bounds.failures + counts[Outcome.FAILED]]
    has_more = not is_stopped and await _has_more(call, body, after, bounds)
    may_read = await call.may_read(await _workflow(call, body))
    letters = [_progress(each, may_read) for each in told if each.outcome is not Outcome.STOPPED]
    return {
        "counts": {outcome: count for outcome, count in counts.items() if count},
        "letters": letters,
        "stopped": is_stopped,
        "next": call.backend.cursors.write(_listing(call, body, verb), place) if has_more else None,
    }


async def _has_more(call: Call, body: _Many, after: str, bounds: Bounds) -> bool:
    wanted = dlq.Wanted(fingerprint=body.fingerprint)
    about = (call.backend.store, call.workspace, wanted)
    return bool(await dlq.pending(*about, after=after, last=bounds.last or "", limit=1))


def _progress(each: Progress, may_read: bool) -> dict[str, Any]:
    about = {"id": each.letter, "executionId": each.execution, "outcome": each.outcome, "reason": each.reason}
    return payloads.shown(about, payloads.DEAD_LETTER_PROGRESS, may_read=may_read)
