"""The inbox: what executions have yet to be told by others than their owner."""

from msgspec import Struct

from ropewalk.store.access import Reader, Transaction
from ropewalk.store.rows import NewSignal


class SentSignal(Struct, frozen=True):
    """A signal on its way, as JSON."""

    id: str
    execution: str
    signal: str
    sent_at: int


async def send(tx: Transaction, signal: NewSignal) -> None:
    """The execution will be told."""
    await tx.execute("insert_inbox", *signal)


async def remove(tx: Transaction, signal: str) -> bool:
    """The execution was told; false if that happened before, so it is told once."""
    return await tx.execute("delete_inbox", signal) == 1


async def of_execution(reader: Reader, execution: str, *, limit: int = 1000) -> list[SentSignal]:
    """What one execution has yet to be told, in order."""
    return [SentSignal(*row) for row in await reader.fetch("list_inbox", execution, limit)]


async def count(reader: Reader, execution: str) -> int:
    """How much one execution has yet to be told."""
    row = await reader.fetch_one("count_inbox", execution)
    return 0 if row is None else row[0]


async def of_worker(reader: Reader, worker: str, *, after: str = "", limit: int = 1000) -> list[SentSignal]:
    """What a worker's executions have yet to be told, in order, after a cursor."""
    return [SentSignal(*row) for row in await reader.fetch("owned_inbox", worker, after, limit)]


async def unowned(reader: Reader, *, after: str = "", limit: int = 1000) -> list[SentSignal]:
    """What executions that nobody has in hand have yet to be told, in order, after a cursor."""
    return [SentSignal(*row) for row in await reader.fetch("unowned_inbox", after, limit)]
