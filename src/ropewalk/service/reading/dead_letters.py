"""Dead letters as people read them."""

from typing import Any

import msgspec

from ropewalk.core.errors import NotFound, RunError, Unreadable
from ropewalk.core.events import ItemFailed, NodeFailed, RunFailed
from ropewalk.core.instant import moment, rfc3339
from ropewalk.core.state import Resolution
from ropewalk.service.reading.recorded import Json, Recorded, error_of, outlined
from ropewalk.store import dlq
from ropewalk.store.access import Reader


async def list_dead_letters(
    reader: Reader, workspace: str, resolution: Resolution, fingerprint: str | None = None, limit: int = 50
) -> list[Json]:
    """The dead letters of a workspace in one state, newest first."""
    wanted = dlq.Search(resolution=resolution, fingerprint=fingerprint)
    return await find_dead_letters(reader, workspace, wanted, limit=limit)


async def find_dead_letters(
    reader: Reader, workspace: str, wanted: dlq.Search, *, before: str = dlq.NEWEST, limit: int = 50
) -> list[Json]:
    """The dead letters that fit, newest first; the last id is the cursor to go on."""
    return [dead_letter_of(row) for row in await dlq.search(reader, workspace, wanted, before=before, limit=limit)]


async def get_dead_letter(reader: Reader, workspace: str, letter: str) -> Json:
    found = await dlq.get(reader, workspace, letter)
    if found is None:
        raise NotFound(f"there is no dead letter {letter}")
    return await dead_letter_in_detail(reader, found)


async def dead_letter_in_detail(reader: Reader, letter: dlq.DeadLetter) -> Json:
    """A dead letter with what its run told beyond its message, as far as the log can still be read."""
    try:
        story = await outlined(reader, letter.execution)
    except (NotFound, Unreadable):
        return dead_letter_of(letter)
    return dead_letter_of(letter, _error_of(story, letter))


def _error_of(story: Recorded, letter: dlq.DeadLetter) -> RunError | None:
    about = (letter.node, letter.item, letter.attempt)
    for event in reversed(story.events):
        if isinstance(event, NodeFailed | ItemFailed | RunFailed) and _place(event) == about:
            return event.error
    return None


def _place(event: NodeFailed | ItemFailed | RunFailed) -> tuple[str, int | None, int]:
    return event.node, None if isinstance(event, NodeFailed) else event.item, event.attempt


def dead_letter_of(letter: dlq.DeadLetter, error: RunError | None = None) -> Json:
    """A dead letter as its row tells it, and what is known of its error beyond that."""
    return {
        "id": letter.id,
        "executionId": letter.execution,
        "workflowId": letter.workflow,
        "runId": letter.run,
        "node": letter.node,
        "item": letter.item,
        "attempt": letter.attempt,
        "failureType": letter.failure_type,
        "errorType": letter.error_type,
        "reason": letter.reason,
        **error_of(error),
        "fingerprint": letter.fingerprint,
        "inputs": _json(letter.inputs),
        "inputsReference": _json(letter.inputs_blob),
        "config": _json(letter.config),
        "createdAt": rfc3339(letter.created_at),
        "resolution": letter.resolution,
        "resolvedAt": moment(letter.resolved_at),
        "reviewedBy": letter.reviewed_by,
        "notes": letter.notes,
    }


def _json(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
