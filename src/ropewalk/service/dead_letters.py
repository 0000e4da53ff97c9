"""What people do about dead letters: look at what failed alike, try again, supply the output, close, comment.

Each verb is one decision about one letter: durable when it returns, with one row in the audit log, and a Conflict for
the second caller. What is done to many dead letters is done to one after the other (`dead_letter_bulk`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import uuid_utils

from ropewalk.core.canonical import JSON, json_problems
from ropewalk.core.errors import Conflict, InvalidInput, InvalidTransition, NotFound, Problem, Unreadable
from ropewalk.core.instant import rfc3339
from ropewalk.core.signals import Discard, Fix, PersonSignal, Requeue
from ropewalk.core.state import Resolution
from ropewalk.service import dead_letter_bulk
from ropewalk.service.dead_letter_bulk import Bounds, Pace, Progress
from ropewalk.store import audit, dlq, executions
from ropewalk.store.access import Reader, Store, Transaction
from ropewalk.store.rows import AuditEntry, DeadLetterResolution

if TYPE_CHECKING:
    from ropewalk.nodes.base import Registry

LONGEST_NOTE: Final = 4_000
Tell = Callable[[str, PersonSignal, str], Awaitable[bool]]


def require_json(**given: JSON) -> None:
    """Refuses, naming every place, what no log could hold."""
    problems = [problem for name, value in given.items() for problem in json_problems(value, (name,))]
    if problems:
        raise InvalidInput(problems)


class DeadLetters:
    """The dead letters of a workspace; `tell` reaches the executions they belong to."""

    def __init__(self, store: Store, tell: Tell, workspace: str, types: "Registry") -> None:
        self._store = store
        self._tell = tell
        self._types = types
        self._workspace = workspace

    # One dead letter

    async def requeue(self, letter: str, overrides: dict[str, JSON] | None = None, by: str = "local") -> str:
        """Try a dead letter again, with other inputs if wanted; the id of its execution, which goes on."""
        require_json(overrides=overrides)
        found = await self._pending(letter)
        await self._tell(found.execution, Requeue(found.node, by, found.item, overrides, letter), by)
        return found.execution

    async def fix(self, letter: str, output: JSON, by: str = "local", ports: tuple[str, ...] = ()) -> str:
        """Supply the output a dead letter failed to give; the id of its execution, which goes on."""
        require_json(output=output, ports=list(ports))
        found = await self._pending(letter)
        self._check_ports(found, ports)
        await self._tell(found.execution, Fix(found.node, by, output, ports, found.item, letter=letter), by)
        return found.execution

    def _check_ports(self, letter: dlq.DeadLetter, ports: tuple[str, ...]) -> None:
        """Refuses ports that the node of a dead letter does not have, as far as its type is known here."""
        node = msgspec.json.decode(letter.config or "{}")
        node_type = self._types.get(node.get("type", ""))
        if node_type is not None and (wrong := node_type.wrong_ports(node.get("with", {}), ports)):
            raise InvalidInput([Problem(("ports",), wrong)])

    async def discard(self, letter: str, by: str = "local", notes: str | None = None) -> str:
        """Close a dead letter without doing anything about it, and add the note to those before; its execution's id."""
        text = None if notes is None else _checked(notes)
        found, now = await self._pending(letter), self._store.now()
        # The resolution itself names author and time, unless there are earlier notes.
        note = text if text is None or not found.notes else _line(text, by, now)
        if len(found.notes or "") + len(note or "") >= dlq.MOST_NOTES:
            raise _full(letter)
        try:
            await self._tell(found.execution, Discard(letter, by, text, note), by)
        except Unreadable:
            # No other decision about it can be made while its execution cannot be read.
            await self._discard_unread(Discard(letter, by, text, note), now)
        if (await self._resolution(letter)) != Resolution.DISCARDED:
            raise Conflict(f"dead letter {letter} was resolved by someone else just now")
        return found.execution

    async def _discard_unread(self, decision: Discard, now: int) -> None:
        letter, by = decision.letter, decision.by
        async with self._store.transaction() as tx:
            if not await dlq.resolve(tx, DeadLetterResolution(Resolution.DISCARDED, now, by, None, letter)):
                raise Conflict(f"dead letter {letter} was resolved by someone else just now")
            if decision.note is not None:
                await self._add(tx, letter, decision.note)
            await self._audit(tx, now, by, "discard", letter, decision.reason)

    async def _resolution(self, letter: str) -> str:
        resolved = await dlq.resolved(self._store, letter)
        return Resolution.PENDING if resolved is None else resolved[0]

    async def note(self, letter: str, text: str, by: str = "local") -> None:
        """Add a note to a dead letter, resolved or not; its author and time are kept with it."""
        text, now = _checked(text), self._store.now()
        async with self._store.transaction() as tx:
            await self._add(tx, letter, _line(text, by, now))
            await self._audit(tx, now, by, "note", letter, text)

    async def _add(self, tx: Transaction, letter: str, line: str) -> None:
        if await dlq.note(tx, self._workspace, letter, line):
            return
        if await dlq.get(tx, self._workspace, letter) is None:
            raise NotFound(f"there is no dead letter {letter}")
        raise _full(letter)

    async def _pending(self, letter: str) -> dlq.DeadLetter:
        found = await dlq.get(self._store, self._workspace, letter)
        if found is None:
            raise NotFound(f"there is no dead letter {letter}")
        if found.resolution != Resolution.PENDING:
            raise Conflict(dlq.already(letter, found.resolution, found.reviewed_by))
        return found

    async def _audit(self, tx: Transaction, at: int, by: str, verb: str, letter: str, detail: str | None) -> None:
        about = (self._workspace, by, verb, letter)
        await audit.append(tx, AuditEntry(str(uuid_utils.uuid7()), at, *about, None, None, detail))

    # Many dead letters

    def requeue_all(self, wanted: dlq.Wanted, pace: Pace = dead_letter_bulk.AT_ONCE, by: str = "local",
                    bounds: Bounds = dead_letter_bulk.ALL) -> AsyncIterator[Progress]:  # fmt: skip
        """Try all of these again, one after the other at this pace; what became of each."""
        return dead_letter_bulk.requeue_all(self._store, self, self._workspace, wanted, pace, by, bounds)

    def discard_all(self, wanted: dlq.Wanted, by: str = "local", notes: str | None = None, limit: int | None = None,
                    bounds: Bounds = dead_letter_bulk.ALL) -> AsyncIterator[Progress]:  # fmt: skip
        """Close all of these, one after the other; what became of each."""
        return dead_letter_bulk.discard_all(self._store, self, self._workspace, wanted, by, notes, limit, bounds)

    async def newest(self) -> str | None:
        """The newest dead letter."""
        return await dead_letter_bulk.newest(self._store, self._workspace)


def _full(letter: str) -> InvalidTransition:
    return InvalidTransition(f"the notes on dead letter {letter} are full: {dlq.MOST_NOTES:,} characters are kept")


def _checked(text: str) -> str:
    require_json(text=text)
    if not text.strip() or len(text) > LONGEST_NOTE:
        raise InvalidInput([Problem(("text",), f"must have something to say, in at most {LONGEST_NOTE:,} characters")])
    return text.strip()


def _line(text: str, by: str, at: int) -> str:
    """What is added to the notes. Further lines are set in, so that none of them can pass for another author's note."""
    return f"{rfc3339(at)} {by}: {text}".replace("\n", "\n  ")


# What failed alike


async def groups(reader: Reader, workspace: str, after: dlq.GroupCursor = dlq.FIRST_GROUP, limit: int = 50,
                 among: Sequence[str] | None = None) -> list[dict[str, Any]]:  # fmt: skip
    """What lies unresolved, gathered by fingerprint, the most frequent first; the last one's cursor is to go on.

    `among` narrows it to these workflows.
    """
    found = await dlq.groups(reader, workspace, after=after, limit=limit, among=among)
    names = await executions.workflow_names(reader, [group.workflow for group in found]) if found else {}
    return [_group(group, names.get(group.workflow, group.workflow)) for group in found]


def _group(group: dlq.Group, workflow: str) -> dict[str, Any]:
    return {
        "fingerprint": group.fingerprint,
        "count": group.count,
        "workflow": workflow,
        "workflowId": group.workflow,
        "node": group.node,
        "failureType": group.failure_type,
        "reason": group.reason,
        "firstAt": rfc3339(group.first_at),
        "lastAt": rfc3339(group.last_at),
    }
