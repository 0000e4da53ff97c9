"""Triggers by the client."""

import pytest

from ropewalk.client import AsyncClient
from ropewalk.core.errors import InvalidInput, NotFound

HOURLY = {
    "ropewalk": 1,
    "name": "hourly",
    "nodes": [{"id": "a", "type": "noop"}],
    "triggers": [{"every": "1h", "name": "clock", "input": "{{ event }}"}],
}


async def test_triggers_are_seen_switched_fired_and_removed(client: AsyncClient):
    await client.save(HOURLY, publish=True)
    made = await client.create_trigger("hourly", {"cron": "@daily", "name": "mine"})

    assert [each["name"] async for each in client.triggers(workflow="hourly")] == ["clock", "mine"]
    assert (await client.trigger("clock"))["words"] == "every 1h"
    assert len((await client.next_times("clock", 4))["times"]) == 4
    assert await client.disable_trigger("clock")
    assert not await client.disable_trigger("clock")
    assert await client.enable_trigger("clock")
    assert (await client.test_trigger("clock", {"n": 1}))["input"] == {"n": 1}
    fired = await client.fire_trigger("clock", {"n": 1})
    assert [each["executionId"] async for each in client.fires("clock")] == [fired["executionId"]]
    assert (await client.explain_trigger("clock"))["started"] == 1
    assert await client.remove_trigger(made["id"])
    with pytest.raises(NotFound):
        await client.trigger("mine")


async def test_a_range_that_makes_no_sense_is_refused(client: AsyncClient):
    await client.save(HOURLY, publish=True)

    with pytest.raises(InvalidInput, match="must be after since"):
        await client.backfill_trigger("clock", "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", dry_run=True)
    dry = await client.backfill_trigger("clock", "2026-01-01T00:00:00Z", "2026-01-01T03:00:00Z", dry_run=True)

    assert dry["count"] == 4
