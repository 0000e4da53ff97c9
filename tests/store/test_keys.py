"""Idempotency keys and cached results: the same again for a while, then forgotten a few at a time."""

import pytest

from ropewalk.core.errors import Conflict
from ropewalk.store import cache, idempotency
from ropewalk.store.access import Store
from ropewalk.store.idempotency import KEPT
from ropewalk.store.rows import CachedResult, IdempotencyEntry
from tests.store.samples import NOON

ENTRY = IdempotencyEntry("default", "start", "key", "body", '{"executionId":"e1"}', NOON)


async def test_the_same_request_gets_the_same_answer_for_a_day(store: Store):
    async with store.transaction() as tx:
        await idempotency.remember(tx, ENTRY)

    async def answer(now: int, **changes: str) -> str | None:
        asked = ENTRY._replace(**changes)
        return await idempotency.answer(store, asked.workspace, asked.route, asked.key, asked.body_hash, now)

    assert await answer(NOON + KEPT - 1) == ENTRY.answer
    assert await answer(NOON + KEPT) is None
    assert [await answer(NOON, **{name: "x"}) for name in ("workspace", "route", "key")] == [None] * 3


async def test_another_request_under_the_same_key_is_refused(store: Store):
    async with store.transaction() as tx:
        await idempotency.remember(tx, ENTRY)

    with pytest.raises(Conflict, match="used for another request"):
        await idempotency.answer(store, "default", "start", "key", "another body", NOON)


async def test_of_two_who_remember_under_one_key_the_second_is_refused_until_a_day_has_passed(store: Store):
    async def remember(entry: IdempotencyEntry) -> None:
        async with store.transaction() as tx:
            await idempotency.remember(tx, entry)

    await remember(ENTRY)
    with pytest.raises(Conflict):
        await remember(ENTRY._replace(created_at=NOON + KEPT - 1))
    await remember(ENTRY._replace(answer='"later"', created_at=NOON + KEPT))

    assert await idempotency.answer(store, "default", "start", "key", "body", NOON + KEPT) == '"later"'


async def test_answers_older_than_a_day_are_forgotten_a_few_at_a_time(store: Store):
    rows = [ENTRY._replace(key=f"k{n}", created_at=NOON + n) for n in range(5)]
    await store.write([("insert_idempotency", rows)])

    async with store.transaction() as tx:
        forgotten = [await idempotency.forget_expired(tx, NOON + KEPT + 3, 3) for _ in range(3)]

    assert forgotten == [3, 1, 0]


RESULT = CachedResult("default", "key", "[1]", None, None, NOON)


async def test_a_cached_result_is_reused_in_its_workspace_until_it_expires(store: Store):
    await store.write([("upsert_cached_result", [RESULT._replace(output="[0]")])])
    await store.write([("upsert_cached_result", [RESULT])])

    assert await cache.get(store, "default", "key", NOON - 1) == RESULT
    assert await cache.get(store, "default", "key", NOON) is None
    assert await cache.get(store, "other", "key", NOON - 1) is None


async def test_expired_results_are_forgotten_a_few_at_a_time(store: Store):
    rows = [RESULT._replace(key=f"k{n}", expires_at=NOON + n) for n in range(5)]
    await store.write([("upsert_cached_result", rows)])

    async with store.transaction() as tx:
        forgotten = [await cache.forget_expired(tx, NOON + 3, 3) for _ in range(3)]

    assert forgotten == [3, 1, 0]
