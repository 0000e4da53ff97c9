"""Starts that wait, as rows: many of them in a moment, for what only looks at the queue.

They have no log, so no worker could execute them; what claims see of them is all there.
"""

from typing import Final

from uuid_utils import uuid7

from ropewalk.store import workspaces
from ropewalk.store.access import Batch, Store
from ropewalk.store.rows import LiveRow, NewExecution, NewQueueEntry
from ropewalk.store.workspaces import Plan

AT_A_TIME: Final = 1_000


async def crowd(store: Store, workspace: str, size: int) -> None:
    """A workspace whose only slot is taken, with so many starts waiting for it."""
    async with store.transaction() as tx:
        await workspaces.ensure(tx, workspace, Plan.FREE, store.now())
    await store.write(_rows(store, workspace, [str(uuid7())], has_slot=1)[:2])
    await wait_in(store, workspace, size)


async def open_to_all(store: Store, workspace: str, size: int) -> None:
    """A workspace without a limit, with so many starts to be claimed."""
    async with store.transaction() as tx:
        await workspaces.ensure(tx, workspace, Plan.ENTERPRISE, store.now())
        await workspaces.override_slots(tx, workspace, None)
    await wait_in(store, workspace, size)


async def wait_in(store: Store, workspace: str, size: int) -> None:
    """So many starts wait in the workspace."""
    for first in range(0, size, AT_A_TIME):
        ids = [str(uuid7()) for _ in range(min(AT_A_TIME, size - first))]
        await store.write(_rows(store, workspace, ids, has_slot=0))


def _rows(store: Store, workspace: str, ids: list[str], has_slot: int) -> Batch:
    now, about = store.now(), ("no workflow", 1, "PENDING", "MANUAL", None, None, None, None, None)
    return [
        ("insert_execution", [NewExecution(each, workspace, *about, now, None, None) for each in ids]),
        ("insert_live", [LiveRow(each, workspace, None, 0, 1, None, has_slot, 0, None, 5) for each in ids]),
        ("insert_queue", [NewQueueEntry(each, workspace, "PENDING", 5, 1, now, now) for each in ids]),
    ]
