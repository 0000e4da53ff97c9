"""Ids as people type them: the beginning or the end of one, or `last`."""

from collections.abc import AsyncIterator
from typing import Final

from ropewalk.cli.session import WORKSPACE
from ropewalk.core.errors import Conflict, NotFound
from ropewalk.core.state import Resolution
from ropewalk.store import dlq, executions
from ropewalk.store.access import Reader

WHOLE: Final = 36
FEWEST: Final = 3
MOST_LOOKED_AT: Final = 100_000
_PAGE: Final = 1000


async def execution_id(reader: Reader, word: str) -> str:
    """The id of the one execution that is meant."""
    if len(word) == WHOLE:
        if await executions.get(reader, WORKSPACE, word) is None:
            raise NotFound(f"there is no execution {word}")
        return word
    return await _one(_executions(reader, word), word, "execution")


async def letter_id(reader: Reader, word: str) -> str:
    """The id of the one dead letter that is meant."""
    if len(word) == WHOLE:
        if await dlq.get(reader, WORKSPACE, word) is None:
            raise NotFound(f"there is no dead letter {word}")
        return word
    return await _one(_letters(reader, word), word, "dead letter")


async def _one(ids: AsyncIterator[str], word: str, what: str) -> str:
    if word != "last" and len(word) < FEWEST:
        raise NotFound(f"{word!r} is too short for an id; give {FEWEST} characters of its beginning or end, or `last`")
    found: list[str] = []
    async for each in ids:
        if word == "last":
            return each
        if each.startswith(word) or each.endswith(word):
            found.append(each)
        if len(found) > 1:
            raise Conflict(f"{word} is the beginning or end of several ids, {found[0]} and {found[1]}: give more of it")
    if not found:
        raise NotFound(f"there is no {what} {word}" if word != "last" else f"there is no {what} yet")
    return found[0]


async def _executions(reader: Reader, word: str) -> AsyncIterator[str]:
    """The newest first; no further than anyone would look for the end of an id."""
    before = executions.NEWEST
    for _ in range(MOST_LOOKED_AT // _PAGE):
        page = await executions.listed(reader, WORKSPACE, before=before, limit=_PAGE)
        for each in page:
            yield each.id
        if len(page) < _PAGE:
            return
        before = page[-1].id


async def _letters(reader: Reader, word: str) -> AsyncIterator[str]:
    """Those that wait for someone first."""
    for resolution in Resolution:
        for letter in await dlq.listed(reader, WORKSPACE, resolution=resolution, limit=_PAGE):
            yield letter.id
