"""A concurrency key within a family: its holders are one line of descent, with any claimer, on both stores."""

import asyncio

import pytest

from ropewalk.store import queue
from ropewalk.store.access import Store, Transaction
from ropewalk.store.explain import Holder, key_holders
from ropewalk.store.postgres import PostgresStore
from tests.store.samples import NOON, execution, live_row, waiting


async def born(tx: Transaction, name: str, parent: str | None = None) -> None:
    """An execution with the key of the family waits for its turn."""
    await tx.execute("insert_execution", *execution(name, parent=parent, concurrency_key="k"))
    await tx.execute("insert_live", *live_row(name, concurrency_key="k"))
    await tx.execute("insert_queue", *waiting(name, is_new=int(parent is None)))


async def claimed(store: Store, worker: str = "one") -> list[tuple[str, int]]:
    """What a claim takes, and in which place it holds the key."""
    async with store.transaction() as tx:
        return [(entry.execution, entry.has_key) for entry in (await queue.claim(tx, worker, NOON, 10))[0]]


async def ended(store: Store, name: str) -> None:
    await store.write([("delete_live", [(name,)]), ("delete_queue", [(name,)])])


@pytest.fixture
async def family(store: Store) -> Store:
    """A parent at work, and two children that want its key."""
    async with store.transaction() as tx:
        await born(tx, "parent")
        await queue.claim(tx, "one", NOON, 10)
        await born(tx, "child 1", "parent")
        await born(tx, "child 2", "parent")
    return store


async def test_siblings_take_the_key_of_their_parent_one_after_the_other(family: Store):
    first, beside = await claimed(family), await claimed(family)
    await ended(family, "child 1")

    assert (first, beside, await claimed(family)) == ([("child 1", 2)], [], [("child 2", 2)])


async def test_a_grandchild_takes_the_key_while_its_uncle_waits(family: Store):
    await claimed(family)
    async with family.transaction() as tx:
        await born(tx, "grandchild", "child 1")

    assert await claimed(family) == [("grandchild", 3)]
    holders = [Holder(name, "one") for name in ("parent", "child 1", "grandchild")]
    assert await key_holders(family, "default", "k") == holders


async def test_a_child_that_outlives_its_parent_keeps_the_key_from_strangers(family: Store):
    await claimed(family)
    async with family.transaction() as tx:
        await born(tx, "stranger")
    await ended(family, "parent")

    beside = await claimed(family)
    await ended(family, "child 1")
    await ended(family, "child 2")

    assert (beside, await claimed(family)) == ([], [("stranger", 1)])


async def test_any_number_of_claimers_let_one_sibling_have_the_key(database: str, postgres_store: PostgresStore):
    async with postgres_store.transaction() as tx:
        await born(tx, "parent")
        await queue.claim(tx, "one", NOON, 10)
        for number in range(20):
            await born(tx, f"child {number:02}", "parent")
    stores = [await PostgresStore.open(database, worker=f"w{n}", notify=False) for n in range(4)]
    try:
        for _ in range(20):
            taken = await asyncio.gather(*(claimed(store, f"w{n}") for n, store in enumerate(stores)))
            (only,) = [each for part in taken for each in part] or await claimed(stores[0], "w0")
            assert only[1] == 2
            await ended(postgres_store, only[0])
    finally:
        for store in stores:
            await store.close()
    assert [name for name, *_ in await postgres_store.fetch("key_held", "default", "k")] == ["parent"]
