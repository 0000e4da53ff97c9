"""Dead letters: runs that gave up, kept for a person."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.core.duration import MILLISECOND
from ropewalk.core.state import Resolution, RunState
from ropewalk.store.access import Reader, Row, Transaction, json_list
from ropewalk.store.events import place_of
from ropewalk.store.ids import begins_or_ends, first_id
from ropewalk.store.rows import DeadLetterResolution

NEWEST: Final = "~"
"""A cursor before every id."""
MOST_NOTES: Final = 100_000
"""How many characters of notes a dead letter keeps: all of them are part of every answer about it."""
_NEVER: Final = 2**62


class DeadLetter(Struct, frozen=True):
    """A run that gave up, why, and with what."""

    id: str
    workspace: str
    run: str
    execution: str
    workflow: str
    node: str
    item: int | None
    attempt: int
    failure_type: str
    error_type: str
    reason: str
    fingerprint: str
    inputs: str | None
    config: str | None
    created_at: int
    resolution: str
    resolved_at: int | None
    reviewed_by: str | None
    notes: str | None
    inputs_blob: str | None = None
    """Where the inputs lie if they are too large for the log: `{"hash", "size"}`."""


class Group(Struct, frozen=True):
    """Unresolved dead letters that failed alike; the newest speaks for all."""

    fingerprint: str
    count: int
    first_at: int
    last_at: int
    workflow: str
    node: str
    failure_type: str
    reason: str

    @property
    def cursor(self) -> "GroupCursor":
        """Where to go on after this one."""
        return GroupCursor(self.count, self.fingerprint)


class GroupCursor(Struct, frozen=True):
    """A place in the list of groups, which has the most frequent first."""

    count: int
    fingerprint: str


FIRST_GROUP: Final = GroupCursor(2**62, "")


class Wanted(Struct, frozen=True, kw_only=True):
    """Which dead letters are meant; None is any."""

    fingerprint: str | None = None
    workflow: str | None = None
    node: str | None = None
    failure_type: str | None = None


class Search(Struct, frozen=True, kw_only=True):
    """Which dead letters a list is to have; None is any. `until` is not included; `among` narrows to workflows.

    The id begins or ends with `id_part`, which has nothing in it but letters, digits and `-`.
    """

    resolution: Resolution | None = Resolution.PENDING
    execution: str | None = None
    fingerprint: str | None = None
    workflow: str | None = None
    node: str | None = None
    since: int = 0
    until: int = _NEVER
    among: tuple[str, ...] | None = None
    id_part: str | None = None


class Pending(Struct, frozen=True):
    """A dead letter that waits for a person: what is needed to act on it."""

    id: str
    execution: str
    node: str
    item: int | None
    attempt: int
    created_at: int


def already(letter: str, resolution: str, by: str | None) -> str:
    """What to tell a person who comes second."""
    return f"dead letter {letter} was {resolution} by {by or 'someone'} already"


async def resolve(tx: Transaction, resolution: DeadLetterResolution) -> bool:
    """Resolves a dead letter; false if it was resolved before, so of two callers who try only one does it."""
    return await tx.execute("resolve_dead_letter", *resolution) == 1


async def note(tx: Transaction, workspace: str, letter: str, note: str, *, most: int = MOST_NOTES) -> bool:
    """Adds to what people have to say about it; whether there is such a dead letter, and room for so much."""
    return await tx.execute("note_dead_letter", "\n", note, workspace, letter, most) == 1


async def get(reader: Reader, workspace: str, letter: str) -> DeadLetter | None:
    """The dead letter of this id, if it is the workspace's."""
    row = await reader.fetch_one("get_dead_letter", workspace, letter)
    return None if row is None else DeadLetter(*row)


async def resolved(reader: Reader, letter: str) -> tuple[str, str | None] | None:
    """How a dead letter was resolved and by whom; None while it is not, or where there is none."""
    row = await reader.fetch_one("dead_letter_resolution", letter)
    return None if row is None else (row[0], row[1])


async def listed(
    reader: Reader,
    workspace: str,
    *,
    resolution: Resolution = Resolution.PENDING,
    fingerprint: str | None = None,
    before: str = NEWEST,
    limit: int = 50,
) -> list[DeadLetter]:
    """The dead letters of a workspace, newest first; the last one's id is the cursor to go on."""
    wanted = Search(resolution=resolution, fingerprint=fingerprint)
    return await search(reader, workspace, wanted, before=before, limit=limit)


async def search(
    reader: Reader, workspace: str, wanted: Search, *, before: str = NEWEST, limit: int = 50
) -> list[DeadLetter]:
    """The dead letters that fit, newest first; the last one's id is the cursor to go on."""
    # One look per resolution: that is how the index is ordered.
    resolutions = tuple(Resolution) if wanted.resolution is None else (wanted.resolution,)
    # Ids are made from the time of giving up, so what is newer than wanted need not be looked at.
    before = before if wanted.until >= _NEVER else min(before, first_id(wanted.until + MILLISECOND))
    found = [row for each in resolutions for row in await _search(reader, workspace, each, wanted, before, limit)]
    return sorted(found, key=lambda letter: letter.id, reverse=True)[:limit]


async def _search(
    reader: Reader, workspace: str, resolution: Resolution, wanted: Search, before: str, limit: int
) -> list[DeadLetter]:
    if wanted.id_part is not None:
        return await _named(reader, workspace, resolution, wanted, before, limit)
    about = (workspace, resolution, before, wanted.workflow, wanted.node, wanted.since, wanted.until)
    if wanted.execution is not None:
        rows = await reader.fetch("search_execution_dead_letters", *about, wanted.fingerprint, wanted.execution, limit)
        # An execution is of one workflow: all of it may be seen, or nothing.
        return [letter for letter in _letters(rows) if wanted.among is None or letter.workflow in wanted.among]
    if wanted.among is not None:
        narrowed = json_list(wanted.among)
        rows = await reader.fetch("list_shared_dead_letters", narrowed, *about, wanted.fingerprint, limit)
    elif wanted.fingerprint is not None:
        rows = await reader.fetch("list_alike_dead_letters", *about, wanted.fingerprint, limit)
    else:
        rows = await reader.fetch("list_dead_letters", *about, limit)
    return _letters(rows)


async def _named(
    reader: Reader, workspace: str, resolution: Resolution, wanted: Search, before: str, limit: int
) -> list[DeadLetter]:
    rows: list[Row] = []
    # One look per workflow, as for executions: few are ever shared.
    shared = [each for each in wanted.among or () if wanted.workflow in (None, each)]
    for workflow in [wanted.workflow] if wanted.among is None else shared:
        about = (workspace, resolution, before, workflow, wanted.node, wanted.since, wanted.until)
        named = (*begins_or_ends(wanted.id_part), wanted.fingerprint, wanted.execution)
        rows += await reader.fetch("list_named_dead_letters", *about, *named, limit)
    return _letters(rows)


def _letters(rows: Iterable[Row]) -> list[DeadLetter]:
    return [DeadLetter(*row) for row in rows]


async def of_execution(reader: Reader, execution: str, *, limit: int = 1000) -> list[DeadLetter]:
    """The dead letters of one execution, oldest first."""
    return _letters(await reader.fetch("list_execution_dead_letters", execution, limit))


async def pending(
    reader: Reader, workspace: str, wanted: Wanted, *, after: str = "", last: str = NEWEST, limit: int = 50
) -> list[Pending]:
    """What waits for a person, oldest first, after a cursor; nothing younger than `last`."""
    arguments = (workspace, after, last, wanted.workflow, wanted.node, wanted.failure_type)
    if wanted.fingerprint is None:
        rows = await reader.fetch("pending_dead_letters", *arguments, limit)
    else:
        rows = await reader.fetch("pending_alike_dead_letters", *arguments, wanted.fingerprint, limit)
    return [Pending(*row) for row in rows]


async def tried_again(reader: Reader, letter: Pending) -> RunState | None:
    """How the last attempt stands that came after the dead letter, if it has a row."""
    about = (letter.node, place_of(letter.item), letter.attempt)
    row = await reader.fetch_one("tried_again", letter.execution, first_id(letter.created_at), *about)
    return None if row is None else RunState(row[0])


async def groups(
    reader: Reader,
    workspace: str,
    *,
    after: GroupCursor = FIRST_GROUP,
    limit: int = 50,
    among: Sequence[str] | None = None,
) -> list[Group]:
    """What lies unresolved, gathered by fingerprint, the most frequent first; the last one's cursor leads on."""
    about = (workspace, after.count, after.fingerprint, limit)
    if among is None:
        rows = await reader.fetch("dead_letter_groups", *about)
    else:
        rows = await reader.fetch("shared_dead_letter_groups", json_list(among), *about)
    return [Group(*row) for row in rows]
