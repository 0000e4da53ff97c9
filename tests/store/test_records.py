"""The audit log and the workers: what was done, and who may write."""

import pytest

from ropewalk.core.errors import Conflict
from ropewalk.store import audit, workers
from ropewalk.store.access import Store
from ropewalk.store.rows import AuditEntry
from tests.store.samples import NOON, register


def done(name: str, workspace: str = "default") -> AuditEntry:
    return AuditEntry(name, NOON, workspace, "ann", "cancel", "e1", None, "CANCELLED", None)


async def test_what_was_done_is_listed_newest_first_before_a_cursor(store: Store):
    async with store.transaction() as tx:
        for name in ("a1", "a2", "a3", "a4"):
            await audit.append(tx, done(name))
        await audit.append(tx, done("a5", "other"))

    assert await audit.listed(store, "default", before="a4", limit=2) == [done("a3"), done("a2")]


async def test_what_was_done_is_written_once(store: Store):
    await store.write([("insert_audit", [done("a1")])])

    with pytest.raises(Conflict):
        await store.write([("insert_audit", [done("a1")])])


async def test_a_worker_that_comes_back_has_a_higher_epoch(store: Store):
    async with store.transaction() as tx:
        epochs = [await register(tx, "w", NOON + n, slots=4) for n in range(2)]
        is_known = [await workers.expel(tx, name) for name in ("w", "nobody")]

    found = await workers.get(store, "w")
    assert (epochs, is_known) == ([1, 2], [True, False])
    assert found is not None
    assert (found.epoch, found.started_at, found.version, found.slots) == (3, NOON + 1, "1", 4)


async def test_workers_heard_of_last_are_listed_first(store: Store):
    async with store.transaction() as tx:
        for n in (1, 3, 2):
            await register(tx, f"w{n}", NOON * 2 + n)

    assert [found.id for found in await workers.listed(store, 3)] == ["w3", "w2", "w1"]
