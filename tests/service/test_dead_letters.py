"""Dead letters: each decision is made once and audited once, also when many are worked off at a time."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from ropewalk.core.errors import InvalidInput, InvalidTransition, NotFound
from ropewalk.core.state import ExecutionState, Resolution
from ropewalk.service import bulk, dead_letters
from ropewalk.service.bulk import Outcome, Pace, Progress
from ropewalk.store import audit, dlq
from ropewalk.store.dlq import Wanted
from tests.engines.worlds import ONCE, World, act, flow, node

UNKNOWN = "00000000-0000-7000-8000-000000000000"
WEAK = flow(act("a", fails=1, retry=ONCE), name="weak")
BROKEN = flow(act("a", fails=99, retry=ONCE), name="broken")


async def failed(world: World, document: dict[str, Any], count: int) -> list[str]:
    """The executions that gave up."""
    return [(await world.run(document, number)).execution for number in range(count)]


async def fingerprint(world: World, execution: str) -> str:
    (letter,) = await world.letters(execution)
    return str(letter["fingerprint"])


async def requeued(world: World, wanted: Wanted, **pace: Any) -> list[Progress]:
    """What is told of it, when all that it set going is over."""
    told = [each async for each in world.service.letters.requeue_all(wanted, Pace(**pace), "ann")]
    await over(world, told)
    return told


async def over(world: World, told: list[Progress]) -> None:
    for each in told:
        if each.outcome is Outcome.REQUEUED:
            await world.ended(each.execution)


async def verbs(world: World) -> list[tuple[str, str]]:
    rows = await audit.listed(world.service.store, "default", limit=200)
    return [(row.verb, row.actor) for row in reversed(rows) if row.verb != "start"]


# One letter


async def test_notes_are_added_with_who_and_when_also_to_resolved_letters(world: World):
    (execution,) = await failed(world, BROKEN, 1)
    (letter,) = await world.letters(execution)
    await world.service.note(letter["id"], "asked the bank", "ann")
    await world.service.discard(letter["id"], "bob", "they said no\nfor good")
    await world.service.note(letter["id"], " what a pity ", "cid")

    found = await dlq.get(world.service.store, "default", letter["id"])
    assert found is not None
    lines = (found.notes or "").split("\n")
    assert [line.partition("Z ")[2] or line for line in lines] == [
        "ann: asked the bank",
        "bob: they said no",
        "  for good",
        "cid: what a pity",
    ]
    assert await verbs(world) == [("note", "ann"), ("discard", "bob"), ("note", "cid")]


@pytest.mark.parametrize("text", ["", "  ", "x" * 4001, "a\0b"])
async def test_a_note_without_sense_is_refused_and_changes_nothing(world: World, text: str):
    (execution,) = await failed(world, BROKEN, 1)
    (letter,) = await world.letters(execution)

    for said in (world.service.note(letter["id"], text), world.service.discard(letter["id"], notes=text)):
        with pytest.raises(InvalidInput):
            await said

    assert await world.letters(execution) == [letter]
    assert await verbs(world) == []


async def test_notes_have_an_end_and_a_letter_that_is_full_of_them_is_discarded_without(world: World):
    (execution,) = await failed(world, BROKEN, 1)
    (letter,) = await world.letters(execution)
    for _ in range(dlq.MOST_NOTES // dead_letters.LONGEST_NOTE - 1):
        await world.service.note(letter["id"], "x" * dead_letters.LONGEST_NOTE)

    for said in (world.service.note, world.service.discard):
        with pytest.raises(InvalidTransition, match="are full: 100,000 characters are kept"):
            await said(letter["id"], **{"text" if said == world.service.note else "notes": "y" * 4_000})
    await world.service.discard(letter["id"])

    found = await dlq.get(world.service.store, "default", letter["id"])
    assert found is not None
    assert (found.resolution, len(found.notes or "") <= dlq.MOST_NOTES, "y" in (found.notes or "")) == (
        Resolution.DISCARDED, True, False,
    )  # fmt: skip


async def test_there_is_nothing_to_say_about_a_letter_that_does_not_exist(world: World):
    with pytest.raises(NotFound):
        await world.service.note(UNKNOWN, "hello")

    assert await verbs(world) == []


# What failed alike


async def test_groups_tell_how_many_failed_alike_where_and_why(world: World):
    document = flow(act("a", fails=9, message="order {{ input }} refused", retry=ONCE), name="orders")
    orders = await failed(world, document, 3)
    (other,) = await failed(world, BROKEN, 1)
    store = world.service.store
    letters = [(await world.letters(execution))[0] for execution in orders]

    first, second = await dead_letters.groups(store, "default")

    assert first == {
        "fingerprint": letters[0]["fingerprint"],
        "count": 3,
        "workflow": "orders",
        "workflowId": first["workflowId"],
        "node": "a",
        "failureType": "MAX_RETRIES",
        "reason": "order 2 refused",
        "firstAt": letters[0]["createdAt"],
        "lastAt": letters[2]["createdAt"],
    }
    assert (second["fingerprint"], second["count"]) == (await fingerprint(world, other), 1)
    after = dlq.GroupCursor(3, first["fingerprint"])
    assert await dead_letters.groups(store, "default", after) == [second]


# Many letters


async def test_all_that_failed_alike_are_requeued_oldest_first_and_others_stay(world: World):
    weak, broken = await failed(world, WEAK, 5), await failed(world, BROKEN, 2)

    told = await requeued(world, Wanted(fingerprint=await fingerprint(world, weak[0])))

    assert [(each.execution, each.outcome) for each in told] == [(each, Outcome.REQUEUED) for each in weak]
    assert {(await world.ended(each)).state for each in weak} == {ExecutionState.SUCCESS}
    assert [len(await world.letters(each)) for each in broken] == [1, 1]
    assert await verbs(world) == [("requeue", "ann")] * 5


@pytest.mark.parametrize("by", ["workflow", "node", "failure_type"])
async def test_letters_are_chosen_by_what_they_are_about(world: World, by: str):
    (wanted,) = await failed(world, flow(act("x", fails=1, kind="PERMANENT", retry=ONCE), name="wanted"), 1)
    await failed(world, BROKEN, 1)
    (letter,) = await dlq.of_execution(world.service.store, wanted)

    told = await requeued(world, Wanted(**{by: getattr(letter, by)}))

    assert [each.execution for each in told] == [wanted]
    assert (await world.ended(wanted)).state is ExecutionState.SUCCESS


async def test_no_more_are_taken_than_wanted(world: World):
    weak = await failed(world, WEAK, 3)

    told = await requeued(world, Wanted(), limit=2)

    assert [each.execution for each in told] == weak[:2]
    assert [(await world.ended(each)).state for each in weak] == ["SUCCESS", "SUCCESS", "FAILED"]


async def test_what_fails_again_is_not_taken_up_a_second_time(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bulk, "_PAGE", 1)
    broken = await failed(world, BROKEN, 3)

    told = []
    async for progress in world.service.letters.requeue_all(Wanted(), Pace(limit=9)):
        told.append(progress.execution)
        # Its new letter lies there before the next page is read.
        await world.ended(progress.execution)

    assert told == broken
    assert [len(await world.letters(each)) for each in broken] == [1] * 3


async def test_the_rate_is_never_exceeded(world: World):
    await failed(world, WEAK, 5)
    clock, at, told = asyncio.get_running_loop().time, [], []

    async for progress in world.service.letters.requeue_all(Wanted(), Pace(rate=40)):
        at.append(clock())
        told.append(progress)
    await over(world, told)

    gaps = [later - earlier for earlier, later in pairwise(at)]
    assert len(gaps) == 4
    assert min(gaps) >= 1 / 40 - 0.001


@pytest.mark.parametrize("rate", [None, 20])
async def test_it_stops_as_soon_as_enough_have_failed_again(world: World, rate: float | None):
    broken = await failed(world, BROKEN, 8)

    told = await requeued(world, Wanted(), rate=rate, stop_after_failures=2)

    outcomes = [each.outcome for each in told]
    tried = outcomes.count(Outcome.REQUEUED)
    assert outcomes[-1] is Outcome.STOPPED
    assert outcomes.count(Outcome.FAILED) == 2
    assert tried == 2 if rate is None else tried < 8
    assert [each.execution for each in told if each.outcome is Outcome.FAILED] == broken[:2]
    assert told[-1].reason == "2 of those that were tried again have failed again"


async def test_failures_of_what_was_not_requeued_stop_nothing(world: World):
    document = flow(act("a", fails=1, retry=ONCE), act("b", fails=99, retry=ONCE), name="half")
    halves = await failed(world, document, 3)

    told = await requeued(world, Wanted(node="a"), stop_after_failures=1)

    assert [(each.execution, each.outcome) for each in told] == [(each, Outcome.REQUEUED) for each in halves]


async def test_an_execution_that_ends_without_a_new_letter_has_failed_all_the_same(world: World):
    document = flow(node("a", "gate"), timeout="500ms", name="late")
    executions = [await world.start(document, number) for number in range(2)]
    await world.outside.gate().arrived(2)
    for each in executions:
        await world.service.give_up(each, "a")
        await world.ended(each)

    told = await requeued(world, Wanted(), stop_after_failures=1)

    assert [each.outcome for each in told] == [Outcome.REQUEUED, Outcome.FAILED, Outcome.STOPPED]
    assert (await world.details(told[0].execution))["state"] == "TIMEOUT"


async def test_what_others_resolve_meanwhile_is_skipped_and_told(world: World):
    weak = await failed(world, WEAK, 3)
    (second,) = await world.letters(weak[1])

    told = []
    async for progress in world.service.letters.requeue_all(Wanted()):
        told.append(progress)
        if len(told) == 1:
            await world.service.discard(second["id"], "bob")
    await over(world, told)

    assert [each.outcome for each in told] == [Outcome.REQUEUED, Outcome.SKIPPED, Outcome.REQUEUED]
    assert told[1].reason == f"dead letter {second['id']} was DISCARDED by bob already"


async def test_two_who_work_off_the_same_letters_try_each_once_and_refuse_none(world: World):
    weak = await failed(world, WEAK, 5)

    both = await asyncio.gather(requeued(world, Wanted()), requeued(world, Wanted()))

    outcomes = sorted(progress.outcome for told in both for progress in told)
    assert set(outcomes) <= {Outcome.REQUEUED, Outcome.SKIPPED}
    assert outcomes.count(Outcome.REQUEUED) == 5
    assert [world.outside.saw(each, "a") for each in weak] == [2] * 5
    assert await verbs(world) == [("requeue", "ann")] * 5


async def test_a_letter_that_cannot_be_requeued_does_not_keep_the_others_from_it(world: World):
    held = await world.start(flow(act("a", fails=9, retry=ONCE), node("b", "gate"), name="held"))
    await world.outside.gate().arrived()
    await world.service.cancel(held)
    world.outside.gate().open()
    await world.ended(held)
    (weak,) = await failed(world, WEAK, 1)

    told = await requeued(world, Wanted())

    assert [(each.execution, each.outcome) for each in told] == [(held, Outcome.REFUSED), (weak, Outcome.REQUEUED)]


async def test_all_that_failed_alike_are_discarded_with_a_note(world: World):
    broken = await failed(world, BROKEN, 3)
    wanted = Wanted(fingerprint=await fingerprint(world, broken[0]))

    told = [each async for each in world.service.letters.discard_all(wanted, "ann", "too old", 2)]

    letters = [await world.letters(each, Resolution.DISCARDED) for each in broken]
    assert [each.outcome for each in told] == [Outcome.DISCARDED] * 2
    assert [[letter["notes"] for letter in each] for each in letters] == [["too old"], ["too old"], []]
    assert await verbs(world) == [("discard", "ann")] * 2


@pytest.mark.parametrize("pace", [{"rate": 0}, {"rate": -1.0}, {"stop_after_failures": 0}, {"limit": 0}])
def test_a_pace_that_makes_no_sense_is_refused(pace: dict[str, Any]):
    with pytest.raises(InvalidInput):
        Pace(**pace)
