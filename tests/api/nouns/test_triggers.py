"""Triggers over HTTP: declared or made by hand, switched, fired, tried out, filled in; and told of."""

import asyncio
from typing import Any

import pytest

from ropewalk.access.rights import Role
from ropewalk.core.duration import HOUR
from ropewalk.core.instant import rfc3339
from ropewalk.triggers.scheduler import Scheduler
from tests.api.stories import Town

TRIGGERS = "/triggers"
HOURLY = {
    "ropewalk": 1,
    "name": "hourly",
    "nodes": [{"id": "a", "type": "noop"}],
    "triggers": [{"every": "1h", "name": "clock", "when": "{{ event.off != true }}", "input": "{{ event }}"}],
}


async def declared(town: Town) -> dict[str, Any]:
    await town.save(HOURLY)
    (found,) = (await town.get(TRIGGERS))["items"]
    return dict(found)


async def test_a_published_trigger_is_listed_with_words_and_its_next_due_time(town: Town):
    found = await declared(town)

    assert (found["name"], found["kind"], found["workflow"]) == ("clock", "CRON", "hourly")
    assert (found["words"], found["enabled"], found["declared"]) == ("every 1h", True, True)
    assert await town.get(f"{TRIGGERS}/clock") == found
    assert (await town.get(f"{TRIGGERS}?workflowId=hourly"))["items"] == [found]
    assert len((await town.get(f"{TRIGGERS}/{found['id']}/next?count=3"))["times"]) == 3


async def test_it_is_fired_by_hand_also_while_it_is_off_and_the_fire_is_listed(town: Town):
    await declared(town)
    off = await town.tell(f"{TRIGGERS}/clock/disable", {})
    again = await town.tell(f"{TRIGGERS}/clock/disable", {})

    fired = await town.tell(f"{TRIGGERS}/clock/fire", {"event": {"n": 1}})
    skipped = await town.tell(f"{TRIGGERS}/clock/fire", {"event": {"off": True}})

    assert (off.json()["changed"], again.json()["changed"]) == (True, False)
    assert fired.status_code == 202
    fires = (await town.get(f"{TRIGGERS}/clock/fires?limit=1"))["items"]
    older = (await town.get(f"{TRIGGERS}/clock/fires"))["items"]
    assert (skipped.json()["reason"], fires[0]["reason"], older[1]["executionId"]) == (
        "FILTERED", "FILTERED", fired.json()["executionId"],
    )  # fmt: skip
    execution = await town.get(f"/workflow/executions/{fired.json()['executionId']}")
    assert (execution["trigger"], execution["input"]) == ("CRON", {"n": 1})
    reasons = (await town.get(f"{TRIGGERS}/clock/explain"))["reasons"]
    assert reasons[0].startswith("it is switched off: ropewalk triggers enable ")
    assert reasons[1] == "skipped 1 of 2 in the last day because `when` was not true"


async def test_it_is_tried_out_without_starting_anything(town: Town):
    await declared(town)

    would = await town.tell(f"{TRIGGERS}/clock/test", {"event": {"n": 1}})
    would_not = await town.tell(f"{TRIGGERS}/clock/test", {"event": {"off": True}})

    assert would.json() == {"starts": True, "reason": None, "detail": None, "input": {"n": 1}, "version": 1}
    assert (would_not.json()["starts"], would_not.json()["reason"]) == (False, "FILTERED")
    assert (await town.get("/workflow/executions"))["items"] == []


async def test_one_made_by_hand_starts_the_published_version_until_it_is_removed(town: Town):
    await declared(town)
    made = await town.tell(TRIGGERS, {"workflowId": "hourly", "settings": {"cron": "@daily", "name": "mine"}})
    twice = await town.tell(TRIGGERS, {"workflowId": "hourly", "settings": {"cron": "@daily", "name": "mine"}})

    gone = await town.ask("DELETE", f"{TRIGGERS}/{made.json()['id']}")
    kept = await town.ask("DELETE", f"{TRIGGERS}/clock")

    assert (made.status_code, made.json()["declared"], made.json()["version"]) == (201, False, None)
    assert (twice.status_code, gone.json()["changed"], kept.status_code) == (409, True, 409)
    assert [each["name"] for each in (await town.get(TRIGGERS))["items"]] == ["clock"]
    verbs = [each["verb"] for each in (await town.get("/activity?limit=200"))["items"]]
    assert {"create-trigger", "remove-trigger"} <= set(verbs)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({}, "settings"),
        ({"cron": "0 0 30 2 *"}, "settings.cron"),
        ({"cron": "*/0 * * * *"}, "settings.cron"),
        ({"cron": "@every 0s"}, "settings.cron"),
        ({"every": "0s"}, "settings.every"),
        ({"cron": "@daily", "zone": "Mars/Olympus"}, "settings.zone"),
        ({"cron": ["@daily"] * 5_000}, "settings.cron"),
        ({"every": "1h", "colour": 1}, "settings.colour"),
        ({"event": "a..b"}, "settings.event"),
        ({"webhook": "a"}, "settings"),
        ({"webhook": "a", "credential": "nothing"}, "settings.credential"),
    ],
)
async def test_what_is_no_trigger_is_refused_with_the_field(town: Town, settings: Any, field: str):
    await declared(town)

    answer = await town.tell(TRIGGERS, {"workflowId": "hourly", "settings": settings})

    assert answer.status_code == 422
    assert answer.json()["problems"][0]["field"] == field
    assert len((await town.get(TRIGGERS))["items"]) == 1


async def test_a_range_is_filled_in_one_after_the_other_and_a_dry_run_starts_nothing(town: Town):
    await declared(town)
    now = town.service.store.now()
    wanted = {"since": rfc3339(now - 5 * HOUR), "until": rfc3339(now)}

    dry = (await town.tell(f"{TRIGGERS}/clock/backfill", {**wanted, "dryRun": True})).json()
    begun = (await town.tell(f"{TRIGGERS}/clock/backfill", wanted)).json()
    scheduler = Scheduler(town.service)
    async with asyncio.timeout(30):
        while len((await town.get(f"{TRIGGERS}/{begun['trigger']}/fires"))["items"]) < 5:
            await scheduler.fire_due()

    found = (await town.get("/workflow/executions?trigger=CRON"))["items"]
    assert (dry["count"], dry["trigger"], begun["count"], len(found)) == (5, None, 5, 5)
    assert dry["times"] == begun["times"]


async def test_a_viewer_sees_when_it_fires_and_not_what_was_sent(town: Town):
    await declared(town)
    await town.tell(f"{TRIGGERS}/clock/fire", {"event": {"off": True}})
    viewer = await town.key(Role.VIEWER)

    (fire,) = (await town.get(f"{TRIGGERS}/clock/fires", viewer))["items"]
    refused = await town.tell(f"{TRIGGERS}/clock/fire", {}, viewer)

    assert (fire["reason"], fire["key"]) == ("FILTERED", None)
    assert fire["detail"].startswith("withheld")
    assert refused.status_code == 403


async def test_a_trigger_that_is_not_there_is_a_404(town: Town):
    assert (await town.ask("GET", f"{TRIGGERS}/nothing")).status_code == 404
    assert (await town.tell(TRIGGERS, {"workflowId": "nothing", "settings": {"every": "1h"}})).status_code == 404
