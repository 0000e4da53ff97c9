"""Many executions told the same, one after the other: each is a decision of its own, made by the ordinary verb.

Parents go before their children, which follow them by themselves. What was accepted after the beginning is left alone.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.errors import Conflict, InvalidInput, InvalidTransition, NotFound, Problem, Unreadable
from ropewalk.core.state import ExecutionState
from ropewalk.store import executions
from ropewalk.store.access import Reader
from ropewalk.store.executions import MOST_COUNTED, Execution, Filter

PAGE: Final = 100
AT_ONCE: Final = 16
"""How many are told side by side: each waits for its owner, or for a commit that several share."""


class BulkVerb(StrEnum):
    """What many executions can be told at once."""

    CANCEL = "cancel"
    RETRY = "retry"


STATES: Final = {
    BulkVerb.CANCEL: (ExecutionState.PENDING, ExecutionState.RUNNING, ExecutionState.PAUSED),
    BulkVerb.RETRY: (ExecutionState.FAILED, ExecutionState.TIMEOUT),
}
"""In which states a verb means something."""


class BulkOutcome(StrEnum):
    """DONE was told; SKIPPED had changed by itself meanwhile; REFUSED cannot be told."""

    DONE = "DONE"
    SKIPPED = "SKIPPED"
    REFUSED = "REFUSED"


class BulkProgress(Struct, frozen=True):
    """What became of one execution."""

    execution: str
    outcome: BulkOutcome
    reason: str | None = None


Tell = Callable[[str], Awaitable[bool]]
"""Tells one execution; whether that changed anything."""


def narrowed(verb: BulkVerb, wanted: Filter) -> list[Filter]:
    """The same for each state in which the verb means something; a state in which it does not is refused."""
    states = STATES[verb]
    if wanted.state is None:
        return [replace(wanted, state=each) for each in states]
    if wanted.state not in states:
        raise InvalidInput([Problem(("state",), f"of what is to {verb} must be one of {', '.join(states)}")])
    return [wanted]


async def count(reader: Reader, workspace: str, verb: BulkVerb, wanted: Filter) -> int:
    """How many would be told, counted no further than MOST_COUNTED."""
    found = [await executions.counted(reader, workspace, each) for each in narrowed(verb, wanted)]
    return min(MOST_COUNTED, sum(found))


async def newest(reader: Reader, workspace: str) -> str:
    """The execution accepted last, so that later ones are left alone."""
    found = await executions.listed(reader, workspace, limit=1)
    return found[0].id if found else ""


async def tell_all(reader: Reader, workspace: str, verb: BulkVerb, wanted: Filter, tell: Tell, *, last: str,
                   after: str = "", limit: int | None = None,
                   seconds: float | None = None) -> AsyncIterator[BulkProgress]:  # fmt: skip
    """Tell these executions, the oldest first, up to `last`; no page is begun after so many seconds."""
    loop = asyncio.get_running_loop()
    end, left = None if seconds is None else loop.time() + seconds, limit
    while left != 0 and (end is None or loop.time() < end):
        size = PAGE if left is None else min(PAGE, left)
        page = await chosen(reader, workspace, verb, wanted, last=last, after=after, limit=size)
        for some in _in_groups(page):
            for done in await asyncio.gather(*(_told(each.id, tell) for each in some)):
                yield done
        if len(page) < size:
            return
        after, left = page[-1].id, None if left is None else left - len(page)


async def chosen(reader: Reader, workspace: str, verb: BulkVerb, wanted: Filter, *, last: str, after: str,
                 limit: int) -> list[Execution]:  # fmt: skip
    """The oldest executions after an id."""
    found = [
        row
        for each in narrowed(verb, wanted)
        for row in await executions.first(reader, workspace, each, after=after, before=f"{last}~", limit=limit)
    ]
    return sorted(found, key=lambda row: row.id)[:limit]


def _in_groups(page: list[Execution]) -> list[list[Execution]]:
    """The executions to be told side by side; none is together with, or before, its parent."""
    groups: list[list[Execution]] = []
    for is_child in (False, True):
        some = [each for each in page if (each.parent is not None) is is_child]
        size = 1 if is_child else AT_ONCE
        groups += [some[first : first + size] for first in range(0, len(some), size)]
    return groups


async def _told(execution: str, tell: Tell) -> BulkProgress:
    """Tell one execution; a refusal of one does not stop the others."""
    try:
        changed = await tell(execution)
    except (InvalidTransition, Conflict, NotFound) as error:
        return BulkProgress(execution, BulkOutcome.SKIPPED, str(error))
    except Unreadable as error:
        return BulkProgress(execution, BulkOutcome.REFUSED, str(error))
    return BulkProgress(execution, BulkOutcome.DONE if changed else BulkOutcome.SKIPPED)
