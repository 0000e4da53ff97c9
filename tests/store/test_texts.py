"""A text that one store could not keep is kept alike by both, and asked for alike."""

import pytest

from ropewalk.store import executions, runs
from ropewalk.store.access import Store
from ropewalk.store.bulk import FEW
from tests.store.samples import run

ODD = "a\0b\ud800c"
PLAIN = "a�b�c"


@pytest.mark.parametrize("count", [1, 2, FEW])
@pytest.mark.parametrize("text", ["a\0b\ud800c", "\0", "\udfff"])
async def test_a_commit_keeps_odd_texts_alike(store: Store, count: int, text: str):
    rows = [run(f"r{place}", error=text) for place in range(count)]

    await store.write([("upsert_run", rows)])
    await store.write([("upsert_run", [run(f"s{place}", error=f"{place} {text}") for place in range(count)])])

    errors = [row.error for row in await runs.listed(store, "e1", limit=1_000)]
    kept = text.replace("\0", "�").replace("\ud800", "�").replace("\udfff", "�")
    assert sorted(errors) == sorted([kept] * count + [f"{place} {kept}" for place in range(count)])


async def test_a_transaction_keeps_odd_texts_alike(store: Store):
    async with store.transaction() as tx:
        await tx.execute("insert_audit", "a1", 1, "default", ODD, "verb", "object", None, None, ODD)
        await tx.execute_many("insert_audit", [("a2", 1, "default", ODD, "verb", "object", None, None, ODD)])
        found = await tx.fetch("list_audit", "default", "z", ODD, None, None, 50)

    assert [(row[3], row[8]) for row in found] == [(PLAIN, PLAIN)] * 2


@pytest.mark.parametrize("text", [ODD, "\0", "\ud800"])
async def test_what_is_asked_for_by_an_odd_text_is_not_there(store: Store, text: str):
    async with store.transaction() as tx:
        assert await tx.fetch_one("get_execution", "default", text) is None

    assert await executions.get(store, text, text) is None
    assert await store.scan("get_execution", text, text) == []
