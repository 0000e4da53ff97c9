"""What nodes keep by key, on both kinds of store: exact, durable, and done once however often it is tried."""

import asyncio

import pytest

from ropewalk.engines.kept_values import StoredValues
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.keeping import Condition, Kept
from ropewalk.store import kept_values
from ropewalk.store.access import Store

HOUR = 3600 * 1_000_000
ALWAYS = Condition()


@pytest.fixture
def values(store: Store) -> StoredValues:
    return StoredValues(store)


async def test_what_is_put_can_be_got_in_its_workspace_alone(values: StoredValues):
    change = await values.put("a", "k", {"x": [1]}, None, ALWAYS, "work 1")

    assert change.is_made
    assert await values.get("a", "k") == change.kept
    assert change.kept.value == {"x": [1]}
    assert await values.get("b", "k") == Kept()
    assert await values.get("a", "l") == Kept()


async def test_a_value_is_changed_only_if_it_has_the_version_that_was_read(values: StoredValues):
    first = (await values.put("a", "k", 1, None, ALWAYS, "1")).kept
    second = await values.put("a", "k", 2, None, Condition(first.version), "2")
    third = await values.put("a", "k", 3, None, Condition(first.version), "3")

    assert (second.is_made, third.is_made) == (True, False)
    assert third.kept == second.kept
    assert not (await values.put("a", "k", 4, None, Condition(is_missing=True), "4")).is_made


async def test_a_value_that_was_removed_and_put_again_has_another_version(values: StoredValues):
    first = (await values.put("a", "k", 1, None, ALWAYS, "1")).kept
    assert (await values.remove("a", "k", Condition(first.version), "2")).is_made
    assert not (await values.remove("a", "k", ALWAYS, "3")).is_made
    assert await values.get("a", "k") == Kept()

    second = (await values.put("a", "k", 1, None, Condition(is_missing=True), "4")).kept

    assert second.version > first.version


async def test_a_value_is_gone_when_its_time_is_over_and_swept_later(store: Store, values: StoredValues):
    await values.put("a", "short", 1, HOUR, ALWAYS, "1")
    await values.put("a", "long", 1, None, ALWAYS, "2")

    later = store.now() + 2 * HOUR
    assert await kept_values.get(store, "a", "kv", "short", later) is None
    async with store.transaction() as tx:
        assert await kept_values.forget_expired(tx, later, 10) == 1
    assert (await values.get("a", "long")).is_there


async def test_many_that_count_at_once_lose_no_count(values: StoredValues):
    made = await asyncio.gather(*(values.add("a", "k", 1, None, f"work {n}") for n in range(30)))

    assert sorted(each.kept.value for each in made) == list(range(1, 31))


async def test_an_attempt_that_is_repeated_changes_nothing_again(values: StoredValues):
    first = await values.add("a", "k", 5, HOUR, "work")
    await values.add("a", "k", 1, HOUR, "another")

    assert await values.add("a", "k", 5, HOUR, "work") == first
    assert (await values.get("a", "k")).value == 6


async def test_the_time_of_a_counter_begins_with_its_first_count(values: StoredValues):
    first = await values.add("a", "k", 1, HOUR, "1")
    second = await values.add("a", "k", 1, 2 * HOUR, "2")

    assert first.kept.expires_at == second.kept.expires_at


@pytest.mark.parametrize("value", ["x", None, True, [1]])
async def test_what_is_no_number_is_not_counted_and_stays(values: StoredValues, value: object):
    await values.put("a", "k", value, None, ALWAYS, "1")

    with pytest.raises(NodeFailure, match="is no number"):
        await values.add("a", "k", 1, None, "2")

    assert (await values.get("a", "k")).value == value


async def test_a_key_is_claimed_once_and_again_by_the_same_work(values: StoredValues):
    assert await values.claim("a", "s", ["x", "y"], HOUR, "1") == [True, True]
    assert await values.claim("a", "s", ["y", "z"], HOUR, "2") == [False, True]
    assert await values.claim("a", "s", ["y", "x"], HOUR, "1") == [True, True]
    assert await values.claim("b", "s", ["x"], HOUR, "2") == [True]
    assert await values.claim("a", "t", ["x"], HOUR, "2") == [True]


async def test_two_that_claim_the_same_keys_share_them_out(values: StoredValues):
    keys = [f"k{n}" for n in range(50)]

    one, other = await asyncio.gather(
        values.claim("a", "s", keys, HOUR, "1"), values.claim("a", "s", keys[::-1], HOUR, "2")
    )

    assert [mine != theirs for mine, theirs in zip(one, other[::-1], strict=True)] == [True] * 50


async def test_a_claim_ends_with_its_time(store: Store):
    now = store.now()
    async with store.transaction() as tx:
        assert await kept_values.claim(tx, "a", "s", ["x"], "1", now, now + HOUR) == [True]
        assert await kept_values.claim(tx, "a", "s", ["x"], "2", now + HOUR - 1, now + 2 * HOUR) == [False]
        assert await kept_values.claim(tx, "a", "s", ["x"], "3", now + HOUR, now + 2 * HOUR) == [True]
