"""What keeps an execution from running: its place in the queue, and which execution or worker has what it needs."""

from typing import Final

from msgspec import Struct

from ropewalk.store.access import Reader
from ropewalk.store.queue import QueueEntry

MOST_COUNTED: Final = 10_000


class Place(Struct, frozen=True):
    """The nth of so many that wait in a workspace, in the order they are to start; None is more than are counted."""

    position: int | None
    total: int | None


class Holder(Struct, frozen=True):
    """An execution that has a slot or a key, and the worker that has the execution."""

    execution: str
    worker: str | None


class SharedRun(Struct, frozen=True):
    """An attempt that any worker may lease, or that another worker than the execution's owner has."""

    node: str
    item: int | None
    attempt: int
    state: str
    leased_by: str | None
    lease_until: int | None


class UnreadSignal(Struct, frozen=True):
    """A signal on its way, as JSON."""

    signal: str
    sent_at: int


async def place(reader: Reader, entry: QueueEntry, *, most: int = MOST_COUNTED) -> Place:
    """Where an entry that waits stands among those of its workspace, of which `most` are counted."""
    order = (entry.is_new, entry.priority, entry.enqueued_at, entry.id)
    row = await reader.fetch_one("queue_place", entry.workspace, *order, most + 1)
    assert row is not None, "a count gives its row"
    before, total = row
    return Place(before + 1 if before < most else None, total if total <= most else None)


async def slot_holders(reader: Reader, workspace: str, limit: int) -> list[Holder]:
    """The executions that use the slots of a workspace, those accepted first before the others."""
    return [Holder(*row) for row in await reader.fetch("slots_held", workspace, limit)]


async def key_holders(reader: Reader, workspace: str, key: str) -> list[Holder]:
    """The executions that have a concurrency key: one, or a line of descent."""
    return [Holder(*row) for row in await reader.fetch("key_held", workspace, key)]


async def shared_runs(reader: Reader, execution: str, limit: int) -> list[SharedRun]:
    """The attempts of an execution under way that are not its owner's alone, in the order they came to be."""
    return [SharedRun(*row) for row in await reader.fetch("shared_runs", execution, limit)]


async def unread_signals(reader: Reader, execution: str, limit: int) -> list[UnreadSignal]:
    """What an execution was told by others and has not taken in, in order."""
    return [UnreadSignal(*row) for row in await reader.fetch("unread_signals", execution, limit)]
