"""Dead letters: listed, grouped by what went wrong, resolved once."""

import pytest

from ropewalk.core.state import Resolution
from ropewalk.store import dlq
from ropewalk.store.access import Store
from ropewalk.store.dlq import Group, Wanted
from ropewalk.store.rows import DeadLetterResolution
from tests.store.samples import NOON, letter


def discarded(name: str) -> DeadLetterResolution:
    return DeadLetterResolution("DISCARDED", NOON + 9, "ann", None, name)


async def test_of_two_who_resolve_a_dead_letter_one_does(store: Store):
    await store.write([("upsert_dead_letter", [letter("d1")])])

    async with store.transaction() as tx:
        answers = [
            await dlq.resolve(tx, discarded("d1")),
            await dlq.resolve(tx, DeadLetterResolution("FIXED", NOON + 10, "bob", "x", "d1")),
        ]

    found = await dlq.get(store, "default", "d1")
    assert answers == [True, False]
    assert found is not None
    assert (found.resolution, found.resolved_at, found.reviewed_by) == ("DISCARDED", NOON + 9, "ann")


async def test_what_a_person_discarded_stays_discarded_also_if_its_execution_goes_on(store: Store):
    await store.write([("upsert_dead_letter", [letter("d1"), letter("d2")])])
    await store.write([("resolve_dead_letter", [discarded("d1")])])

    again = [letter(name, resolution="REQUEUED", resolved_at=NOON + 20, reviewed_by="bob") for name in ("d1", "d2")]
    await store.write([("upsert_dead_letter", again)])

    found = [await dlq.get(store, "default", name) for name in ("d1", "d2")]
    assert [each and each.resolution for each in found] == ["DISCARDED", "REQUEUED"]


async def test_notes_are_kept_and_added_to_also_after_a_resolution(store: Store):
    await store.write([("upsert_dead_letter", [letter("d1")])])
    async with store.transaction() as tx:
        answers = [
            await dlq.note(tx, "default", "d1", "asked the bank"),
            await dlq.note(tx, "other", "d1", "not mine"),
        ]
        await dlq.resolve(tx, discarded("d1"))
        await dlq.note(tx, "default", "d1", "they said no")

    found = await dlq.get(store, "default", "d1")
    assert answers == [True, False]
    assert found is not None
    assert found.notes == "asked the bank\nthey said no"


async def test_dead_letters_are_listed_newest_first_by_state_and_fingerprint(store: Store):
    await store.write([("upsert_dead_letter", [letter(f"d{n}", fingerprint=f"f{n % 2}") for n in range(6)])])
    await store.write([("resolve_dead_letter", [discarded("d4")])])

    async def ids(workspace: str = "default", **options: object) -> list[str]:
        return [found.id for found in await dlq.listed(store, workspace, **options)]

    assert await ids() == ["d5", "d3", "d2", "d1", "d0"]
    assert await ids(before="d3", limit=2) == ["d2", "d1"]
    assert await ids(fingerprint="f0") == ["d2", "d0"]
    assert await ids(resolution=Resolution.DISCARDED) == ["d4"]
    assert await ids("other") == []


async def test_what_failed_alike_is_one_group_and_the_newest_speaks_for_it(store: Store):
    letters = [
        letter("d1", fingerprint="rare", created_at=NOON),
        letter("d2", fingerprint="often", created_at=NOON + 1, reason="first"),
        letter("d3", fingerprint="often", created_at=NOON + 2, reason="last"),
        letter("d4", fingerprint="often", created_at=NOON + 3, resolution="FIXED"),
        letter("d5", fingerprint="often", workspace="other"),
    ]
    await store.write([("upsert_dead_letter", letters)])

    assert await dlq.groups(store, "default") == [
        Group("often", 2, NOON + 1, NOON + 2, "w1", "a", "MAX_RETRIES", "last"),
        Group("rare", 1, NOON, NOON, "w1", "a", "MAX_RETRIES", "no answer"),
    ]


async def test_groups_are_listed_page_by_page(store: Store):
    counts = {"a": 1, "b": 3, "c": 2, "d": 2, "e": 1}
    letters = [letter(f"{name}{n}", fingerprint=name) for name, count in counts.items() for n in range(count)]
    await store.write([("upsert_dead_letter", letters)])

    pages, after = [], dlq.FIRST_GROUP
    while page := await dlq.groups(store, "default", after=after, limit=2):
        pages.append([group.fingerprint for group in page])
        after = page[-1].cursor

    assert pages == [["b", "c"], ["d", "a"], ["e"]]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(), ["d1", "d2", "d3"]),
        (Wanted(fingerprint="f2"), ["d2", "d3"]),
        (Wanted(workflow="w2"), ["d3"]),
        (Wanted(node="b"), ["d2"]),
        (Wanted(failure_type="MANUAL"), ["d1"]),
        (Wanted(fingerprint="f2", node="b"), ["d2"]),
        (Wanted(fingerprint="f1", node="b"), []),
    ],
)
async def test_what_waits_for_a_person_is_found_by_what_it_is_about(store: Store, wanted: Wanted, found: list[str]):
    letters = [
        letter("d1", failure_type="MANUAL"),
        letter("d2", fingerprint="f2", node="b"),
        letter("d3", fingerprint="f2", workflow="w2"),
        letter("d4", resolution="FIXED"),
        letter("d5", workspace="other"),
    ]
    await store.write([("upsert_dead_letter", letters)])

    assert [each.id for each in await dlq.pending(store, "default", wanted)] == found
    assert [each.id for each in await dlq.pending(store, "default", wanted, after="d1", last="d2")] == [
        each for each in found if each == "d2"
    ]


async def test_the_dead_letters_of_an_execution_are_listed_in_every_state(store: Store):
    letters = [letter("d2", resolution="FIXED"), letter("d1"), letter("d3", execution="e2")]
    await store.write([("upsert_dead_letter", letters)])

    assert [found.id for found in await dlq.of_execution(store, "e1")] == ["d1", "d2"]
