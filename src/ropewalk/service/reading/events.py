"""The log of an execution as people read it."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import islice
from typing import Final

from ropewalk.core import log
from ropewalk.core.errors import NotFound, reading_of
from ropewalk.core.outline import IsWanted, everything, nothing, numbered
from ropewalk.service.reading.recorded import (
    Json,
)
from ropewalk.store import log as stored_log
from ropewalk.store.access import Reader

ALL: Final = 2**62
PAGE_BYTES: Final = 8 * 2**20
"""How much one page of events has at the most, but for the last event on it."""


async def list_events(reader: Reader, execution: str, after: int = 0, limit: int | None = None) -> list[Json]:
    """The log as callers see it: one envelope per event."""
    return [event async for event, _ in _envelopes(reader, execution, after, limit or ALL)]


async def page_of_events(
    reader: Reader, execution: str, after: int, limit: int, *, values: bool
) -> tuple[list[Json], bool]:
    """Some of them, and whether there may be more: a page ends at `limit`, or when it has some megabytes.

    Without `values` the larger ones among what was given and made are null; a caller who may not see those has no
    need of the smaller ones either.
    """
    found: list[Json] = []
    weight = 0
    envelopes = _envelopes(reader, execution, after, limit, everything if values else nothing)
    async with aclosing(envelopes):
        async for event, size in envelopes:
            found.append(event)
            weight += size if values else 0
            if weight >= PAGE_BYTES:
                return found, True
    return found, len(found) == limit


async def _envelopes(
    reader: Reader, execution: str, after: int, limit: int, is_wanted: IsWanted = everything
) -> AsyncGenerator[tuple[Json, int], None]:
    """At most so many events after this number, with their sizes; a log may be long, and a page is short."""
    left = limit
    async for page in stored_log.pages(reader, execution, start=after + 1, most=min(limit, stored_log.PAGE_ENTRIES)):
        for entry in page:
            with reading_of(execution):
                for seq, size, event in islice(numbered(entry, after + 1, is_wanted), left):
                    left -= 1
                    yield log.envelope(execution, seq, event), size
            if not left:
                return
        del entry  # a long one is not kept while the next is read
    if left == limit and after == 0:
        raise NotFound(f"there is no execution {execution}")
