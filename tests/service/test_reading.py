"""What people read is what is recorded, also from another process."""

import pytest

from ropewalk.core.errors import NotFound
from ropewalk.core.events import RunWaiting
from ropewalk.core.state import ExecutionState, Resolution
from ropewalk.service import reading
from ropewalk.store.executions import Filter
from ropewalk.store.sqlite import SqliteReader
from tests.engines.worlds import ONCE, World, act, flow, node

ASK = node("ask", "approval", title="Really?")
UNKNOWN = "00000000-0000-7000-8000-000000000000"


async def test_executions_are_listed_newest_first_and_page_by_page(world: World):
    started = [(await world.run(flow(act("a")), number)).execution for number in range(5)]
    store = world.service.store

    first = await reading.list_executions(store, "default", Filter(), limit=3)
    rest = await reading.list_executions(store, "default", Filter(), before=first[-1]["id"])

    assert [each["id"] for each in first + rest] == started[::-1]
    assert {each["workflow"] for each in first} == {"test"}


async def test_executions_are_found_by_state(world: World):
    good = await world.run(flow(act("a")))
    bad = await world.run(flow(act("a", fails=9, retry=ONCE)))
    live = await world.start(flow(ASK))
    await world.until(live, RunWaiting)

    found = {
        state: [
            each["id"] for each in await reading.list_executions(world.service.store, "default", Filter(state=state))
        ]
        for state in (ExecutionState.SUCCESS, ExecutionState.FAILED, ExecutionState.RUNNING)
    }

    assert list(found.values()) == [[good.execution], [bad.execution], [live]]
    assert await world.service.cancel(live)


async def test_an_execution_says_what_it_waits_for(world: World):
    asking = await world.start(flow(ASK))
    await world.until(asking, RunWaiting)
    held = await world.start(flow(node("a", "gate"), name="held"))
    await world.outside.gate().arrived()

    assert (await world.details(asking))["waitingFor"] == "approval"
    assert (await world.details(held))["waitingFor"] is None
    await world.service.pause(asking)
    assert (await world.details(asking))["waitingFor"] == "resume"
    await world.service.cancel(asking)
    assert (await world.details(asking))["waitingFor"] is None


async def test_the_log_is_read_as_numbered_envelopes_from_any_place(world: World):
    ended = await world.run(flow(act("a"), act("b"), edges="a->b"))

    every = await reading.list_events(world.service.store, ended.execution)
    rest = await reading.list_events(world.service.store, ended.execution, after=3)

    assert [each["seq"] for each in every] == list(range(1, len(every) + 1))
    assert {each["executionId"] for each in every} == {ended.execution}
    assert (every[0]["type"], every[-1]["type"]) == ("ExecutionAccepted", "ExecutionSucceeded")
    assert rest == every[3:]


async def test_runs_tell_every_attempt(world: World):
    ended = await world.run(flow(act("a", fails=1, message="once")))

    first, second = await world.runs(ended.execution)

    assert (first["state"], first["errorType"], first["error"]) == ("FAILED", "TRANSIENT", "once")
    assert first["retryAfter"] is not None
    assert (second["state"], second["attempt"], second["error"]) == ("SUCCESS", 2, None)


async def test_a_dead_letter_tells_what_was_tried_and_how_it_was_configured(world: World):
    ended = await world.run(flow(act("a", 7, fails=9, retry=ONCE)))
    (listed,) = await world.letters(ended.execution)

    letter = await reading.get_dead_letter(world.service.store, "default", listed["id"])

    assert {**letter, "errorDetail": None} == listed
    assert letter["errorDetail"].endswith("NodeFailure: no luck")
    assert letter["inputs"] == {"value": 7, "fails": 9}
    assert letter["config"]["type"] == "act"


async def test_failures_that_differ_in_their_numbers_only_have_one_fingerprint(world: World):
    for order in (1, 22):
        await world.run(flow(act("a", fails=9, message="order {{ input }} refused", retry=ONCE)), order)
    await world.run(flow(act("a", fails=9, message="no connection", retry=ONCE)))

    letters = await reading.list_dead_letters(world.service.store, "default", Resolution.PENDING)

    assert len({letter["fingerprint"] for letter in letters}) == 2


async def test_what_does_not_exist_or_belongs_to_another_workspace_is_not_found(world: World):
    store = world.service.store
    ended = await world.run(flow(act("a", fails=9, retry=ONCE)))
    (letter,) = await world.letters(ended.execution)

    for execution, workspace in ((UNKNOWN, "default"), (ended.execution, "other")):
        with pytest.raises(NotFound):
            await reading.get_execution(store, store.blobs, workspace, execution)
    for letter_id, workspace in ((UNKNOWN, "default"), (letter["id"], "other")):
        with pytest.raises(NotFound):
            await reading.get_dead_letter(store, workspace, letter_id)
    for read in (reading.list_events, reading.list_runs):
        with pytest.raises(NotFound):
            await read(store, UNKNOWN)


async def test_another_reader_sees_the_same_while_the_owner_executes(world: World):
    execution = await world.start(flow(node("a", "gate"), act("b"), edges="a->b"))
    await world.outside.gate().arrived()
    reader = await SqliteReader.open(world.db)

    seen = await reading.get_execution(reader, world.service.store.blobs, "default", execution)
    world.outside.gate().open()
    await world.ended(execution)
    after = await reading.get_execution(reader, world.service.store.blobs, "default", execution)
    await reader.close()

    assert [each["state"] for each in seen["nodes"]] == ["RUNNING", "WAITING"]
    assert (after["state"], after["output"]) == ("SUCCESS", {"b": None})
