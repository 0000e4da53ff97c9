"""A happening starts one execution or leaves one reason, whichever server has it, and whenever a server dies."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ropewalk.core.duration import MINUTE, SECOND
from ropewalk.core.errors import Unavailable
from ropewalk.service import Service, definitions, reading
from ropewalk.service.triggers.firing import Firing, Reason
from ropewalk.store import executions, triggers, workflows
from ropewalk.store.triggers import Trigger
from ropewalk.triggers.scheduler import Scheduler
from ropewalk.wiring import Settings, open_service

HOURLY: dict[str, Any] = {"cron": "@hourly", "name": "hourly"}


def document(*declared: dict[str, Any], node: str = "noop", **more: Any) -> dict[str, Any]:
    parameters = {"with": {"signal": "go"}} if node == "wait" else {}
    return {"ropewalk": 1, "name": "w", "nodes": [{"id": "a", "type": node, **parameters}],
            "triggers": list(declared), **more}  # fmt: skip


@pytest.fixture(params=["file", "server"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "ropewalk.db") if request.param == "file" else request.getfixturevalue("database")


@pytest.fixture
async def service(db: str) -> AsyncIterator[Service]:
    async with open_service(Settings(db=db)) as service:
        yield service


async def the_trigger(service: Service, *, name: str = "hourly") -> Trigger:
    return next(each for each in await triggers.listed(service.store, "default") if each.name == name)


async def saved(service: Service, *declared: dict[str, Any], **more: Any) -> Trigger:
    await service.save(document(*declared, **more))
    return await the_trigger(service, name=declared[0].get("name", "hourly"))


async def started(service: Service) -> list[dict[str, Any]]:
    return await reading.list_executions(service.store, "default", executions.ANY, limit=10_000)


async def set_back(service: Service, trigger: Trigger, by: int) -> None:
    """As if the last due time that was decided upon had been so long ago, and no server had been there since."""
    now = service.store.now()
    async with service.store.transaction() as tx:
        await tx.execute("move_trigger", now - by, now, trigger.id)


async def test_a_fire_starts_one_execution_that_says_what_started_it(service: Service):
    trigger = await saved(service, {**HOURLY, "input": {"at": "{{ event.dueAt }}"}, "priority": 7})

    fired = await Firing(service).fire(trigger, "k", {"dueAt": "noon"})
    again = await Firing(service).fire(trigger, "k", {"dueAt": "later"})

    (one,) = await started(service)
    story = await reading.recorded(service.store, one["id"])
    assert fired.is_new
    assert (again.execution, again.is_new) == (fired.execution, False)
    assert (one["id"], one["trigger"]) == (fired.execution, "CRON")
    assert (story.accepted.input, story.accepted.payload, story.accepted.priority) == (
        {"at": "noon"},
        {"dueAt": "noon"},
        7,
    )
    assert (await the_trigger(service)).last_execution == fired.execution


async def test_of_many_who_fire_the_same_at_once_one_starts_it(service: Service):
    trigger = await saved(service, HOURLY)

    async def fire() -> str | None:
        try:
            return (await Firing(service).fire(trigger, "k", {})).execution
        except Unavailable:
            return None

    found = await asyncio.gather(*[fire() for _ in range(20)])

    assert len(await started(service)) == 1
    assert len({each for each in found if each is not None}) == 1


@pytest.mark.parametrize(
    ("settings", "more", "reason", "detail"),
    [
        ({"when": "{{ event.x == 1 }}"}, {}, Reason.FILTERED, "`when` is not true"),
        ({"input": "{{ event.x + 1 }}"}, {}, Reason.INVALID, "input: "),
        ({"input": 5}, {"input": {"type": "string"}}, Reason.INVALID, "input"),
        ({"enabled": False}, {}, Reason.DISABLED, "switched off"),
    ],
)
async def test_what_starts_nothing_leaves_the_reason(service: Service, settings, more, reason, detail):
    trigger = await saved(service, {**HOURLY, **settings}, **more)

    fired = await Firing(service).fire(trigger, "k", {})

    assert (fired.execution, fired.reason) == (None, reason)
    assert detail in (fired.detail or "")
    assert await started(service) == []
    (fire,) = await triggers.fires(service.store, trigger.id)
    assert (fire.key, fire.reason) == ("k", reason)


@pytest.mark.parametrize(("overlap", "count", "reason"), [("skip", 1, Reason.OVERLAP), ("allow", 2, None)])
async def test_overlap_decides_while_the_last_one_is_under_way(service: Service, overlap, count, reason):
    await saved(service, {**HOURLY, "overlap": overlap}, node="wait")

    await Firing(service).fire(await the_trigger(service), "1", {})
    second = await Firing(service).fire(await the_trigger(service), "2", {})

    assert (second.reason, len(await started(service))) == (reason, count)


async def test_overlap_cancel_ends_the_last_one(service: Service):
    await saved(service, {**HOURLY, "overlap": "cancel"}, node="wait")

    first = await Firing(service).fire(await the_trigger(service), "1", {})
    second = await Firing(service).fire(await the_trigger(service), "2", {})

    assert first.execution is not None
    ended = await asyncio.wait_for(service.ended(first.execution), 30)
    assert (ended.state, second.reason) == ("CANCELLED", None)


async def test_overlap_queue_waits_for_the_end_of_the_last_one_and_then_starts_the_next(service: Service):
    await saved(service, {**HOURLY, "overlap": "queue", "misfire": "all"}, node="wait")
    first = await Firing(service).fire(await the_trigger(service), "1", {})
    assert first.execution is not None
    scheduler = Scheduler(service)
    await set_back(service, await the_trigger(service), 61 * MINUTE)

    await scheduler.fire_due()
    held = len(await started(service))
    await service.signal(first.execution, "go")
    await asyncio.wait_for(service.ended(first.execution), 30)
    async with service.store.transaction() as tx:
        await tx.execute("postpone_trigger", service.store.now(), (await the_trigger(service)).id)
    await scheduler.fire_due()

    assert (held, len(await started(service))) == (1, 2)


async def test_a_schedule_that_is_new_waits_for_its_first_due_time(service: Service):
    trigger = await saved(service, HOURLY)

    await Scheduler(service).fire_due()

    planned = await the_trigger(service)
    assert await started(service) == []
    assert planned.cursor_at is not None
    assert planned.next_at is not None
    assert 0 < planned.next_at - service.store.now() <= 60 * MINUTE
    assert trigger.cursor_at is None


async def test_missed_due_times_are_recorded_and_the_latest_is_started(service: Service):
    trigger = await saved(service, HOURLY)
    await set_back(service, trigger, 5 * 60 * MINUTE)

    while await Scheduler(service).fire_due():
        pass

    fires = await triggers.fires(service.store, trigger.id)
    assert sorted(fire.reason or "" for fire in fires) == ["", *["MISFIRE"] * 4]
    assert len({fire.key for fire in fires}) == 5
    assert len(await started(service)) == 1


async def test_two_servers_fire_every_due_time_once(service: Service):
    trigger = await saved(service, {**HOURLY, "misfire": "all", "overlap": "allow"})
    await set_back(service, trigger, 50 * 60 * MINUTE)
    servers = [Scheduler(service), Scheduler(service)]

    for _ in range(120):
        await asyncio.gather(*[each.fire_due() for each in servers])

    fires = await triggers.fires(service.store, trigger.id, limit=200)
    assert len(fires) == 50
    assert all(fire.execution for fire in fires)
    assert len(await started(service)) == 50


async def test_a_server_that_died_in_the_middle_loses_nothing_and_fires_nothing_twice(service: Service):
    trigger = await saved(service, {**HOURLY, "misfire": "all"})
    await set_back(service, trigger, 61 * MINUTE)
    async with service.store.transaction() as tx:
        (claimed,) = await triggers.claim_due(tx, service.store.now(), service.store.now() + SECOND // 100, 10)
    assert claimed.id == trigger.id

    found: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while not found:
            await Scheduler(service).fire_due()
            found = await started(service)
    await Scheduler(service).fire_due()

    assert len(await started(service)) == 1


async def test_the_triggers_of_the_published_version_fire_and_no_others(service: Service):
    trigger = await saved(service, HOURLY, {"every": "1m"})
    await service.save(document({**HOURLY, "cron": "@daily"}))

    (kept,) = await triggers.listed(service.store, "default")

    assert (kept.id, kept.version) == (trigger.id, 2)
    assert "@daily" in kept.settings


async def test_a_trigger_that_says_the_same_goes_on_where_it_was(service: Service):
    trigger = await saved(service, HOURLY)
    await Scheduler(service).fire_due()
    before = await the_trigger(service)
    await service.save(document(HOURLY, node="log", description="another"[:7]) | {"nodes": []})

    after = await the_trigger(service)

    assert (after.id, after.version) == (trigger.id, 2)
    assert (after.cursor_at, after.next_at) == (before.cursor_at, before.next_at)


async def test_an_archived_workflow_fires_nothing_and_comes_back_with_its_triggers(service: Service):
    trigger = await saved(service, HOURLY)
    workflow = await workflows.get_by_name(service.store, "default", "w")
    assert workflow is not None
    await definitions.archive(service, workflow, "me")

    assert await triggers.listed(service.store, "default") == []
    fired = await Firing(service).fire(trigger, "k", {})
    assert fired.reason == Reason.MISSING

    await service.save(document(HOURLY, description="again"))
    assert (await the_trigger(service)).id == trigger.id
