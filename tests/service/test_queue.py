"""The queue as people read it: an item has one of five states, also when its row is gone."""

from typing import Any

import pytest

from ropewalk.core.errors import NotFound
from ropewalk.core.instant import rfc3339
from ropewalk.service.queue import queue_item
from ropewalk.store.access import Store
from ropewalk.store.rows import ExecutionChange
from tests.service.told import NOON, nodes, put, started
from tests.store.conftest import path, postgres_store, sqlite_store, store
from tests.store.samples import SECOND, waiting

__all__ = ["path", "postgres_store", "sqlite_store", "store"]

A = nodes("a")


async def test_an_item_that_waits_says_where_it_stands(store: Store):
    for name in ("e1", "e2", "e3"):
        await put(store, name, A)
    await store.write([("insert_queue", [waiting("e3", priority=9, enqueued_at=NOON, not_before=NOON)])])

    found = [await queue_item(store, "default", name) for name in ("e3", "e1", "e2")]

    assert [item["position"] for item in found] == [1, 2, 3]
    assert found[0] == {
        "id": "e3",
        "executionId": "e3",
        "executionState": "PENDING",
        "state": "PENDING",
        "position": 1,
        "waiting": 3,
        "priority": 9,
        "enqueuedAt": rfc3339(NOON),
        "notBefore": rfc3339(NOON),
        "attempts": 0,
        "claimedBy": None,
        "claimedAt": None,
        "error": None,
    }


@pytest.mark.parametrize(
    ("statement", "row", "expected"),
    [
        ("claim_queue", ('["e1"]', "w1", NOON), {"state": "CLAIMED", "claimedBy": "w1", "claimedAt": rfc3339(NOON)}),
        ("return_queue", ("FAILED", NOON, 3, "no such version", "e1"),
         {"state": "FAILED", "attempts": 3, "error": "no such version"}),
    ],
)  # fmt: skip
async def test_an_item_that_went_on_has_no_position(
    store: Store, statement: str, row: tuple[Any, ...], expected: dict[str, Any]
):
    await put(store, "e1", A)
    async with store.transaction() as tx:
        await tx.execute(statement, *row)

    found = await queue_item(store, "default", "e1")

    assert {"position": None, "notBefore": None, **expected}.items() <= found.items()


@pytest.mark.parametrize(
    ("execution", "expected"),
    [
        ("RUNNING", "DISPATCHED"),
        ("PAUSED", "DISPATCHED"),
        ("SUCCESS", "DONE"),
        ("CANCELLED", "DONE"),
        ("FAILED", "FAILED"),
        ("TIMEOUT", "FAILED"),
    ],
)
async def test_an_item_whose_row_is_gone_follows_its_execution(store: Store, execution: str, expected: str):
    await started(store, "e1", A)
    await store.write([("set_execution", [ExecutionChange(execution, NOON, NOON + SECOND, "boom", "e1")])])

    found = await queue_item(store, "default", "e1")

    assert (found["state"], found["executionState"]) == (expected, execution)
    assert (found["priority"], found["enqueuedAt"], found["attempts"]) == (5, rfc3339(NOON), None)
    assert found["error"] == "boom"


@pytest.mark.parametrize(("workspace", "item"), [("default", "e2"), ("other", "e1")])
async def test_what_does_not_exist_or_belongs_to_another_workspace_is_not_found(
    store: Store, workspace: str, item: str
):
    await put(store, "e1", A)

    with pytest.raises(NotFound):
        await queue_item(store, workspace, item)
