"""Events start what listens to them: each once for each trigger, found by the words of the subject."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ropewalk.service import Service, reading
from ropewalk.service.triggers import events
from ropewalk.service.triggers.events import EventTriggers
from ropewalk.store import executions, triggers
from ropewalk.wiring import Settings, open_service


def document(name: str, *declared: dict[str, Any], nodes: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"ropewalk": 1, "name": name, "nodes": nodes or [{"id": "a", "type": "noop"}], "triggers": list(declared)}


@pytest.fixture(params=["file", "server"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "ropewalk.db") if request.param == "file" else request.getfixturevalue("database")


@pytest.fixture
async def service(db: str) -> AsyncIterator[Service]:
    async with open_service(Settings(db=db)) as service:
        yield service


async def started(service: Service) -> list[dict[str, Any]]:
    return await reading.list_executions(service.store, "default", executions.ANY, limit=10_000)


async def test_an_event_starts_what_listens_to_its_subject(service: Service):
    for name, pattern in {"one": "order.paid", "any": "order.*", "below": "order.>", "other": "order.sent"}.items():
        await service.save(document(name, {"event": pattern}))

    published = await events.publish(service, "order.paid", {"n": 1}, "me")

    found = await started(service)
    assert sorted(each["workflow"] for each in found) == ["any", "below", "one"]
    assert sorted(each["id"] for each in found) == sorted(published.started)
    story = await reading.recorded(service.store, published.started[0])
    assert (story.accepted.input, story.accepted.trigger) == ({"n": 1}, "EVENT")
    assert story.accepted.payload["subject"] == "order.paid"


async def test_the_same_event_again_starts_nothing(service: Service):
    await service.save(document("one", {"event": "order.*"}))

    first, second = [await events.publish(service, "order.paid", n, "me", "the same") for n in (1, 2)]
    many = await asyncio.gather(*[events.publish(service, "order.paid", 1, "me", "another") for _ in range(10)])

    assert first.started == second.started
    assert len({each.started[0] for each in many}) == 1
    assert len(await started(service)) == 2


async def test_a_filter_decides_which_events_a_trigger_hears_and_when_leaves_a_reason(service: Service):
    await service.save(document("heard", {"event": "a", "filter": "{{ event.payload.n > 1 }}", "name": "filtered"}))
    await service.save(document("asked", {"event": "a", "when": "{{ event.payload.n > 1 }}", "name": "asked"}))

    await events.publish(service, "a", {"n": 1}, "me")
    await events.publish(service, "a", {"no": "number"}, "me")

    fires = {each.name: await triggers.fires(service.store, each.id)
             for each in await triggers.listed(service.store, "default")}  # fmt: skip
    assert await started(service) == []
    assert (len(fires["filtered"]), sorted(str(each.reason) for each in fires["asked"])) == (0, ["FILTERED", "INVALID"])


async def test_a_trigger_hears_events_from_the_moment_it_is_published_until_it_is_disabled(service: Service):
    await events.publish(service, "a", 1, "me")
    await service.save(document("one", {"event": "a", "name": "ear"}))
    heard = await events.publish(service, "a", 2, "me")
    await service.triggers.switch("ear", on=False, by="me")
    deaf = await events.publish(service, "a", 3, "me")

    assert (len(heard.started), len(deaf.started)) == (1, 0)


async def test_events_that_start_each_other_stop_after_a_few(service: Service):
    emit = {"id": "again", "type": "event.emit", "with": {"subject": "tick", "payload": 1}}
    await service.save(document("loop", {"event": "tick", "name": "loop"}, nodes=[emit]))

    await events.publish(service, "tick", 1, "me")
    loop = (await triggers.listed(service.store, "default"))[0]
    async with asyncio.timeout(60):
        while not any(each.reason == "LOOP" for each in await triggers.fires(service.store, loop.id)):
            for each in await started(service):
                await service.ended(each["id"])

    assert len(await started(service)) == 9


async def test_a_thousand_triggers_for_other_subjects_are_not_looked_at(service: Service):
    declared = [{"event": f"order.{n}", "name": f"t{n}"} for n in range(100)]
    for part in range(10):
        await service.save(document(f"w{part}", *declared))
    found = EventTriggers(service.store, int)

    assert len(await found.listening("default", "order.7")) == 10
    assert await found.listening("default", "order") == []
    assert await found.listening("default", "order.7.more") == []
