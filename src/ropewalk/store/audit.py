"""The audit log: who did what to what, append-only."""

from typing import Final

from ropewalk.store.access import Reader, Transaction
from ropewalk.store.rows import AuditEntry

_NEWEST: Final = "~"


async def append(tx: Transaction, entry: AuditEntry) -> None:
    """It was done; in the transaction that did it."""
    await tx.execute("insert_audit", *entry)


async def listed(reader: Reader, workspace: str, *, before: str = _NEWEST, limit: int = 50) -> list[AuditEntry]:
    """What was done in a workspace, newest first; the last one's id is the cursor to go on."""
    return [AuditEntry(*row) for row in await reader.fetch("list_audit", workspace, before, limit)]
