"""The audit log: who did what to what, append-only."""

from typing import Final

from msgspec import Struct

from ropewalk.store.access import Reader, Rewind, Transaction
from ropewalk.store.rows import AuditEntry

NEWEST: Final = "~"
"""A cursor before every id."""


class Filter(Struct, frozen=True, kw_only=True):
    """Which entries are wanted: of which actor, verb and object; None is any."""

    actor: str | None = None
    verb: str | None = None
    object: str | None = None


ANY: Final = Filter()

NO_WORKSPACE: Final = ""
REWOUND: Final = "rewound"


async def append(tx: Transaction, entry: AuditEntry) -> None:
    """Writes the entry, in the transaction that does what the entry tells."""
    await tx.execute("insert_audit", *entry)


async def note_rewind(tx: Transaction, new_id: str, rewind: Rewind) -> None:
    """A worker found that the database went back in time; of no workspace."""
    about = (NO_WORKSPACE, f"worker:{rewind.worker}", REWOUND, "store", None, None, rewind.why)
    await append(tx, AuditEntry(new_id, rewind.at, *about))


async def rewinds(reader: Reader, limit: int) -> list[Rewind]:
    """When the database went back in time, as far as the workers that found it could note it; newest first."""
    found = await listed(reader, NO_WORKSPACE, Filter(verb=REWOUND), limit=limit)
    return [Rewind(each.at, each.actor.removeprefix("worker:"), each.detail or "") for each in found]


async def listed(
    reader: Reader, workspace: str, wanted: Filter = ANY, *, before: str = NEWEST, limit: int = 50
) -> list[AuditEntry]:
    """What was done in a workspace, newest first; the last one's id is the cursor to go on."""
    about = (wanted.actor, wanted.verb, wanted.object)
    return [AuditEntry(*row) for row in await reader.fetch("list_audit", workspace, before, *about, limit)]
