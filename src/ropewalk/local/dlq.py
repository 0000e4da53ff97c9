"""Dead letters of a store that this process executes on: look through them, work them off."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ropewalk.core.canonical import JSON
from ropewalk.core.state import Resolution
from ropewalk.local.listing import Json, id_of, id_of_workflow, micros, paged, word
from ropewalk.service import Service, dead_letters, reading
from ropewalk.service.dead_letter_bulk import Outcome, Pace, Progress
from ropewalk.store import dlq

if TYPE_CHECKING:
    from ropewalk.client.answers import DeadLetter, DeadLetterGroup, DeadLetterProgress


class DeadLetterVerbs:
    """What can be done about runs that gave up. A letter is resolved once: Conflict for a caller that comes second."""

    service: Service

    async def dead_letters(self, resolution: str | None = "PENDING", *, execution: str | None = None,
                           workflow: str | None = None, node: str | None = None, fingerprint: str | None = None,
                           since: str | None = None, until: str | None = None,
                           limit: int | None = None) -> "AsyncIterator[DeadLetter]":  # fmt: skip
        """Dead letters, the newest first; `workflow` is an id or a name, times are RFC 3339, None is any resolution."""
        store, workspace = self.service.store, self.service.workspace
        wanted = dlq.Search(
            resolution=word(Resolution, resolution, "resolution"),
            execution=execution,
            fingerprint=fingerprint,
            workflow=await id_of_workflow(self.service, workflow),
            node=node,
            since=micros(since, "since", 0),
            until=micros(until, "until", dlq.Search().until),
        )

        async def read(before: str, size: int) -> list[Json]:
            return await reading.find_dead_letters(store, workspace, wanted, before=before, limit=size)

        async for each in paged(read, dlq.NEWEST, limit, id_of):
            yield each

    async def dead_letter_groups(self, limit: int | None = None) -> "AsyncIterator[DeadLetterGroup]":
        """What failed alike, the most frequent first."""
        store, workspace = self.service.store, self.service.workspace

        async def read(after: dlq.GroupCursor, size: int) -> list[Json]:
            return await dead_letters.groups(store, workspace, after, size)

        async for each in paged(read, dlq.FIRST_GROUP, limit, _place_of_group):
            yield each

    async def dead_letter(self, letter: str) -> "DeadLetter":
        """One dead letter."""
        return cast("DeadLetter", await reading.get_dead_letter(self.service.store, self.service.workspace, letter))

    async def requeue(self, letter: str, overrides: Mapping[str, JSON] | None = None) -> str:
        """Try it again, with other inputs if wanted; the id of its execution, which goes on."""
        return await self.service.requeue(letter, None if overrides is None else dict(overrides))

    async def fix(self, letter: str, output: JSON, ports: Sequence[str] = ()) -> str:
        """Supply the output it failed to give; the id of its execution, which goes on."""
        return await self.service.fix(letter, output, ports=tuple(ports))

    async def discard(self, letter: str, notes: str | None = None) -> "DeadLetter":
        """Close it without doing anything about it."""
        await self.service.discard(letter, notes=notes)
        return await self.dead_letter(letter)

    async def note(self, letter: str, text: str) -> "DeadLetter":
        """Say something about it, for the next person who looks at it."""
        await self.service.note(letter, text)
        return await self.dead_letter(letter)

    # Many

    async def requeue_all(self, fingerprint: str, *, rate: float | None = None, stop_after_failures: int | None = None,
                          limit: int | None = None) -> "AsyncIterator[DeadLetterProgress]":  # fmt: skip
        """Try all that failed alike again, the oldest first, at most `rate` a second; what becomes of each.

        After so many that failed again, the last word is STOPPED.
        """
        wanted, letters = dlq.Wanted(fingerprint=fingerprint), self.service.dead_letters
        pace = Pace(rate=rate, stop_after_failures=stop_after_failures, limit=limit)
        async for each in letters.requeue_all(wanted, pace):
            yield _progress(each)

    async def discard_all(self, fingerprint: str, notes: str | None = None, *,
                          limit: int | None = None) -> "AsyncIterator[DeadLetterProgress]":  # fmt: skip
        """Close all that failed alike; what becomes of each."""
        wanted = dlq.Wanted(fingerprint=fingerprint)
        async for each in self.service.dead_letters.discard_all(wanted, notes=notes, limit=limit):
            yield _progress(each)


def _place_of_group(group: Json) -> dlq.GroupCursor:
    return dlq.GroupCursor(group["count"], group["fingerprint"])


def _progress(each: Progress) -> Any:
    """One step as JSON; the last one, STOPPED, is about no letter in particular."""
    is_end = each.outcome is Outcome.STOPPED
    letter, execution = (None, None) if is_end else (each.letter, each.execution)
    return {"id": letter, "executionId": execution, "outcome": str(each.outcome), "reason": each.reason}
