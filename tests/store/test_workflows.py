"""Workflows: every save is the next version, and none is ever lost."""

import pytest

from ropewalk.core.errors import Conflict, NotFound
from ropewalk.store import workflows
from ropewalk.store.access import Store, Transaction
from ropewalk.store.workflows import Draft, Saved, Version
from tests.store.samples import NOON


async def save(tx: Transaction, content: str, *, name: str = "refund", new_id: str = "w1") -> Saved:
    return await workflows.save(tx, Draft("default", name, content, f"hash of {content}", "ann"), new_id, NOON)


async def test_each_save_is_the_next_version(store: Store):
    async with store.transaction() as tx:
        saved = [await save(tx, content, new_id=content) for content in ("one", "two", "one")]

    assert saved == [Saved("one", number, is_new=True) for number in (1, 2, 3)]
    assert await workflows.get_version(store, "one", 2) == Version("one", 2, "hash of two", "two", NOON, "ann")


async def test_saving_the_latest_content_again_gives_the_version_there_is(store: Store):
    async with store.transaction() as tx:
        await save(tx, "one")
        again = await save(tx, "one")

    assert again == Saved("w1", 1, is_new=False)
    assert [version.version for version in await workflows.versions(store, "w1")] == [1]


async def test_a_workflow_is_found_by_name_and_by_id_in_its_workspace_only(store: Store):
    async with store.transaction() as tx:
        await save(tx, "one")

    assert await workflows.get(store, "default", "w1") == await workflows.get_by_name(store, "default", "refund")
    assert await workflows.get(store, "other", "w1") is None
    assert await workflows.get_by_name(store, "other", "refund") is None


async def test_publishing_says_which_version_starts_take(store: Store):
    async with store.transaction() as tx:
        await save(tx, "one")
        await save(tx, "two")
        await workflows.publish(tx, "w1", 1)

    found = await workflows.get(store, "default", "w1")
    assert found is not None
    assert found.published == 1


async def test_a_version_that_is_not_there_cannot_be_published(store: Store):
    async with store.transaction() as tx:
        await save(tx, "one")
        with pytest.raises(NotFound, match="no version 2"):
            await workflows.publish(tx, "w1", 2)


async def test_an_archived_workflow_publishes_nothing_and_keeps_its_versions(store: Store):
    async with store.transaction() as tx:
        await save(tx, "one")
        await workflows.publish(tx, "w1", 1)
        archived = [await workflows.archive(tx, "default", "w1", NOON) for _ in range(2)]
        with pytest.raises(NotFound, match="archived"):
            await workflows.publish(tx, "w1", 1)

    found = await workflows.get(store, "default", "w1")
    assert archived == [True, False]
    assert found is not None
    assert (found.published, found.archived_at) == (None, NOON)
    assert await workflows.get_version(store, "w1", 1) is not None


async def test_saving_an_archived_workflow_brings_it_back(store: Store):
    async with store.transaction() as tx:
        await save(tx, "one")
        await workflows.archive(tx, "default", "w1", NOON)
        again = await save(tx, "two", new_id="w2")

    found = await workflows.get(store, "default", "w1")
    assert again == Saved("w1", 2, is_new=True)
    assert found is not None
    assert found.archived_at is None


async def test_workflows_are_listed_by_name_after_a_cursor_archived_ones_if_asked_for(store: Store):
    async with store.transaction() as tx:
        for name in ("c", "a", "d", "b"):
            await save(tx, "one", name=name, new_id=name)
        await workflows.archive(tx, "default", "b", NOON)

    async def names(**options: object) -> list[str]:
        return [found.name for found in await workflows.listed(store, "default", **options)]

    assert await names(after="a", limit=2) == ["c", "d"]
    assert await names(with_archived=True) == ["a", "b", "c", "d"]


async def test_versions_are_listed_newest_first_before_a_cursor(store: Store):
    async with store.transaction() as tx:
        for content in "abcde":
            await save(tx, content)

    assert [found.version for found in await workflows.versions(store, "w1", before=5, limit=3)] == [4, 3, 2]


async def test_a_workflow_needs_its_workspace(store: Store):
    async def transact() -> None:
        async with store.transaction() as tx:
            await workflows.save(tx, Draft("nowhere", "refund", "{}", "h", "ann"), "w1", NOON)

    with pytest.raises(Conflict, match=r"(?i)foreign key"):
        await transact()
