"""How the end of a run that another process carried out gets to the owner of its execution: by its inbox."""

from collections.abc import Callable, Sequence

import msgspec
import uuid_utils

from ropewalk.core.commands import StartChild
from ropewalk.core.signals import Signal, Succeeded
from ropewalk.store import blobs, inbox
from ropewalk.store.access import Store, Transaction
from ropewalk.store.rows import NewSignal

Message = tuple[str, str, Signal | StartChild]
"""What an execution is told, durable in its inbox: the id of the row, the execution, the signal."""
Deliver = Callable[[Sequence[Message]], None]
"""Tells executions what is durable in their inboxes."""


class Posted(msgspec.Struct, frozen=True):
    """How a run ended, written down for the owner of its execution, if it has one."""

    message: Message
    owner: str | None


class Reporting:
    """Writes down how runs ended, and has their executions told."""

    def __init__(self, store: Store, deliver: Deliver) -> None:
        self._store = store
        self._deliver = deliver

    async def write(self, tx: Transaction, execution: str, signal: Signal) -> Posted:
        """Write down for the owner how a run ended. A large result is known to the store before the owner names it."""
        now = self._store.now()
        if isinstance(signal, Succeeded) and signal.blob is not None:
            await blobs.record(tx, signal.blob, now)
        letter, text = str(uuid_utils.uuid7()), msgspec.json.encode(signal).decode()
        await inbox.send(tx, NewSignal(letter, execution, text, now))
        row = await tx.fetch_one("get_live", execution)
        return Posted((letter, execution, signal), None if row is None else row[2])

    def send(self, post: Sequence[Posted]) -> None:
        """These are durable: an execution that is held here is told, the owner of another is woken."""
        store = self._store
        for each in post:
            if each.owner == store.worker or not store.is_shared:
                self._deliver([each.message])
            elif each.owner is not None:
                store.hint(each.owner)
