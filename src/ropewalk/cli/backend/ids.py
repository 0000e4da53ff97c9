"""Ids as people type them: the beginning or the end of one, as lists show it, or `last`."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from ropewalk.cli.backend.queries import Queries, Search
from ropewalk.cli.views.text import clock, one_line
from ropewalk.core.errors import Conflict, NotFound
from ropewalk.core.state import Resolution

LAST: Final = "last"
WHOLE: Final = 36
WHOLE_FINGERPRINT: Final = 16
FEWEST: Final = 3
MOST_NAMED: Final = 10
"""How many ids are told of a word that could mean several."""
_MOST_GROUPS: Final = 1000
_PART: Final = re.compile(r"[0-9a-f-]+")
Json = dict[str, Any]


async def execution_id(queries: Queries, word: str) -> str:
    """The id of the one execution that is meant."""
    if word == LAST:
        return _newest(await queries.executions(Search(limit=1)), "execution")
    if len(word) == WHOLE:
        if await queries.state(word) is None:
            raise NotFound(f"there is no execution {word}")
        return word
    part = _part(word, "execution")
    found = await queries.executions(Search(id_part=part, limit=MOST_NAMED + 1))
    return str(_only(found, "id", part, "execution", _execution)["id"])


async def letter_id(queries: Queries, word: str) -> str:
    """The id of the one dead letter that is meant."""
    if word == LAST:
        # What waits for a person comes first.
        return _newest([each for resolution in Resolution for each in await queries.letters(resolution, None, 1)],
                       "dead letter")  # fmt: skip
    if len(word) == WHOLE:
        return str((await queries.letter(word))["id"])
    part = _part(word, "dead letter")
    found = await queries.letters_named(part, MOST_NAMED + 1)
    return str(_only(found, "id", part, "dead letter", _letter)["id"])


async def whole_fingerprint(queries: Queries, word: str | None) -> str | None:
    """The one fingerprint that is meant; a word that none begins with may be that of letters that are resolved."""
    if word is None or len(word) >= WHOLE_FINGERPRINT:
        return word
    found = [each for each in await queries.groups(_MOST_GROUPS) if each["fingerprint"].startswith(word.lower())]
    return str(_only(found, "fingerprint", word.lower(), "fingerprint", _group)["fingerprint"]) if found else word


async def before_id(queries: Queries, word: str | None) -> str | None:
    """The id before which a list goes on; a whole one need not be there any more."""
    return word if word is None or len(word) == WHOLE else await execution_id(queries, word)


def _newest(found: list[Json], what: str) -> str:
    if not found:
        raise NotFound(f"there is no {what} yet")
    return str(found[0]["id"])


def _part(word: str, what: str) -> str:
    if len(word) < FEWEST:
        raise NotFound(f"{word!r} is too short for an id; give {FEWEST} characters of its beginning or end, or `last`")
    if len(word) > WHOLE or not _PART.fullmatch(word.lower()):
        raise NotFound(f"there is no {what} {word}")
    return word.lower()


def _only(found: Iterable[Json], name: str, part: str, what: str, told: Callable[[Json], str]) -> Json:
    """The one that is meant, or an error that tells which ones could be."""
    # A server that is older than this command does not know the filter, and lists everything.
    fitting = [each for each in found if each[name].startswith(part) or each[name].endswith(part)]
    if not fitting:
        raise NotFound(f"there is no {what} {part}")
    if len(fitting) == 1:
        return fitting[0]
    lines = [f"  {each[name]}  {told(each)}" for each in fitting[:MOST_NAMED]]
    more = ["  and more"] if len(fitting) > MOST_NAMED else []
    raise Conflict("\n".join([f"{part} is the beginning or end of several ids: give more of it", *lines, *more]))


def _execution(each: Json) -> str:
    return f"{each['workflow']} v{each['version']}  {each['state']}  {clock(each['acceptedAt'])}"


def _letter(each: Json) -> str:
    return f"{each['node']}  {each['resolution']}  {clock(each['createdAt'])}  {one_line(each['reason'], 40)}"


def _group(each: Json) -> str:
    return f"{each['count']:,} of {each['workflow']} {each['node']}"
