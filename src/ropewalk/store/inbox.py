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


class InboxMessage(Struct, frozen=True):
    """A signal on its way, and whether its sender waits for what comes of it."""

    id: str
    execution: str
    signal: str
    sent_by: str | None
    wants_answer: int


async def messages_for(reader: Reader, worker: str, *, limit: int = 1000) -> list[InboxMessage]:
    """What a worker's executions, and those that no worker has in hand, have yet to be told, in order."""
    return [InboxMessage(*row) for row in await reader.fetch("messages_for", worker, limit)]


async def waits(reader: Reader, message: str) -> bool:
    """Whether it has yet to be told."""
    return await reader.fetch_one("message_waits", message) is not None


async def forget(tx: Transaction, message: str) -> None:
    """The execution to be told does not exist."""
    await tx.execute("forget_inbox", message)


async def forget_unless_coming(tx: Transaction, message: str, child: str) -> bool:
    """The same for a child, unless it is about to be started, or has been; whether the message was dropped."""
    await tx.execute("forget_unless_coming", message, child)
    return not await waits(tx, message)


async def ask(tx: Transaction, signal: NewSignal, by: str) -> None:
    """The execution will be told, and its answer is kept for the asking worker."""
    await tx.execute("ask_inbox", *signal, by)


async def answer(reader: Reader, message: str) -> str | None:
    """What came of it, if anything has yet."""
    row = await reader.fetch_one("inbox_answer", message)
    return None if row is None else row[0]


async def drop_answers(tx: Transaction, before: int) -> int:
    """Drops the answers that no worker has asked for since then; how many."""
    return await tx.execute("drop_answers", before)
