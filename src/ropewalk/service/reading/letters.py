"""Dead letters as people read them."""

from typing import Any

import msgspec

from ropewalk.core.errors import NotFound
from ropewalk.core.instant import moment, rfc3339
from ropewalk.core.state import Resolution
from ropewalk.service.reading.recorded import Json
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
    return [letter_of(row) for row in await dlq.search(reader, workspace, wanted, before=before, limit=limit)]


async def get_dead_letter(reader: Reader, workspace: str, letter: str) -> Json:
    found = await dlq.get(reader, workspace, letter)
    if found is None:
        raise NotFound(f"there is no dead letter {letter}")
    return letter_of(found)


def letter_of(letter: dlq.DeadLetter) -> Json:
    """A dead letter with everything that is known of it."""
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
