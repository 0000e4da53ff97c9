"""Lists that are read page by page, and what narrows them: the same words as the client has for a server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from ropewalk.core.errors import InvalidInput, NotFound, Problem
from ropewalk.core.instant import EPOCH
from ropewalk.service import Service
from ropewalk.store import workflows

PAGE: Final = 200
Json = dict[str, Any]
Word = TypeVar("Word", bound=StrEnum)


async def paged(
    read: Callable[[Any, int], Awaitable[list[Json]]], place: Any, limit: int | None, place_of: Callable[[Json], Any]
) -> AsyncIterator[Any]:
    """One item after the other, at most `limit`; `read` gives a page after a place, `place_of` the place of an item."""
    left = limit
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        found = await read(place, size)
        for each in found:
            yield each
        if len(found) < size:
            return
        place, left = place_of(found[-1]), None if left is None else left - size


def id_of(each: Json) -> Any:
    """The place of an item in a list that goes by ids."""
    return each["id"]


async def workflow_of(service: Service, name: str) -> workflows.Workflow:
    """The workflow of this id or name."""
    found = await workflows.find(service.store, service.workspace, name)
    if found is None:
        raise NotFound(f"there is no workflow {name!r}")
    return found


async def id_of_workflow(service: Service, name: str | None) -> str | None:
    """The id of the workflow a list is narrowed to, if it is."""
    return None if name is None else (await workflow_of(service, name)).id


def word(kind: type[Word], value: str | None, field: str) -> Word | None:
    """One of a closed set of words; None is any of them."""
    try:
        return None if value is None else kind(value)
    except ValueError as error:
        raise InvalidInput([Problem((field,), f"must be one of {', '.join(kind)}, not {value!r}")]) from error


def micros(text: str | None, field: str, otherwise: int) -> int:
    """A moment in µs since the epoch."""
    if text is None:
        return otherwise
    try:
        return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInput([Problem((field,), "must be a moment with a zone, like 2026-11-16T08:00:00Z")]) from error
