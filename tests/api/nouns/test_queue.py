"""The queue over HTTP: where an accepted start stands, from acceptance to the end."""

import pytest

from ropewalk.access.rights import Role
from tests.api.stories import EXECUTIONS, GATED, ONE, START, UNKNOWN_ID, Town, town_on
from tests.api.streaming.test_stream_fleet import idle_house
from tests.engines.worlds import ONCE, act, flow

QUEUE = "/workflow/queue"
THEIRS = flow(act("a"), name="theirs")


async def test_an_item_tells_its_place_until_it_is_dispatched_and_done(database: str):
    async with town_on(database, default_slots=1) as town:
        first = await town.start(GATED)
        await town.outside.gate().arrived()
        second, third = await town.start(GATED), await town.start(GATED)

        waiting = [await town.get(f"{QUEUE}/{each}") for each in (second, third)]
        running = await town.get(f"{QUEUE}/{first}")

        assert [(each["state"], each["position"], each["waiting"]) for each in waiting] == [
            ("PENDING", 1, 2),
            ("PENDING", 2, 2),
        ]
        assert (running["state"], running["executionState"], running["position"]) == ("DISPATCHED", "RUNNING", None)
        town.outside.gate().open()
        for each in (first, second, third):
            await town.service.ended(each)
        assert (await town.get(f"{QUEUE}/{third}"))["state"] == "DONE"


async def test_an_item_whose_execution_failed_says_why(town: Town):
    execution = await town.run(flow(act("a", fails=9, retry=ONCE)))

    found = await town.get(f"{QUEUE}/{execution}")

    assert (found["id"], found["state"], found["executionState"]) == (execution, "FAILED", "FAILED")
    assert "no luck" in found["error"]


async def test_an_item_of_another_answers_like_one_that_is_not_there(town: Town):
    await town.workspace("acme")
    foreign, stranger = await town.run(THEIRS, workspace="acme"), await town.key(Role.ADMIN)

    answers = [await town.ask("GET", f"{QUEUE}/{each}", stranger) for each in (foreign, UNKNOWN_ID)]

    assert [each.status_code for each in answers] == [404, 404]


@pytest.mark.parametrize("name", ["a" * 65, "x%00", "a'b"])
async def test_an_id_that_cannot_be_is_refused(town: Town, name: str):
    assert (await town.ask("GET", f"{QUEUE}/{name}")).status_code == 422


async def test_a_start_that_the_server_only_accepts_says_so(each_db: str):
    async with idle_house(each_db) as house:
        workflow = await house.save(ONE)
        started = await house.ask("POST", START, json={"workflowDefinitionId": workflow})
        answer = await house.ask("GET", f"{EXECUTIONS}/{started.json()['executionId']}/explain")

    [reason] = answer.json()["reasons"]
    assert (reason["code"], reason["action"].startswith("start ")) == ("NO_WORKER", True)
