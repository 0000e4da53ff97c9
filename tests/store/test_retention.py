"""What is old goes, in bounded steps, and nothing goes that something keeps."""

from typing import Any

import pytest

from ropewalk.core.duration import DAY, HOUR
from ropewalk.store import audit, retention, singletons
from ropewalk.store.access import Batch, Store, json_list
from ropewalk.store.ids import first_id
from ropewalk.store.retention import MOST_EVENTS, Cutoffs
from ropewalk.store.rows import AuditEntry, BlobEntry, BlobReference, DeadLetterResolution, NewEventWait, NewSignal
from tests.store.samples import NOON, entries, execution, known_blobs, letter, live_row, run, waiting

MONTH = 30 * DAY
OLD = NOON - 40 * DAY
CUT = Cutoffs(now=NOON, executions=NOON - MONTH, letters=NOON - MONTH, blobs=NOON - DAY)


def name(number: int, at: int = OLD) -> str:
    """The id of an execution accepted then."""
    return f"{first_id(at)}-7000-8000-{number:012x}"


ONE, TWO = name(1), name(2)


def ended(*ids: str, at: int = OLD, **changes: Any) -> Batch:
    return [
        ("insert_execution", [execution(each, accepted_at=at, **changes) for each in ids]),
        ("set_execution", [("SUCCESS", at, at + 5, None, each) for each in ids]),
    ]


def discarded(id: str, at: int) -> DeadLetterResolution:  # noqa: A002 (the column's name)
    return DeadLetterResolution("DISCARDED", at, "ann", None, id)


async def remove(store: Store, after: str = "", limit: int = 100) -> tuple[int, str | None]:
    async with store.transaction() as tx:
        removed, at = await retention.remove_executions(tx, after, CUT, limit)
    return len(removed), at


async def left(store: Store) -> list[str]:
    return [
        row[0]
        for row in await store.fetch(
            "list_executions", "default", "~", None, None, None, 0, 2**62, "", 100, None, 1, None, None
        )
    ]


async def test_an_execution_goes_with_everything_that_speaks_of_it_and_no_other_does(store: Store):
    for each in (ONE, name(2, NOON)):
        await store.write(ended(each, at=OLD if each == ONE else NOON))
        await store.write(
            [
                ("insert_log", entries(each, 3)),
                ("upsert_run", [run(f"run of {each}", execution=each)]),
                ("upsert_dead_letter", [letter(f"letter of {each}", execution=each)]),
                ("resolve_dead_letter", [discarded(f"letter of {each}", OLD)]),
                ("insert_inbox", [NewSignal(f"signal to {each}", each, "{}", OLD)]),
                ("insert_event_wait", [NewEventWait(each, "a", -1, 1, "default", "x", None, None)]),
                ("insert_queue", [waiting(each, state="FAILED")]),
                ("insert_blob_reference", [BlobReference("h", each)]),
            ]
        )

    answer = await remove(store)

    assert answer == (1, None)
    for each, count in ((ONE, 0), (name(2, NOON), 1)):
        found = [
            await store.fetch("log_entries", each, 3, 1),
            await store.fetch("list_runs", each, "", None, None, 9),
            await store.fetch("list_execution_dead_letters", each, 9),
            await store.fetch("list_inbox", each, 9),
            await store.fetch("event_waits_of", json_list([each])),
            await store.fetch("get_queue", each),
            await store.fetch("load_execution", each),
        ]
        assert [len(rows) for rows in found] == [count] * len(found)


KEEPERS: dict[str, Batch] = {
    "it is not over": [("set_execution", [("RUNNING", OLD, None, None, ONE)])],
    "it ended lately": [("set_execution", [("SUCCESS", OLD, NOON - DAY, None, ONE)])],
    "someone has it in hand": [("insert_live", [live_row(ONE)])],
    "its parent is not over": [("insert_live", [live_row("above")])],
    "it has a child": [("insert_execution", [execution(name(9, NOON), parent=ONE)])],
    "a dead letter waits for a person": [("upsert_dead_letter", [letter(execution=ONE)])],
    "a dead letter of its parent does": [("upsert_dead_letter", [letter(execution="above")])],
    "a dead letter was resolved lately": [
        ("upsert_dead_letter", [letter(execution=ONE)]),
        ("resolve_dead_letter", [discarded("d1", NOON - DAY)]),
    ],
    "it was told something just now": [("insert_inbox", [NewSignal("s", ONE, "{}", NOON - 5)])],
}


@pytest.mark.parametrize("keeper", KEEPERS.values(), ids=list(KEEPERS))
async def test_an_execution_stays_as_long_as_something_keeps_it(store: Store, keeper: Batch):
    await store.write([*ended(ONE, parent="above"), *ended(TWO, parent="another")])
    await store.write(keeper)

    answer = await remove(store)

    assert answer == (1, None)
    assert await retention.count_executions(store, CUT) == 0
    assert ONE in await left(store)
    assert TWO not in await left(store)


LATELY: dict[str, Batch] = {
    "ended lately": [("set_execution", [("FAILED", OLD, NOON - DAY, "boom", ONE)])],
    "is not over": [("insert_live", [live_row(ONE)])],
    "had a dead letter resolved lately": [
        ("upsert_dead_letter", [letter(execution=ONE)]),
        ("resolve_dead_letter", [discarded("d1", NOON - DAY)]),
    ],
    "was told something just now": [("insert_inbox", [NewSignal("s", ONE, "{}", NOON - 5)])],
}


@pytest.mark.parametrize("keeper", LATELY.values(), ids=list(LATELY))
async def test_everything_below_stays_with_what_can_be_reopened(store: Store, keeper: Batch):
    below = name(3)
    await store.write([*ended(ONE), *ended(TWO, parent=ONE), *ended(below, parent=TWO)])
    await store.write(keeper)

    answer = await remove(store)

    assert answer == (0, None)
    assert await left(store) == [below, TWO, ONE]


@pytest.mark.parametrize(("held_at", "removed"), [(NOON - 2 * HOUR, 1), (NOON, 0)])
async def test_what_is_about_to_be_reopened_stays_for_a_while(store: Store, held_at: int, removed: int):
    await store.write(ended(ONE))
    async with store.transaction() as tx:
        held = [await retention.hold(tx, each, held_at) for each in (ONE, "gone")]

    answer = await remove(store)

    assert held == [True, False]
    assert answer == (removed, None)


async def test_old_executions_are_walked_a_few_at_a_time_and_each_is_looked_at_once(store: Store):
    await store.write(ended(*(name(number) for number in range(7))))
    await store.write([("insert_live", [live_row(name(1))])])

    steps, after = [], ""
    while after is not None:
        removed, after = await remove(store, after, limit=3)
        steps.append(removed)

    assert steps == [2, 3, 1]
    assert await left(store) == [name(1)]


async def test_long_logs_are_not_removed_together(store: Store):
    await store.write(ended(*(name(number) for number in range(3))))
    await store.write([("insert_log", [(name(number), MOST_EVENTS // 2, b"") for number in range(3)])])

    first = await remove(store)
    second = await remove(store, first[1] or "")

    assert (first, second) == ((2, name(1)), (1, None))


async def test_children_go_before_their_parents(store: Store):
    await store.write([*ended(ONE), *ended(TWO, parent=ONE), *ended(name(3), parent=TWO)])

    rounds = [await remove(store) for _ in range(4)]

    assert rounds == [(1, None), (1, None), (1, None), (0, None)]


async def test_letters_that_were_requeued_or_fixed_are_forgotten_and_those_the_log_does_not_know_of_stay(
    store: Store,
):
    resolutions = ("REQUEUED", "FIXED", "DISCARDED")
    letters = [letter(f"{each} {at}") for each in resolutions for at in (OLD, NOON)]
    await store.write([("upsert_dead_letter", [*letters, letter("PENDING")])])
    changes = [(each, at, "ann", None, f"{each} {at}") for each in resolutions for at in (OLD, NOON)]
    await store.write([("resolve_dead_letter", changes)])

    async with store.transaction() as tx:
        forgotten = [await retention.forget_letters(tx, CUT.letters, 1) for _ in range(3)]

    kept = [row[0] for row in await store.fetch("list_execution_dead_letters", "e1", 9)]
    assert forgotten == [1, 1, 0]
    assert kept == sorted([f"DISCARDED {OLD}", "PENDING", *(f"{each} {NOON}" for each in resolutions)])


# Blobs


class Values:
    """Where values are kept; some were used lately, also if the rows say otherwise."""

    def __init__(self, *used: str) -> None:
        self.used = used
        self.removed: list[str] = []

    async def remove(self, tx: object, digest: str) -> bool:
        if digest not in self.used:
            self.removed.append(digest)
        return digest not in self.used


async def remove_blobs(store: Store, values: Values, limit: int = 100) -> tuple[int, str | None]:
    async with store.transaction() as tx:
        return await retention.remove_blobs(tx, values, "", CUT, limit)


async def test_a_blob_goes_when_no_log_names_it_and_it_was_not_used_lately(store: Store):
    made = {"a unused": OLD, "b named": OLD, "c new": NOON, "d found again": OLD}
    await store.write([("insert_blob", [BlobEntry(digest, 9, at) for digest, at in made.items()])])
    await store.write([("insert_blob_reference", [BlobReference("b named", ONE)])])
    values = Values("d found again")

    answer = await remove_blobs(store, values)

    assert answer == (1, None)
    assert values.removed == ["a unused"]
    assert list(await known_blobs(store)) == ["b named", "c new", "d found again"]


async def test_a_blob_that_is_recorded_again_counts_as_used_from_then_on(store: Store):
    await store.write([("insert_blob", [BlobEntry("h", 9, OLD)])])
    await store.write([("insert_blob", [BlobEntry("h", 9, NOON)])])

    assert await remove_blobs(store, Values()) == (0, None)
    assert list(await known_blobs(store)) == ["h"]


async def test_a_blob_outlives_the_last_execution_that_names_it(store: Store):
    await store.write([*ended(ONE), ("insert_blob", [BlobEntry("h", 9, OLD)])])
    await store.write([("insert_blob_reference", [BlobReference("h", ONE), BlobReference("h", ONE)])])
    await remove(store)

    at_once = await remove_blobs(store, Values())
    later = Cutoffs(now=NOON + DAY, executions=0, letters=0, blobs=NOON)
    async with store.transaction() as tx:
        after_a_day = await retention.remove_blobs(tx, Values(), "", later, 100)

    assert (at_once, after_a_day) == ((0, None), (1, None))


async def test_a_blob_that_another_log_names_stays(store: Store):
    await store.write([*ended(ONE), ("insert_blob", [BlobEntry("h", 9, OLD)])])
    await store.write([("insert_blob_reference", [BlobReference("h", ONE), BlobReference("h", "another")])])
    await remove(store)
    later = Cutoffs(now=NOON + 9 * DAY, executions=0, letters=0, blobs=NOON)

    async with store.transaction() as tx:
        answer = await retention.remove_blobs(tx, Values(), "", later, 100)

    assert answer == (0, None)


async def test_blobs_are_walked_a_few_at_a_time(store: Store):
    await store.write([("insert_blob", [BlobEntry(f"h{number}", 9, OLD) for number in range(3)])])

    assert await remove_blobs(store, Values(), limit=2) == (2, "h1")


# Singletons


async def test_of_several_workers_one_has_the_turn_until_it_leaves_or_its_time_is_over(store: Store):
    async with store.transaction() as tx:
        taken = [
            await singletons.take(tx, "retention", "ann", NOON + 10, NOON),
            await singletons.take(tx, "retention", "bob", NOON + 10, NOON),
            await singletons.take(tx, "other", "bob", NOON + 10, NOON),
            await singletons.take(tx, "retention", "ann", NOON + 20, NOON + 5),
            await singletons.take(tx, "retention", "bob", NOON + 30, NOON + 19),
            await singletons.take(tx, "retention", "bob", NOON + 30, NOON + 20),
        ]
        await singletons.leave(tx, "retention", "ann")
        still = await singletons.take(tx, "retention", "ann", NOON + 40, NOON + 21)
        await singletons.leave(tx, "retention", "bob")
        free = await singletons.take(tx, "retention", "ann", NOON + 40, NOON + 21)

    assert taken == [True, False, True, True, False, True]
    assert (still, free) == (False, True)


async def test_the_audit_log_forgets_what_is_old_by_the_time_of_the_store(store: Store):
    """A clock that was wrong when an entry got its id does not make it old."""
    about = ("default", "ann", "cancel", "e1", None, None, None)
    async with store.transaction() as tx:
        await audit.append(tx, AuditEntry(name(1), OLD, *about))
        await audit.append(tx, AuditEntry(name(2), NOON, *about))
        forgotten = await retention.forget_audit(tx, NOON - MONTH, 100)

    assert forgotten == 1
    assert [entry.id for entry in await audit.listed(store, "default")] == [name(2)]
