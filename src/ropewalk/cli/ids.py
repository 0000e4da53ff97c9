"""Ids as people type them: the beginning or the end of one, or `last`."""

from collections.abc import AsyncIterator
from typing import Final

from ropewalk.cli.looking import Look, Search
from ropewalk.core.errors import Conflict, NotFound
from ropewalk.core.state import Resolution

LAST: Final = "last"
WHOLE: Final = 36
FEWEST: Final = 3
_PAGE: Final = 1000


async def execution_id(look: Look, word: str) -> str:
    """The id of the one execution that is meant."""
    if word == LAST:
        return _newest([each["id"] for each in await look.executions(Search(limit=1))], "execution")
    if len(word) == WHOLE:
        if await look.state(word) is None:
            raise NotFound(f"there is no execution {word}")
        return word
    return await _one(look.ids(), word, "execution")


async def letter_id(look: Look, word: str) -> str:
    """The id of the one dead letter that is meant."""
    if word == LAST:
        return _newest([each async for each in _letters(look, 1)], "dead letter")
    if len(word) == WHOLE:
        return str((await look.letter(word))["id"])
    return await _one(_letters(look, _PAGE), word, "dead letter")


def _newest(ids: list[str], what: str) -> str:
    if not ids:
        raise NotFound(f"there is no {what} yet")
    return ids[0]


async def _one(ids: AsyncIterator[str], word: str, what: str) -> str:
    if len(word) < FEWEST:
        raise NotFound(f"{word!r} is too short for an id; give {FEWEST} characters of its beginning or end, or `last`")
    found: list[str] = []
    async for each in ids:
        if each.startswith(word) or each.endswith(word):
            found.append(each)
        if len(found) > 1:
            raise Conflict(f"{word} is the beginning or end of several ids, {found[0]} and {found[1]}: give more of it")
    if not found:
        raise NotFound(f"there is no {what} {word}")
    return found[0]


async def _letters(look: Look, most: int) -> AsyncIterator[str]:
    """Those that wait for someone first; at most so many of each resolution."""
    for resolution in Resolution:
        for letter in await look.letters(resolution, None, most):
            yield letter["id"]
